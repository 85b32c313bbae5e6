"""Durations as text, and the two closed-form grid functions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.errors import ConfigError
from rewindow.streams.duration import at_or_after, strictly_after, to_ms

TIMES = st.integers(-(2**53), 2**53)
SHIFTS = st.integers(-10_000, 10_000)
INTERVALS = st.integers(1, 5_000)


@pytest.mark.parametrize(
    ("word", "ms"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("10m", 600_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        ("-5s", -5_000),
        ("0", 0),
        (" 1h ", 3_600_000),
        (timedelta(minutes=1, milliseconds=1), 60_001),
        (timedelta(milliseconds=-1), -1),
        (250, 250),
    ],
)
def test_a_duration_is_parsed(word, ms):
    assert to_ms(word) == ms


@pytest.mark.parametrize("word", ["", "10", "10 m", "1.5h", "h", "1mo", "1y", "--1s", "1h-5m", "1h5", "m10"])
def test_any_other_text_is_rejected_with_examples(word):
    with pytest.raises(ConfigError, match="is not a duration: write it like 500ms, 10s"):
        to_ms(word)


def test_a_timedelta_finer_than_a_millisecond_is_rejected():
    with pytest.raises(ConfigError, match="finer than a millisecond"):
        to_ms(timedelta(microseconds=1))


@given(now=TIMES, shift=SHIFTS, interval=INTERVALS)
def test_at_or_after_is_the_smallest_grid_point_not_before(now, shift, interval):
    point = at_or_after(now, shift, interval)
    assert (point - shift) % interval == 0
    assert point - interval < now <= point


@given(now=TIMES, shift=SHIFTS, interval=INTERVALS)
def test_strictly_after_is_the_smallest_grid_point_after(now, shift, interval):
    point = strictly_after(now, shift, interval)
    assert (point - shift) % interval == 0
    assert point - interval <= now < point


def test_the_first_firing_of_d3():
    assert at_or_after(26, 0, 10) == 30
    assert at_or_after(0, 25, 10) == 5
    assert strictly_after(30, 0, 10) == 40
