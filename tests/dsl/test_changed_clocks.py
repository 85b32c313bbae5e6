"""A window that was stored keeps its end when the clock of its zone is another one: in stores, results and changelogs."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import CalendarWindows, Topology, Window, Windowed
from rewindow.storage.zone_data import read_zone
from rewindow.streams.nodes import ProcessorNode, SourceNode
from rewindow.streams.serde.types_to_columns import bound
from rewindow.streams.settings import Semantics
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.stores import WINDOW, StoreBuilder
from rewindow.streams.state.window_store import WindowStore
from rewindow.streams.topology import SubTopology
from rewindow.streams.windows.zone_table import ZoneTable
from rewindow.testing import TopologyTestDriver
from rewindow.testing.local_task import Blueprint, MemorySpill
from tests.dsl.test_calendar_aggregates import BERLIN, FINALS, at, counting, in_zone
from tests.properties.effort import examples
from tests.streams.naive_windows import HOUR

AUTUMN = at(BERLIN, "2010-10-31T01:00:00Z")
OFFICIAL = read_zone(BERLIN)
_UNTIL = OFFICIAL.changes_ms.index(AUTUMN)
SUMMER = ZoneTable(BERLIN, OFFICIAL.changes_ms[:_UNTIL], OFFICIAL.offsets_ms[: _UNTIL + 1])
"""A clock on which the summer of 2010 never ends."""
CLOCKS = {"longer": (SUMMER, OFFICIAL), "shorter": (OFFICIAL, SUMMER)}


def restarted(driver: TopologyTestDriver, topology: Topology, clock: ZoneTable) -> None:
    """Restore all tasks as a process does that has another clock."""
    with patch("rewindow.storage.zone_data.read_zones", lambda zones: dict.fromkeys(zones, clock)):
        blueprint = Blueprint.of(topology, Semantics())
    with patch.object(driver, "_blueprint", blueprint):
        driver.cut()


@pytest.mark.parametrize("how", FINALS)
@pytest.mark.parametrize(("before", "after"), CLOCKS.values(), ids=CLOCKS)
def test_a_window_keeps_its_end_when_the_clock_is_another_one(how: str, before: ZoneTable, after: ZoneTable) -> None:
    topology = counting(in_zone("1d", grace="2h"), how)
    driver = TopologyTestDriver(topology)
    noon = at(BERLIN, "2010-10-31 12:00")
    restarted(driver, topology, before)
    driver.pipe("in", "old", 1, noon)
    restarted(driver, topology, after)
    driver.pipe("in", "old", 1, noon + 1)
    driver.pipe("in", "new", 1, noon + 2)
    restarted(driver, topology, after)
    ends = {
        name: in_zone("1d").bound_to(clock).windows(noon)[0].end_ms for name, clock in (("old", before), ("new", after))
    }
    assert ends["old"] != ends["new"]
    sent: list[Any] = []
    for end in sorted(ends.values()):
        for time in (end + 2 * HOUR - 1, end + 2 * HOUR):
            driver.pipe("in", "clock", 1, time)
            sent.append([(record.key.key, record.key.window.end_ms, record.value) for record in driver.read("out")])
            restarted(driver, topology, after)
    by_end = sorted(("old", "new"), key=ends.__getitem__)
    counts = {"old": 2, "new": 1}
    assert sent == [found for name in by_end for found in ([], [(name, ends[name], counts[name])])]


def store_of(windows: CalendarWindows, *, spills: bool) -> WindowStore:
    size_ms, retention_ms = windows.size_ms, windows.needed_retention_ms
    builder = StoreBuilder("s", WINDOW, str, int, calendar=windows, window_size_ms=size_ms, retention_ms=retention_ms)
    part = SubTopology(0, (SourceNode("in"), ProcessorNode("p", ("in",), stores=("s",))), (builder,))
    return WindowStore(bound(part, {}).stores[0], Disk(MemorySpill, 1) if spills else None)


KEYS = st.sampled_from(["a", "aa", "b", "é"])
TIMES = st.integers(-8 * 24, 8 * 24).map(lambda hours: AUTUMN + hours * HOUR)
PUT = st.tuples(st.just("put"), KEYS, TIMES, st.sampled_from([1, 2, 3, None]))
ENDED = st.tuples(st.just("ended"), st.just(""), TIMES, st.integers(0, 80))
STEPS = st.lists(st.one_of(PUT, PUT, PUT, ENDED, st.just(("restart", "", 0, 0))), max_size=25)


@examples(150)
@given(
    windows=st.sampled_from([in_zone("1d"), in_zone("6h"), in_zone("3d", advance="1d", grace="9h")]),
    clocks=st.sampled_from(list(CLOCKS)),
    first=st.lists(PUT, max_size=12),
    steps=STEPS,
    spills=st.booleans(),
)
def test_a_restored_store_equals_a_dictionary_of_windows(
    windows: CalendarWindows, clocks: str, first: list[Any], steps: list[Any], *, spills: bool
) -> None:
    before, after = (windows.bound_to(clock) for clock in CLOCKS[clocks])
    ends: dict[tuple[int, str], int] = {}
    values: dict[tuple[int, str], int] = {}
    log: list[tuple[Any, Any]] = []
    store, now, newest = store_of(before, spills=spills), before, -1
    for step, key, time, given_value in [*first, ("restart", "", 0, 0), *steps]:
        if step == "put":
            start = now.starts(time)[0]
            newest = max(newest, start)
            store.put(key, given_value, start)
            row = start, key
            if start > newest - windows.needed_retention_ms and (given_value is not None or row in values):
                ends.setdefault(row, now.end_of(start))
                values[row] = given_value
            values = {row: kept for row, kept in values.items() if row[0] > newest - windows.needed_retention_ms}
        elif step == "ended":
            until = time + given_value * HOUR
            expected = [row for row in present(values, ends) if time < row[0].window.end_ms <= until]
            assert list(store.fetch_ended(time, until)) == expected
        else:
            log += store.take_changes()
            ends = {(of.window.start_ms, of.key): of.window.end_ms for of, _ in log}
            values = {row: value for row, value in values.items() if row in ends}
            store, now = store_of(after, spills=spills), after
            store.restore(log, newest)
        assert list(store.rows()) == present(values, ends)
        assert all(store.window(start, key).end_ms == ends[start, key] for start, key in values)
    log += store.take_changes()
    restored = {(of.window.start_ms, of.key): (of.window.end_ms, value) for of, value in log}
    for row, value in values.items():
        assert restored.get(row, (ends[row], None)) == (ends[row], value)


def present(values: dict[tuple[int, str], Any], ends: dict[tuple[int, str], int]) -> list[Any]:
    """Return the rows with a value by start and key bytes."""
    order = sorted(values, key=lambda row: (row[0], row[1].encode()))
    return [(Windowed(row[1], Window(row[0], ends[row])), values[row]) for row in order if values[row] is not None]
