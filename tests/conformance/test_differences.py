"""differences.md agrees with the table that the tests read."""

from __future__ import annotations

import pytest

from tests.conformance.listed import listed_deviations
from tests.differences import PAGE, differences, page


def test_the_page_is_generated_from_the_table() -> None:
    is_current = PAGE.read_text(encoding="utf-8") == page()
    assert is_current, "edit differences.yaml, not differences.md; then run: python -m tests.differences"


def test_each_row_is_complete_and_fits_one_line_of_the_page() -> None:
    for row in differences():
        assert row.kafka, row
        assert row.rewindow, row
        assert not [part for part in row if "\n" in part or "|" in part], row
    names = [row.what for row in differences()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "number", sorted({number for one in listed_deviations().values() for number in one.number.split("+")})
)
def test_each_deviation_of_a_recorded_scenario_is_a_row(number: str) -> None:
    assert number in [row.what for row in differences()]
