"""Durations as text, and the two closed-form grid functions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import (
    JoinWindows,
    Materialized,
    Processor,
    PunctuationType,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    join_store,
    session_store,
    until_time_limit,
    versioned_store,
    window_store,
)
from rewindow.streams.duration import at_or_after, in_words, strictly_after, time_to_ms, to_ms
from rewindow.testing import TopologyTestDriver
from rewindow.testing.transcript import TranscriptError, check, load
from tests.refusals import refused

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
        (0, 0),
        (0.0, 0),
    ],
)
def test_a_duration_is_parsed(word, ms):
    assert to_ms(word) == ms


@pytest.mark.parametrize(
    "number", [21600, -1, 1.5, math.nan, math.inf, Decimal(70), Fraction(1, 2), np.int64(70), np.float32(2.5)], ids=repr
)
def test_a_bare_number_is_refused_because_it_has_no_unit(number):
    with refused("duration-without-unit"):
        to_ms(number)


WORDS = [
    "",
    "10",
    "10 m",
    "1.5h",
    "h",
    "1mo",
    "1y",
    "--1s",
    "1h-5m",
    "1h5",
    "m10",
    "\u0663s",
    "9" * 5000 + "ms",
    "1e3s",
]
OTHERS = [None, True, False, b"1h", ["1h"], datetime(2026, 1, 1, tzinfo=UTC), np.timedelta64(1, "h"), pd.NaT]


@pytest.mark.parametrize("word", [*WORDS, *OTHERS], ids=lambda word: repr(word)[:20])
def test_any_other_text_is_rejected_with_examples(word):
    with refused("duration-not-understood"):
        to_ms(word)


@pytest.mark.parametrize("fine", [timedelta(microseconds=1), pd.Timedelta(nanoseconds=5)])
def test_a_timedelta_finer_than_a_millisecond_is_rejected(fine):
    with refused("duration-finer-than-millisecond"):
        to_ms(fine)


@pytest.mark.parametrize("long", ["10000000w", "-9223372036854775808ms", timedelta(days=999_999_999)])
def test_more_than_ten_thousand_years_is_refused(long):
    with refused("duration-out-of-range"):
        to_ms(long)


def test_a_point_in_time_may_be_an_int_of_epoch_milliseconds():
    assert time_to_ms(1_767_225_600_000) == 1_767_225_600_000
    assert time_to_ms("59m") == 3_540_000
    with refused("duration-not-understood", given="True"):
        time_to_ms(True)


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0s"),
        (21_600_000, "6h"),
        (5_400_001, "1h30m1ms"),
        (-5_000, "-5s"),
        (604_800_000, "7d"),
        (2**63 - 1, "forever"),
    ],
)
def test_a_duration_is_shown_in_words(ms, words):
    assert in_words(ms) == words


@given(st.integers(-(10**14), 10**14))
def test_the_words_mean_the_same_duration(ms):
    assert to_ms(in_words(ms)) == ms


BARE = {
    "TimeWindows.of(21600)": lambda: TimeWindows.of(21600, grace="0s"),
    "grace": lambda: TimeWindows.of("1h", grace=21600),
    "advance_by": lambda: TimeWindows.of("1h", grace="0s").advance_by(60),
    "SessionWindows": lambda: SessionWindows.of(60, grace="0s"),
    "SlidingWindows": lambda: SlidingWindows.of(60, grace="0s"),
    "JoinWindows": lambda: JoinWindows.of(60, grace="0s"),
    "before": lambda: JoinWindows.of("1h", grace="0s").before(60),
    "after": lambda: JoinWindows.of("1h", grace="0s").after(60),
    "until_time_limit": lambda: until_time_limit(60),
    "Materialized": lambda: Materialized.as_("s", retention=86400),
    "window_store size": lambda: window_store("s", size=60, retention="1h"),
    "window_store retention": lambda: window_store("s", size="1m", retention=3600),
    "session_store": lambda: session_store("s", retention=60),
    "join_store": lambda: join_store("s", retention=60),
    "versioned_store": lambda: versioned_store("s", history=60),
    "process(holds=60)": lambda: StreamsBuilder().stream("in").process(Ticking, name="p", holds=60),
    "schedule": lambda: driver_of(interval=60),
    "time_shift": lambda: driver_of(interval="1m", time_shift=60),
    "start_time": lambda: driver_of(interval="1m", start_time=60),
    "advance_wall_clock": lambda: driver_of(interval="1m").advance_wall_clock(60),
}


class Ticking(Processor):
    """A processor with a schedule."""

    options: ClassVar[dict[str, Any]] = {}

    def init(self, context):
        options = dict(self.options)
        context.schedule(options.pop("interval"), PunctuationType.STREAM_TIME, self.tick, **options)

    def tick(self, now_ms):
        """Do nothing."""


def driver_of(**options):
    builder = StreamsBuilder()
    builder.stream("in").process(type("Given", (Ticking,), {"options": options}), name="p")
    return TopologyTestDriver(builder.build())


@pytest.mark.parametrize("where", BARE)
def test_a_bare_number_is_refused_wherever_a_duration_is_given(where):
    with refused("duration-without-unit"):
        BARE[where]()


def test_the_wall_clock_of_a_test_never_goes_back():
    with refused("wall-clock-goes-back"):
        driver_of(interval="1m").advance_wall_clock("-5s")


def test_a_processor_cannot_hold_results_for_a_negative_time():
    with refused("node-hold-time-negative", node="p", duration="-5s"):
        StreamsBuilder().stream("in").process(Ticking, name="p", holds="-5s")


def test_a_transcript_takes_no_number_as_a_duration(tmp_path):
    file = tmp_path / "case.yaml"
    file.write_text("name: bare\nmax_task_idle: 50\ntranscript: []\n")
    with refused("duration-without-unit", given="50"):
        load(file)
    file.write_text("name: bare\ntranscript: [{clock: 50}]\n")
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with pytest.raises(TranscriptError, match="the duration 50 has no unit"):
        check(load(file)[0], builder.build())


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
