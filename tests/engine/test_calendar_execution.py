"""L4 for windows in local time: vectorized execution writes what record execution writes, around changes of clocks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import (
    CalendarWindows,
    EmitStrategy,
    First,
    KStream,
    StreamsBuilder,
    TimeWindows,
    Topology,
    until_window_closes,
)
from rewindow.contracts.tasks import Epoch, Execution
from rewindow.engine.worker import batch_size
from rewindow.errors import DataError
from rewindow.storage.zone_data import read_zone, read_zones
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import Semantics
from rewindow.streams.windows.zone_table import ZoneTable
from rewindow.streams.zoned_topology import with_clocks, zones_of
from tests.engine.executions import Case, assert_equal, replay, write_log
from tests.engine.stages import drawn_runs, replay_stages
from tests.engine.test_behind_final_results import AGGREGATES, CHAINS, counted
from tests.engine.test_execution_equality import cases, hold_execution_modes_against_each_other
from tests.properties.clock_changes import CHANGES, HOUR, timed
from tests.properties.effort import examples

BERLIN = "Europe/Berlin"
AUTUMN = CHANGES[BERLIN][1]


def with_own_clocks(case: Case) -> Case:
    return case._replace(topology=with_clocks(case.topology, read_zones(zones_of(case.topology))))


def calendar_cases(**others: Any) -> Any:
    return timed().flatmap(lambda drawn: cases(timed=drawn, **others)).map(with_own_clocks)


@examples(80)
@given(case=calendar_cases(), data=st.data())
def test_both_execution_modes_write_the_same(case: Case, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


@examples(30)
@given(case=calendar_cases(functions=True), data=st.data())
def test_both_execution_modes_write_the_same_behind_python_functions(case: Case, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


@st.composite
def followed(draw: Any) -> Case:
    """Generate a job whose final results pass through functions to a table, or to windows of another sub-topology."""
    chain = draw(st.sampled_from(CHAINS[:-2]))
    others: list[Any] = [None, draw(timed()).windows, TimeWindows.of("6h", grace="1h")]
    windows = draw(st.sampled_from(others))

    def behind(finals: KStream) -> None:
        stream = chain(finals)
        if windows is not None:
            stream = counted(stream.repartition(name="again"), windows)
        stream.to("results")

    return draw(calendar_cases(aggregates=AGGREGATES, behind=behind))


@examples(60)
@given(case=followed(), data=st.data())
def test_both_execution_modes_write_the_same_behind_final_results(case: Case, data: st.DataObject) -> None:
    """There, the order in which windows close is visible."""
    cuts, modes = drawn_runs(len(case.epochs), data)
    rows = data.draw(st.sampled_from([1, 3, 100]))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        log = write_log(case, root / "log")
        expected = outcome(lambda: replay_stages(case, log, root / "r", cuts, [Execution.RECORD] * len(cuts)))
        with patch.object(batch_size, "read_rows", return_value=rows):
            found = outcome(lambda: replay_stages(case, log, root / "c", cuts, modes))
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
            return
        for task, written in expected.items():
            assert_equal(found[task], written)


def outcome(replayed: Callable[[], Any]) -> Any:
    """Return a result, or the message of an error: times in computed columns may be too large for a sum."""
    try:
        return replayed()
    except DataError as error:
        return str(error)


def with_two_clocks(of: Topology) -> tuple[Topology, Topology]:
    """Return a topology with windows in Berlin with two clocks: that of the zone, and one on which a summer does not end."""
    official = read_zone(BERLIN)
    until = official.changes_ms.index(AUTUMN)
    endless = ZoneTable(BERLIN, official.changes_ms[:until], official.offsets_ms[: until + 1])
    return with_clocks(of, {BERLIN: official}), with_clocks(of, {BERLIN: endless})


@examples(60)
@given(case=timed(lambda zone: zone == BERLIN).flatmap(lambda drawn: cases(timed=drawn)), data=st.data())
def test_both_execution_modes_keep_the_ends_of_windows_when_the_clock_changes(case: Case, data: st.DataObject) -> None:
    cuts, modes = drawn_runs(len(case.epochs), data)
    order = data.draw(st.sampled_from([(0, 1), (1, 0)]))
    clocks = with_two_clocks(case.topology)
    topologies = [clocks[order[min(1, run)]] for run in range(len(cuts))]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        log = write_log(case, root / "log")
        expected = outcome(
            lambda: replay(case, log, root / "r", cuts, [Execution.RECORD] * len(cuts), topologies=topologies)
        )
        found = outcome(lambda: replay(case, log, root / "c", cuts, modes, topologies=topologies))
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
        else:
            assert_equal(found, expected)


def test_a_task_with_windows_that_keep_another_end_runs_record_by_record(tmp_path: Path) -> None:
    """Vectorized execution returns when these windows have closed."""
    topology = counting(CalendarWindows.of("1d", zone=BERLIN, grace="0s"), "suppress")
    hours = [-30, 1, 2, 30, 60]
    rows = [(AUTUMN + hour * HOUR, "k", hour) for hour in hours]
    bounds = tuple(pairwise(range(len(rows) + 1)))
    epochs = tuple(Epoch(number, row[0]) for number, row in enumerate(rows, start=1))
    columns = (Column("user", "string"), Column("amount", "long"))
    official, endless = with_two_clocks(topology)
    case = Case(official, columns, 1, rows, epochs, bounds, Semantics())
    log = write_log(case, tmp_path / "log")
    topologies = [official, official, endless, endless, endless]
    runs = {
        mode: replay(case, log, tmp_path / mode.name, bounds, [mode] * len(rows), topologies=topologies)
        for mode in (Execution.RECORD, Execution.AUTO)
    }
    assert_equal(runs[Execution.AUTO], runs[Execution.RECORD])
    assert [run.report.is_vectorized for run in runs[Execution.AUTO]] == [True, True, False, False, True]
    sent = [row for run in runs[Execution.AUTO] for path in run.files.get("output/finals", ()) for row in rows_in(path)]
    kept, after = AUTUMN + 22 * HOUR, AUTUMN + 21 * HOUR
    assert sent == [
        (AUTUMN - 51 * HOUR, AUTUMN - 27 * HOUR, 1),
        (AUTUMN - 3 * HOUR, kept, 2),
        (after, after + 24 * HOUR, 1),
    ]


@pytest.mark.parametrize("how", ["emit", "suppress"])
def test_a_record_after_the_end_that_its_window_keeps_is_late(how: str, tmp_path: Path) -> None:
    """By the clock of the zone, the day ends an hour later. Its results have been sent already."""
    official, endless = with_two_clocks(counting(CalendarWindows.of("1d", zone=BERLIN, grace="0s"), how))
    minutes = [("k", 600), ("z", 21 * 60 + 10), ("k", 21 * 60 + 40), ("z", 60 * 60), ("z", 90 * 60)]
    rows = [(AUTUMN + minute * 60_000, key, None) for key, minute in minutes]
    bounds = tuple(pairwise(range(len(rows) + 1)))
    epochs = tuple(Epoch(number, row[0]) for number, row in enumerate(rows, start=1))
    case = Case(official, COLUMNS, 1, rows, epochs, bounds, Semantics())
    log = write_log(case, tmp_path / "log")
    runs = {
        mode: replay(case, log, tmp_path / mode, bounds, [mode] * 5, topologies=[endless, *[official] * 4])
        for mode in (Execution.RECORD, Execution.AUTO)
    }
    assert_equal(runs[Execution.AUTO], runs[Execution.RECORD])
    assert [run.report.is_vectorized for run in runs[Execution.AUTO]] == [True, False, False, False, True]


def rows_in(path: str) -> list[tuple[int, int, int]]:
    """Return the start, end and value of each final result in a file."""
    columns = pq.read_table(path, partitioning=None).to_pydict()
    return list(zip(columns["window_start"], columns["window_end"], columns["value"], strict=True))


def counting(windows: CalendarWindows, how: str, *, behind: bool = False) -> Topology:
    """Count in windows; ``behind``: count the results again, in another sub-topology."""
    builder = StreamsBuilder()
    grouped: Any = builder.stream("events").group_by_key().windowed_by(windows)
    if how == "emit":
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    table = grouped.count(store="windows")
    finals = (table.suppress(until_window_closes(), name="closed") if how == "suppress" else table).to_stream()
    (counted(finals.repartition(name="again"), windows) if behind else finals).to("finals")
    return builder.build()


def case_of(topology: Topology, columns: tuple[Column, ...], rows: list[tuple[Any, ...]]) -> Case:
    """Return a case with one landing of all rows."""
    return with_own_clocks(Case(topology, columns, 1, rows, (Epoch(1, -1),), ((0, len(rows)),), Semantics()))


def in_both_modes(case: Case, root: Path) -> None:
    log = write_log(case, root / "log")
    runs = {
        mode: replay_stages(case, log, root / mode, [(0, 1)], [mode]) for mode in (Execution.RECORD, Execution.AUTO)
    }
    for task, written in runs[Execution.RECORD].items():
        assert_equal(runs[Execution.AUTO][task], written)
    assert runs[Execution.AUTO][0, 0][0].report.is_vectorized


COLUMNS = (Column("user", "string"), Column("note", "string"))


@pytest.mark.parametrize("how", ["emit", "suppress"])
@pytest.mark.parametrize("keys", [("b", "a", "c"), ("a", "a\0", "")], ids=["texts", "zero bytes"])
def test_windows_that_end_together_are_sent_in_the_order_of_record_execution(
    keys: tuple[str, ...], how: str, tmp_path: Path
) -> None:
    """Two days that Apia skipped end at the same time as the days before."""
    windows = CalendarWindows.of("2d", advance="1d", zone="Pacific/Apia", grace="0s")
    (change, _) = CHANGES["Pacific/Apia"]
    times = [change - 30 * HOUR, change - 2 * HOUR, change + HOUR, change + 26 * HOUR, change + 72 * HOUR]
    rows = [(time + number, key, None) for time in times for number, key in enumerate(keys)]
    in_both_modes(case_of(counting(windows, how), COLUMNS, rows), tmp_path)


@pytest.mark.parametrize("how", ["emit", "suppress"])
def test_results_below_have_the_order_of_the_records_that_closed_their_windows(how: str, tmp_path: Path) -> None:
    """Some windows close at half past an hour, and one lasts an hour."""
    windows = CalendarWindows.of("30m", zone="Australia/Lord_Howe", grace="5m")
    (change, _) = CHANGES["Australia/Lord_Howe"]
    rows = [(change + minute * 60_000, f"{minute % 3}", None) for minute in (-40, -28, -26, -24, -1, 1, 29, 36, 50, 66)]
    in_both_modes(case_of(counting(windows, how, behind=True), COLUMNS, rows), tmp_path)


def test_windows_without_a_value_close_together(tmp_path: Path) -> None:
    """They overlap, their keys have zero bytes, and all windows with a result close at another time."""
    builder = StreamsBuilder()
    windows = CalendarWindows.of("2d", advance="1d", zone=BERLIN, grace="0s")
    table = builder.stream("events").group_by_key().windowed_by(windows).aggregate(First("note"), store="windows")
    table.suppress(until_window_closes(), name="closed").to_stream().to("finals")
    rows = [(AUTUMN + day * 24 * HOUR, "a\0", note) for day, note in ((0, None), (9, "x"), (18, None))]
    case = case_of(builder.build(), COLUMNS, rows)
    epochs = tuple(Epoch(number, row[0]) for number, row in enumerate(rows, start=1))
    case = case._replace(bounds=tuple(pairwise(range(len(rows) + 1))), epochs=epochs)
    log = write_log(case, tmp_path / "log")
    runs = {mode: replay(case, log, tmp_path / mode, [(0, 3)], [mode]) for mode in (Execution.RECORD, Execution.AUTO)}
    assert_equal(runs[Execution.AUTO], runs[Execution.RECORD])
    assert runs[Execution.AUTO][0].report.is_vectorized
