"""Times that people type and read: without an offset they are in UTC, and what is shown says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.app.times import parse_time
from rewindow.contracts.instants import as_argument, instant
from rewindow.errors import UsageError
from rewindow.streams.record import MAX_MS
from tests.refusals import containing, refused

LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def test_a_shown_time_is_in_utc_and_says_so() -> None:
    assert instant(0) == "1970-01-01 00:00:00Z"
    assert instant(1_767_632_400_000) == "2026-01-05 17:00:00Z"
    assert instant(1_767_632_400_007) == "2026-01-05 17:00:00.007Z"


def test_a_time_that_is_none_has_words() -> None:
    assert instant(None) == instant(-1) == "-"
    assert instant(-1, "no time yet") == "no time yet"
    assert instant(MAX_MS) == "the end of time"
    assert instant(LAST_MS + 1) == f"{LAST_MS + 1} ms"


@given(st.integers(0, LAST_MS))
def test_a_shown_time_can_be_typed(time_ms: int) -> None:
    assert parse_time(instant(time_ms)) == parse_time(as_argument(time_ms)) == time_ms


@pytest.mark.parametrize(
    "text", ["2026-01-05T17:00", "2026-01-05 17:00:00", "2026-01-05T18:00+01:00", "2026-01-05T17:00Z"]
)
def test_a_typed_time_without_an_offset_is_in_utc(text: str) -> None:
    assert parse_time(text) == 1_767_632_400_000


def test_a_date_is_its_first_instant_in_utc() -> None:
    assert parse_time("2026-01-05") == 1_767_571_200_000


@pytest.mark.parametrize("text", ["16:53", "16:53:00Z", "T16:53"])
def test_a_time_of_day_is_refused_because_it_names_no_day(text: str) -> None:
    with refused("time-without-day", fix=containing("write it like 2013-02-01 or 2013-02-01T06:00:00Z (UTC")):
        parse_time(text)


@pytest.mark.parametrize("text", ["yesterday", "", "5", "P1D", "2026-01-05/2026-01-06", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="UTC unless it has an offset"):
        parse_time(text)
