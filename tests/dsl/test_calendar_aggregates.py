"""Aggregates by windows in local time: updates, final results, late records, joins, and a restart with another clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rewindow import (
    CalendarWindows,
    EmitStrategy,
    KTable,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Window,
    Windowed,
    until_window_closes,
)
from rewindow.streams.metrics import GRACE_NEEDED, LATE_RECORD_DROP, WINDOW_FINAL_EMIT
from rewindow.streams.record import Record
from rewindow.testing import TopologyTestDriver
from tests.dsl.windowed import counted
from tests.refusals import refused
from tests.streams.naive_windows import HOUR, clock_of, instant_of

Steps = list[tuple[str, str, list[str]]]
"""Key, time, what is sent."""
BERLIN = "Europe/Berlin"


def at(zone: str, text: str) -> int:
    """Return an instant: a wall time of a zone or, with a Z at its end, a time in UTC."""
    if text.endswith("Z"):
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    wall = datetime.fromisoformat(text)
    return instant_of(zone, wall.replace(microsecond=0)) + wall.microsecond // 1000


def in_zone(size: str, zone: str = BERLIN, **others: Any) -> CalendarWindows:
    return CalendarWindows.of(size, zone=zone, **{"grace": "0s", **others})


def shown(record: Record, zone: str) -> str:
    """Return a result as ``a@31 00:00+25h=2``: key, start of the window in local time, its length, value."""
    start_ms, end_ms, _ = record.key.window
    start = datetime.fromtimestamp(start_ms / 1000, UTC).astimezone(clock_of(zone))
    return f"{record.key.key}@{start:%d %H:%M}+{(end_ms - start_ms) / HOUR:g}h={record.value}"


def counting(windows: Any, how: str) -> Topology:
    """Count by window and send updates, final results on close, or final results of a suppress."""
    builder = StreamsBuilder()
    grouped: Any = builder.stream("in").group_by_key().windowed_by(windows)
    if how == "emit":
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    counts = grouped.count(store="counts")
    (counts.suppress(until_window_closes(), name="held") if how == "suppress" else counts).to_stream().to("out")
    return builder.build()


FINALS = ("emit", "suppress")
EXAMPLES: dict[str, tuple[CalendarWindows, tuple[str, ...], Steps, int]] = {
    "a day of 23 hours": (
        in_zone("1d"),
        ("update",),
        [
            ("a", "2010-03-28 00:00", ["a@28 00:00+23h=1"]),
            ("a", "2010-03-28 23:59:59.999", ["a@28 00:00+23h=2"]),
            ("a", "2010-03-27 23:59:59.999", []),
            ("a", "2010-03-29 00:00", ["a@29 00:00+24h=1"]),
            ("a", "2010-03-28 23:59:59.999", []),
        ],
        2,
    ),
    "a day of 25 hours": (
        in_zone("1d", offset="2h30m", grace="30m"),
        ("update",),
        [
            ("a", "2010-10-31 02:29:59.999", ["a@30 02:30+24h=1"]),
            ("a", "2010-10-31T00:30:00Z", ["a@31 02:30+25h=1"]),  # 2:30 in summer time
            ("a", "2010-10-31T00:29:59Z", ["a@30 02:30+24h=2"]),
            ("a", "2010-10-31T01:29:59Z", ["a@31 02:30+25h=2"]),  # 2:29:59 in winter time
            ("a", "2010-11-01 02:29:59.999", ["a@31 02:30+25h=3"]),
            ("a", "2010-11-01 02:30", ["a@01 02:30+24h=1"]),
            ("a", "2010-11-01 02:59:59.999", ["a@01 02:30+24h=2"]),
            ("a", "2010-10-31T00:30:00Z", ["a@31 02:30+25h=4"]),
            ("a", "2010-11-01 03:00", ["a@01 02:30+24h=3"]),
            ("a", "2010-10-31T00:30:00Z", []),
        ],
        1,
    ),
    "final results of short and long days": (
        in_zone("1d", grace="1h"),
        FINALS,
        [
            ("b", "2010-03-28 12:00", []),
            ("a", "2010-03-29 00:30", []),
            ("b", "2010-03-28 23:59", []),
            ("a", "2010-03-28 23:59", []),
            ("a", "2010-03-29 00:59:59.999", []),
            ("a", "2010-03-29 01:00", ["a@28 00:00+23h=1", "b@28 00:00+23h=2"]),
            ("a", "2010-03-28 23:59", []),
            ("a", "2010-10-31 00:00", ["a@29 00:00+24h=3"]),
            ("a", "2010-11-01 00:59:59.999", []),
            ("a", "2010-11-01 01:00", ["a@31 00:00+25h=1"]),
        ],
        1,
    ),
    "half an hour at a change of half an hour": (
        in_zone("30m", "Australia/Lord_Howe"),
        FINALS,
        [
            ("a", "2010-04-03T14:29:59Z", []),  # 1:29:59 in summer time
            ("a", "2010-04-03T14:30:00Z", ["a@04 01:00+0.5h=1"]),
            ("a", "2010-04-03T15:29:59Z", []),  # 1:59:59 in winter time
            ("a", "2010-04-03T15:30:00Z", ["a@04 01:30+1h=2"]),
            ("a", "2010-10-02T15:29:59Z", ["a@04 02:00+0.5h=1"]),  # 1:59:59 in winter time
            ("a", "2010-10-02T15:30:00Z", ["a@03 01:30+0.5h=1"]),  # 2:30 in summer time
            ("a", "2010-10-02T16:00:00Z", ["a@03 02:30+0.5h=1"]),
        ],
        0,
    ),
    "windows that end together, by start": (
        in_zone("2d", "Pacific/Apia", advance="1d"),
        ("emit",),
        [
            ("b", "2011-12-29 12:00", []),
            ("a", "2011-12-29 23:59:59.999", []),
            (
                "b",
                "2011-12-31 00:00",
                ["a@28 00:00+48h=1", "b@28 00:00+48h=1", "a@29 00:00+24h=1", "b@29 00:00+24h=1"],
            ),
            ("b", "2012-01-01 23:00", []),
            ("b", "2012-01-02 00:00", ["b@31 00:00+48h=2"]),
        ],
        0,
    ),
    "windows that end together, by key": (
        in_zone("2d", "Pacific/Apia", advance="1d"),
        ("suppress",),
        [
            ("b", "2011-12-29 12:00", []),
            ("a", "2011-12-29 23:59:59.999", []),
            (
                "b",
                "2011-12-31 00:00",
                ["a@28 00:00+48h=1", "a@29 00:00+24h=1", "b@28 00:00+48h=1", "b@29 00:00+24h=1"],
            ),
            ("b", "2012-01-01 23:00", []),
            ("b", "2012-01-02 00:00", ["b@31 00:00+48h=2"]),
        ],
        0,
    ),
    "months, quarters and leap years": (
        in_zone("3mo", "Asia/Kathmandu", advance="1mo"),
        ("emit",),
        [
            ("a", "2012-01-01 00:00", []),
            ("a", "2012-02-29 23:59:59.999", ["a@01 00:00+2208h=1"]),
            ("a", "2012-03-01 00:00", ["a@01 00:00+2184h=2"]),
            ("a", "2012-06-01 00:00", ["a@01 00:00+2184h=3", "a@01 00:00+2160h=2", "a@01 00:00+2208h=1"]),
        ],
        0,
    ),
}
CASES = [(windows, how, *others) for windows, hows, *others in EXAMPLES.values() for how in hows]
CASE_NAMES = [f"{name}, {how}" for name, (_, hows, *_) in EXAMPLES.items() for how in hows]


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(("windows", "how", "steps", "late"), CASES, ids=CASE_NAMES)
def test_example(windows: CalendarWindows, how: str, steps: Steps, late: int, *, cut: bool) -> None:
    driver = TopologyTestDriver(counting(windows, how))
    for key, time, expected in steps:
        driver.pipe("in", key, 1, at(windows.zone, time))
        assert [shown(record, windows.zone) for record in driver.read("out")] == expected, (key, time)
        if cut:
            driver.cut()
    assert counted(driver, LATE_RECORD_DROP) == late
    if how == "emit":
        assert counted(driver, WINDOW_FINAL_EMIT) == sum(len(expected) for *_, expected in steps)


@pytest.mark.parametrize("day", ["2010-03-28", "2010-05-01", "2010-10-31"], ids=["23h", "24h", "25h"])
@pytest.mark.parametrize("needed", [1, HOUR, HOUR + 1, 26 * HOUR])
def test_a_record_is_kept_with_exactly_the_grace_that_it_needed(day: str, needed: int) -> None:
    end = at(BERLIN, f"{datetime.fromisoformat(day).date() + timedelta(days=1)} 00:00")
    for grace, late in ((needed, 0), (needed - 1, 1)):
        driver = TopologyTestDriver(counting(in_zone("1d", grace=f"{grace}ms"), "update"))
        driver.pipe("in", "a", 1, end + needed - 1)
        driver.pipe("in", "a", 1, at(BERLIN, f"{day} 00:00"))
        assert counted(driver, LATE_RECORD_DROP) == late
        assert [row["total"] for row in driver.metrics if row["name"] == GRACE_NEEDED] == [needed]


@pytest.mark.parametrize("how", ["update", "suppress"])
def test_stores_and_checkpoints_have_the_true_ends(how: str) -> None:
    driver = TopologyTestDriver(counting(in_zone("1d"), how))
    windows = [
        Window(at(BERLIN, f"{day} 00:00"), at(BERLIN, f"{after} 00:00"))
        for day, after in (("2010-10-30", "2010-10-31"), ("2010-10-31", "2010-11-01"))
    ]
    for window in windows:
        driver.pipe("in", "a", 1, window.end_ms - 1)
    assert list(driver.store("counts")) == [Windowed("a", window) for window in windows]
    (checkpoint,) = driver.checkpoints()
    for window in windows:
        assert f"{window.start_ms},{window.end_ms}]" in checkpoint
    driver.cut()
    assert list(driver.store("counts")) == [Windowed("a", window) for window in windows]


def text(_key: Any, value: str, before: str) -> str:
    return before + value


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("how", ["update", "suppress"])
def test_a_cogroup_aggregates_several_streams_by_the_same_windows(how: str, *, cut: bool) -> None:
    """Without final results, each input has its own clock, so a record may be on time that is late for the other input."""
    builder = StreamsBuilder()
    left, right = (builder.stream(name).group_by_key() for name in ("left", "right"))
    grouped = left.cogroup(text).cogroup(right, text).windowed_by(in_zone("1d"))
    table = grouped.aggregate(str, store="texts", value=str)
    (table.suppress(until_window_closes()) if how == "suppress" else table).to_stream().to("out")
    driver, sent = TopologyTestDriver(builder.build()), []
    for topic, value, time in (
        ("left", "1", "2010-03-28 00:00"),
        ("right", "2", "2010-03-28 23:59:59.999"),
        ("left", "3", "2010-03-29 00:00"),
        ("right", "4", "2010-03-28 23:59:59.999"),
        ("right", "5", "2010-03-30 00:00"),
    ):
        driver.pipe(topic, "a", value, at(BERLIN, time))
        sent += [shown(record, BERLIN) for record in driver.read("out")]
        if cut:
            driver.cut()
    first, second, third = "a@28 00:00+23h=", "a@29 00:00+24h=", "a@30 00:00+24h="
    updates = [f"{first}1", f"{first}12", f"{second}3", f"{first}124", f"{third}5"]
    assert sent == (updates if how == "update" else [f"{first}12", f"{second}3"])
    assert counted(driver, LATE_RECORD_DROP) == (how == "suppress")


def two_tables(left: Any, right: Any) -> tuple[StreamsBuilder, KTable, KTable]:
    """Count two topics in windows; without windows, a table is read back from the results of the first one."""
    builder = StreamsBuilder()
    counts = builder.stream("left").group_by_key().windowed_by(left).count(store="lefts")
    if right is None:
        return builder, counts, counts.to_stream().to_table(store="rights")
    return builder, counts, builder.stream("right").group_by_key().windowed_by(right).count(store="rights")


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_tables_with_the_same_windows_are_joined(*, cut: bool) -> None:
    builder, left, right = two_tables(in_zone("1d", offset="6h", grace="1h"), in_zone("1d", offset="6h"))
    joined = left.outer_join(right, lambda *counts: f"{counts}", store="joined")
    joined.suppress(until_window_closes()).to_stream().to("out")
    driver, sent = TopologyTestDriver(builder.build()), []
    for topic, key, time in (
        ("left", "a", "2010-03-27 06:00"),
        ("right", "a", "2010-03-28 05:59:59.999"),
        ("right", "b", "2010-03-28 05:59:59.999"),
        ("left", "a", "2010-03-28 06:59:59.999"),
        ("left", "a", "2010-03-28 05:59:59.999"),
        ("left", "a", "2010-03-28 07:00"),
    ):
        driver.pipe(topic, key, 1, at(BERLIN, time))
        sent.append([shown(record, BERLIN) for record in driver.read("out")])
        if cut:
            driver.cut()
    assert sent == [[], [], [], [], [], ["a@27 06:00+23h=(2, 1)", "b@27 06:00+23h=(None, 1)"]]


WEEK = in_zone("7d", advance="1d", offset="6h")
OTHERS: dict[str, Any] = {
    "zone": in_zone("7d", "Europe/Vienna", advance="1d", offset="6h"),
    "offset": in_zone("7d", advance="1d"),
    "size": in_zone("8d", advance="1d", offset="6h"),
    "advance": in_zone("1w", offset="6h"),
    "fixed": TimeWindows.of("7d", grace="0s").advance_by("1d"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_tables_with_other_windows_are_not_joined(other: Any) -> None:
    for windows in ((WEEK, other), (other, WEEK)):
        _, left, right = two_tables(*windows)
        for join in (left.join, left.left_join, left.outer_join):
            with refused("calendar-windows-differ", left_windows=windows[0].in_words(), right="rights"):
                join(right, lambda *counts: counts)


def test_a_table_without_windows_may_have_the_keys_of_any() -> None:
    builder, left, right = two_tables(WEEK, None)
    left.join(right, lambda *counts: f"{counts}", value=str).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("left", "a", 1, at(BERLIN, "2010-03-28 12:00"))
    assert len({record.key for record in driver.read("out")}) == 7
    _, left, right = two_tables(TimeWindows.of("1d", grace="0s"), TimeWindows.of("1h", grace="0s"))
    left.join(right, lambda *counts: counts)
