"""Each odd file, read as a whole, is landed as the page says, or refused where it says."""

import pytest

from tests.text.expected import check_case
from tests.text.odd_files import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_file_is_landed_as_the_page_says(case, tmp_path, monkeypatch):
    check_case(case, "whole", tmp_path, monkeypatch)
