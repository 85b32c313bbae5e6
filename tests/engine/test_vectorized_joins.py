"""L4 of joins: vectorized execution writes what record execution writes, for any data, runs, batch sizes and earlier modes."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from rewindow import JoinWindows, KStream, Materialized, StreamsBuilder, TimeWindows, until_window_closes
from rewindow.contracts.tasks import Epoch, Execution
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.vectorized.arrays import NotVectorizableError
from rewindow.engine.worker.vectorized.choose_execution import plan_vectorized
from rewindow.engine.worker.vectorized.joins import stream_task, value_rows
from rewindow.errors import RewindowError
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import Limits, Semantics
from tests.engine.executions import assert_equal
from tests.engine.prefixes import Made, made
from tests.engine.stages import drawn_runs
from tests.engine.test_execution_equality import COLUMN_VALUES, KEYS, ROW_KEY, VALUES
from tests.engine.two_topics import Log, Stages, TwoTopics, replay, shapes, write_logs
from tests.properties.effort import examples

ROW_VALUES = VALUES[:-1], COLUMN_VALUES.map(lambda values: values[:-1])
"""Rows of all types but JSON, which only record execution joins."""
BARE_VALUE = (Column("amount", "double"),), st.tuples(st.sampled_from([None, 1.5, -0.0, 7.0]))


def text(left: Any, right: Any) -> str:
    return f"{left} + {right}"


def with_key(key: Any, left: Any, right: Any) -> str:
    return f"{key!r}: {left!r} + {right!r}"


def whole(left: Any, right: Any) -> int | None:
    return None if left is None else len(str(left)) - len(str(right))


def failing(left: Any, right: Any) -> str:
    if len(f"{left}{right}") % 5 == 3:
        raise StopIteration("a pair that the code did not expect")
    return f"{left} + {right}"


def of_two_types(left: Any, right: Any) -> Any:
    return 1 if right is None else f"{left} + {right}"


def listed(left: Any, right: Any, *, _shared: list[str] = []) -> list[str]:  # noqa: B006 - the same list each time
    _shared[:] = [str(left), str(right)]
    return _shared


JOINERS: list[tuple[Callable[..., Any], Any]] = [
    (text, str),
    (with_key, str),
    (whole, int),
    (whole, float),
    (listed, None),
]
CARELESS: list[tuple[Callable[..., Any], Any]] = [(failing, str), (of_two_types, str)]
LIMITS = [Limits(outputs_per_record=3), Limits(store_rows=9), Limits(store_memory=200)]
PREFIXES: list[Callable[[KStream], KStream]] = [
    lambda stream: stream,
    lambda stream: stream.where("timestamp <> 23"),
    lambda stream: stream.filter(lambda _, value: "7" not in str(value)),
    lambda stream: stream.flat_map_values(lambda value: [f"{value}"] * (len(str(value)) % 3), value=str),
    lambda stream: stream.map_values(lambda value: None if "a" in str(value) else 0.0, value=float),
]
ON_ROWS: list[Callable[[KStream], KStream]] = [
    lambda stream: stream.select("whole, real * 2 as real, note, timestamp as at").where("whole >= 0"),
    lambda stream: stream.map_values(made, value=Made),
]
REKEYED: list[Callable[[KStream], KStream]] = [
    lambda stream: stream.map(lambda _, value: (len(str(value)) % 3 or None, str(value)), key=int, value=str),
    lambda stream: stream.select_key(lambda _, value: f"{len(str(value)) % 2}", key=str).map_values(str, value=str),
]


def held_back(stream: KStream) -> KStream:
    """Send final results of windows on, by which the watermark below them is lowered (D22)."""
    windowed = stream.group_by_key().windowed_by(TimeWindows.of("4ms", grace="3ms")).count(store="held-counts")
    finals = windowed.suppress(until_window_closes(), name="held").to_stream()
    return finals.map(lambda of, value: (f"{value % 2}", str(of.window.end_ms)), key=str, value=str)


SUFFIXES: list[Callable[[KStream], KStream]] = [
    lambda joined: joined,
    lambda joined: joined.map_values(lambda value: f"{value}!", value=str).filter(lambda key, value: "b" not in value),
    lambda joined: joined.flat_map(lambda key, value: [(len(str(value)), str(key))] * 2, key=int, value=str),
    lambda joined: joined.select_key(lambda key, value: str(key), key=str).repartition(name="again"),
    lambda joined: (
        joined.map(lambda key, value: (f"{key}", 1), key=str, value=int)
        .group_by_key()
        .windowed_by(TimeWindows.of("4ms", grace="3ms"))
        .count(store="counts")
        .suppress(until_window_closes(), name="closed")
        .to_stream()
    ),
]


@st.composite
def rows_of(draw: Any, keys: Any, values: Any) -> list[tuple[Any, ...]]:
    """Generate the rows of a log: timestamp, key and value columns."""
    count = draw(st.sampled_from([0, 1, 5, 20, 40]))
    steps = draw(st.lists(st.tuples(st.integers(-15, 6), keys, values), min_size=count, max_size=count))
    rows, now = [], 20
    for step, key, value in steps:
        now = max(now, now + step)
        rows.append((max(0, now + min(step, 0)), *key, *value))
    return rows


@st.composite
def jobs(draw: Any, join: Callable[..., KStream]) -> TwoTopics:
    """Generate a job. ``join(draw, left, right, joiner, options)`` joins the streams of both logs."""
    columns, keys = draw(st.sampled_from([*KEYS.values(), ROW_KEY]))
    keys = keys if len(columns) > 1 else st.tuples(keys)
    rekeyed = draw(st.sampled_from([None, None, *((one, one) for one in REKEYED), (held_back, REKEYED[1])]))
    builder, streams, logs = StreamsBuilder(), {}, {}
    cuts = draw(st.integers(0, 3))
    names = draw(st.permutations(["events", "others"]))  # their order decides ties
    for index, name in enumerate(names):
        of_value, values = draw(st.sampled_from([ROW_VALUES, ROW_VALUES, BARE_VALUE]))
        rows = draw(rows_of(keys, values))
        inner = sorted(draw(st.lists(st.integers(0, len(rows)), min_size=cuts, max_size=cuts)))
        logs[name] = Log((*columns, *of_value), len(columns), rows, tuple(pairwise([0, *inner, len(rows)])))
        prefix = draw(st.sampled_from([*PREFIXES, *(ON_ROWS if len(of_value) > 1 else [])]))
        streams[name] = prefix(builder.stream(name))
        if rekeyed:
            streams[name] = rekeyed[index](streams[name])
    joiner, value = draw(st.sampled_from(CARELESS if draw(st.integers(0, 9)) == 9 else JOINERS))
    options = {"value": value, "with_key": joiner is with_key}
    joined = join(draw, streams["events"], streams["others"], joiner, options)
    draw(st.sampled_from(SUFFIXES))(joined).to("results")

    ends = zip(*(log.bounds for log in logs.values()), strict=True)
    highest = [
        max(
            (row[0] for log, (_, end) in zip(logs.values(), both, strict=True) for row in log.rows[:end]),
            default=UNKNOWN,
        )
        for both in ends
    ]
    ahead = draw(st.sampled_from([0, 0, 5, 30]))
    jumps = draw(st.booleans())
    epochs = [
        Epoch(number, time + ahead if time >= 0 else time, 100 + number if jumps else UNKNOWN)
        for number, time in enumerate(highest, start=1)
    ]
    if draw(st.booleans()):
        epochs.append(Epoch(len(epochs) + 1, UNKNOWN, is_final=True))
        logs = {name: log._replace(bounds=(*log.bounds, (len(log.rows),) * 2)) for name, log in logs.items()}
    semantics = Semantics(
        stream_time=draw(st.sampled_from(["max", "min"])),
        stream_time_from=draw(st.sampled_from(["records", "watermark"])),
        wall_clock="run" if jumps else "stream_time",
    )
    limits = draw(st.sampled_from(LIMITS)) if draw(st.integers(0, 9)) == 9 else Limits()
    return TwoTopics(builder.build(), logs, tuple(epochs), semantics, limits)


def of_streams(draw: Any, left: KStream, right: KStream, joiner: Any, options: Any) -> KStream:
    size, grace = draw(st.integers(0, 8)), draw(st.sampled_from([0, 2, 5, 40]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        windows = JoinWindows.of(f"{size}ms", grace=f"{grace}ms" if draw(st.integers(0, 4)) else None)
        if draw(st.booleans()):
            windows = windows.after(f"{draw(st.integers(-size, 8))}ms")
        if windows.after_ms >= 0 and draw(st.booleans()):
            windows = windows.before(f"{draw(st.integers(-windows.after_ms, 8))}ms")
    store: Any = "kept"
    if draw(st.booleans()):
        longer = [f"{windows.needed_retention_ms + draw(st.integers(0, 30))}ms" for _ in range(2)]
        store = tuple(Materialized.as_(f"kept-{n}", retention=one) for n, one in enumerate(longer))
    kind = draw(st.sampled_from(["join", "left_join", "outer_join"]))
    return getattr(left, kind)(right, joiner, windows, name="close", store=store, **options)


def of_table(draw: Any, left: KStream, right: KStream, joiner: Any, options: Any) -> KStream:
    kind = draw(st.sampled_from(["join", "left_join"]))
    return getattr(left, kind)(right.to_table(store="rows"), joiner, name="close", **options)


def of_tables(draw: Any, left: KStream, right: KStream, joiner: Any, options: Any) -> KStream:
    kind = draw(st.sampled_from(["join", "left_join", "outer_join"]))
    tables = [stream.to_table(store=name) for stream, name in ((left, "left-rows"), (right, "right-rows"))]
    both = text if options["with_key"] else joiner
    return getattr(tables[0], kind)(tables[1], both, name="close", value=options["value"]).to_stream()


@examples(120)
@given(case=jobs(of_streams), data=st.data())
def test_both_execution_modes_join_streams_alike(case: TwoTopics, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


@examples(80)
@given(case=jobs(of_table), data=st.data())
def test_both_execution_modes_join_a_stream_with_a_table_alike(case: TwoTopics, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


@examples(80)
@given(case=jobs(of_tables), data=st.data())
def test_both_execution_modes_join_tables_alike(case: TwoTopics, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


@pytest.mark.parametrize("execution", [Execution.RECORD, Execution.AUTO])
def test_the_end_of_time_ends_waits_that_are_shorter_than_nothing(execution: Execution, tmp_path: Path) -> None:
    """The window lies before the record, so its wait is over before it begins; a spill was asked beyond 64 bits for it."""
    builder = StreamsBuilder()
    earlier = JoinWindows.of("9ms", grace="1ms").after("-5ms")
    joined = builder.stream("events").left_join(builder.stream("others"), text, earlier, name="close", value=str)
    joined.to("results")
    columns = (Column("user", "string"), Column("amount", "long"))
    logs = {
        "events": Log(columns, 1, [(20, "a", 1), (30, "b", 2)], ((0, 2), (2, 2))),
        "others": Log(columns, 1, [(12, "a", 3)], ((0, 1), (1, 1))),
    }
    epochs = (Epoch(1, 30), Epoch(2, UNKNOWN, is_final=True))
    case = TwoTopics(builder.build(), logs, epochs, Semantics())
    written = replay(case, write_logs(case, tmp_path / "log", 1), tmp_path, [(0, 2)], [execution])
    (path,) = written[0, 0][0].files["output/results"]
    assert pq.read_table(path, columns=["value"]).column(0).to_pylist() == ["1 + 3", "2 + None"]


def hold_execution_modes_against_each_other(case: TwoTopics, data: st.DataObject) -> None:
    parts = case.topology.sub_topologies()
    (part,) = (part for part in parts if any(node.name == "close" for node in part.nodes))
    try:
        plan_vectorized(case.topology, part, shapes(case))
    except NotVectorizableError as reason:
        assume("different types" not in str(reason))  # of the keys of the two logs
        raise
    cuts, modes = drawn_runs(len(case.epochs), data)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = write_logs(case, root / "log", data.draw(st.integers(1, 2)))
        expected = _outcome(case, files, root / "records", cuts, [Execution.RECORD] * len(cuts))
        if "outputs_per_record" in expected:  # windows above the join do not count their outputs on columns
            assume(any(repr(sink.topic) in expected for sink in part.sinks))
        with (
            patch.object(batch_size, "read_rows", return_value=data.draw(st.sampled_from([1, 3, 100]))),
            patch.object(stream_task, "MOST_PAIRS", data.draw(st.sampled_from([1, 4, 1_000]))),
            patch.object(stream_task, "IDLE_KEYS", data.draw(st.sampled_from([0, 1_000]))),
            patch.object(value_rows, "SPARE", data.draw(st.sampled_from([0, 1_000]))),
        ):
            found = _outcome(case, files, root / "columns", cuts, modes)
        if isinstance(expected, str) or isinstance(found, str):
            event("fails")
            assert found == expected
            return
        for task, written in expected.items():
            if task[0] == part.index and any(one.report.is_vectorized for one in found[task]):
                event("vectorized")
            assert_equal(found[task], written)


def _outcome(
    case: TwoTopics, files: Any, root: Path, cuts: list[tuple[int, int]], modes: list[Execution]
) -> Stages | str:
    try:
        return replay(case, files, root, cuts, modes)
    except RewindowError as error:
        return f"{type(error).__name__}: {error}"
