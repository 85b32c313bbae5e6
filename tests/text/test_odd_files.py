"""Each odd file, as a whole, in small blocks and divided among workers, is landed as the page says or refused where it says."""

import pytest

from tests.text.expected import check_case
from tests.text.odd_files import CASES
from tests.text.reading import write_case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_file_is_landed_as_the_page_says(case, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_case(case, folder)
    for mode in ("whole", "in small blocks", "divided"):
        with pytest.MonkeyPatch.context() as patched:
            check_case(case, mode, folder, patched)
