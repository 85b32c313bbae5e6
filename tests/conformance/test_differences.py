"""The page of differences and the table that the tests read are one."""

from __future__ import annotations

import pytest

from tests.conformance.listed import listed_deviations
from tests.differences import PAGE, differences, page


def test_the_page_is_made_of_the_table() -> None:
    up_to_date = PAGE.read_text(encoding="utf-8") == page()
    assert up_to_date, "edit differences.yaml, not DIFFERENCES.md; then: python -m tests.differences"


def test_each_row_says_what_happens_here_and_fits_a_line_of_the_page() -> None:
    for one in differences():
        assert one.kafka, one
        assert one.rewindow, one
        assert not [part for part in one if "\n" in part or "|" in part], one
    names = [one.what for one in differences()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("number", sorted({one.number for one in listed_deviations().values()}))
def test_each_deviation_of_a_recorded_scenario_is_a_row(number: str) -> None:
    assert number in [one.what for one in differences()]
