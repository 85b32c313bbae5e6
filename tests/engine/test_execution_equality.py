"""L4: vectorized execution writes what record execution writes, for any data, runs, batch sizes and earlier modes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import assume, given
from hypothesis import strategies as st

from rewindow import (
    Collect,
    Count,
    EmitStrategy,
    First,
    Last,
    Max,
    Mean,
    Min,
    SessionWindows,
    StreamsBuilder,
    Sum,
    TimeWindows,
    Topology,
    until_window_closes,
)
from rewindow.contracts.tasks import Epoch, Execution
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.vectorized.arrays import NotVectorizableError
from rewindow.engine.worker.vectorized.choose_execution import plan_vectorized
from rewindow.errors import DataError
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import Semantics
from tests.engine.executions import Case, assert_equal, logs, replay, write_log
from tests.engine.prefixes import ON_MADE, chains_of_functions
from tests.engine.stages import drawn_runs
from tests.properties.clock_changes import Timed
from tests.properties.effort import examples
from tests.refusals import refused

KEYS: dict[str, tuple[tuple[Column, ...], Any]] = {
    "text": ((Column("user", "string"),), st.sampled_from(["a", "b", "ab", "a\0", "ä", "𝄞", "z", "", None])),
    "long": ((Column("user", "long"),), st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 255, None])),
    "flag": ((Column("user", "boolean"),), st.sampled_from([True, False, None])),
    "bytes": ((Column("user", "binary"),), st.sampled_from([b"", b"\0", b"\xff", b"a", b"a\0"])),
}
ROW_KEY = (
    (Column("site", "string"), Column("room", "long")),
    st.tuples(st.sampled_from(["n", "s", "n\0", None]), st.sampled_from([1, -1, None])),
)
VALUES = (
    Column("whole", "long"),
    Column("real", "double"),
    Column("money", "decimal(10,2)"),
    Column("flag", "boolean"),
    Column("note", "string"),
    Column("raw", "binary"),
    Column("free", "json"),
)
COLUMN_VALUES = st.tuples(
    st.one_of(st.none(), st.integers(-9, 9), st.sampled_from([2**53 + 1, -(2**60)])),
    st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, -0.0, 1e16, -1e16, 1e-9, float("inf"), 7.0])),
    st.one_of(st.none(), st.sampled_from([Decimal("0.10"), Decimal("-3.33"), Decimal("12345678.90"), Decimal("0.00")])),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "", "a", 'say "no"', "a,\\\n", "𝄞\0ä"]),
    st.sampled_from([None, b"", b"\0\xff"]),
    st.sampled_from([None, "null", "1", '{"b": 1.50, "a": [null, "ä"]}', '{"$decimal":"1.0"}', "[ ]"]),
)
NUMBERS = [column.name for column in VALUES[:4]]
SCALAR_COLUMNS = [column.name for column in VALUES if column.type != "json"]
ONE = st.one_of(
    st.just(Count()),
    st.builds(Sum, st.sampled_from(NUMBERS)),
    st.builds(Mean, st.sampled_from(NUMBERS)),
    *(st.builds(one, st.sampled_from(SCALAR_COLUMNS)) for one in (Min, Max, First, Last)),
    st.builds(Collect, st.sampled_from([None, *(column.name for column in VALUES)])),
)
CONDITIONS = [
    "",
    "whole > 0 or real <= 0.25",
    "not (whole between -3 and 3) and flag is not null",
    "flag",
    "not flag or timestamp >= 22",
    "real <> 0 and not whole in (1, 2, -9)",
]
SELECTS = [
    "select whole, real, money, flag, note, raw, free, 1 as one",
    "select real as whole, whole as real, flag, money, 'x' as note, raw, free",  # floats for integers, and vice versa
    "select whole * 3 - timestamp as whole, real + whole as real, money, flag, note, raw, free",
    "select whole * whole as whole, -0.5 * real + 1 as real, money, true as flag, note, raw, raw as free",
    "select whole, (real - 1) * (whole + 0.25) as real, money, flag, whole as timestamp, note, raw, free",
]
IN_SESSION = st.one_of(
    st.just(Count()),
    st.builds(Sum, st.sampled_from(["whole", "real"])),
    st.builds(Mean, st.sampled_from(["whole", "real"])),
    st.builds(Max, st.sampled_from(["whole", "real"])),
    st.builds(First, st.sampled_from(["whole", "real"])),
    st.builds(Last, st.sampled_from(["whole", "real"])),
)
NOT_SUPPRESSED = st.builds(
    lambda one, field: one(field), st.sampled_from([Min, Max, First, Last]), st.sampled_from(["money", "note"])
)
LISTS = st.builds(Collect, st.sampled_from([None, "whole", "real", "note", "free"]))


def _of(one: Any) -> Any:
    """Generate one unnamed aggregate from ``one``, or several named ones."""
    return st.one_of(
        one, st.lists(one, min_size=1, max_size=3).map(lambda many: {f"a{n}": a for n, a in enumerate(many)})
    )


@st.composite
def cases(
    draw: Any,
    *,
    sessions: bool = False,
    functions: bool = False,
    aggregates: Any = None,
    behind: Any = None,
    timed: Timed | None = None,
) -> Case:
    """Generate a job. ``aggregates``: those to draw from; ``behind``: what is done with the final results.

    ``timed``: windows in local time, and the times of the records.
    """
    size = draw(st.integers(1, 12))
    windows: Any = TimeWindows.of(f"{size}ms", grace=f"{draw(st.integers(0, 8))}ms")
    if timed is not None:
        windows = timed.windows
    elif sessions:
        gap = draw(st.integers(0, 6))
        windows = SessionWindows.of(f"{gap}ms", grace=f"{draw(st.integers(0 if gap else 1, 8))}ms")
    elif draw(st.booleans()):
        windows = windows.advance_by(f"{draw(st.integers(1, size))}ms")
    columns, keys = draw(st.sampled_from([*KEYS.values(), ROW_KEY]))
    key_values = keys if len(columns) > 1 else st.tuples(keys)
    count = draw(st.sampled_from([0, 1, 5, 20, 60]))
    steps = draw(st.lists(st.tuples(st.integers(-15, 6), key_values, COLUMN_VALUES), min_size=count, max_size=count))
    rows, now = [], 20
    for step, key, values in steps:
        now = max(now, now + step)
        rows.append((max(0, now + min(step, 0)), *key, *values))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    bounds = list(pairwise([0, *cuts, len(rows)]))
    highest = [max((row[0] for row in rows[:end]), default=UNKNOWN) for _, end in bounds]
    ahead = draw(st.sampled_from([0, 0, 5, 30]))
    epochs = [Epoch(number, time + ahead if time >= 0 else time) for number, time in enumerate(highest, start=1)]
    if timed is not None:
        rows = [(timed.time(row[0]), *row[1:]) for row in rows]
        epochs = [
            replace(one, watermark_ms=timed.time(one.watermark_ms)) if one.watermark_ms >= 0 else one for one in epochs
        ]
    if draw(st.booleans()):
        bounds.append((len(rows), len(rows)))
        epochs.append(Epoch(len(epochs) + 1, UNKNOWN, is_final=True))
    semantics = Semantics(stream_time_from=draw(st.sampled_from(["records", "watermark"])))
    prefix: list[Any] = draw(st.lists(st.sampled_from([*CONDITIONS, *SELECTS]), max_size=3))
    emits = draw(st.booleans())
    if aggregates is not None:
        aggregate = draw(_of(aggregates))
    elif functions:
        prefix = draw(chains_of_functions())
        aggregate = draw(_of(IN_SESSION if sessions else ON_MADE))
    else:
        aggregate = draw(_aggregates(sessions=sessions, emits=emits))
    if sessions and draw(st.booleans()):
        rows = [(*row[: 1 + len(columns)], *_filled(row[1 + len(columns) :])) for row in rows]
    topology = _topology(windows, aggregate, prefix, emits=emits, behind=behind or (lambda finals: finals.to("finals")))
    return Case(topology, (*columns, *VALUES), len(columns), rows, tuple(epochs), tuple(bounds), semantics)


def _aggregates(*, sessions: bool, emits: bool) -> Any:
    """Generate aggregates that vectorized execution supports; above a suppress, sessions need results with known sizes."""
    if not sessions:
        return _of(ONE)
    if emits:
        return _of(st.one_of(IN_SESSION, LISTS, NOT_SUPPRESSED, st.just(Sum("money"))))
    return st.one_of(_of(IN_SESSION), _of(st.one_of(st.just(Count()), LISTS)))


def _filled(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return values without nulls: with nulls, most sessions need record execution."""
    whole, real, money, flag, note, *others = values
    return (whole or 0, 0.3 if real is None else real, money or Decimal("0.50"), flag, note or "", *others)


def _topology(windows: Any, aggregate: Any, prefix: list[Any], *, emits: bool, behind: Any) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("events")
    for operator in filter(None, prefix):
        if callable(operator):
            stream = operator(stream)
        elif operator.startswith("select "):
            stream = stream.select(operator.removeprefix("select "))
        else:
            stream = stream.where(operator)
    windowed = stream.group_by_key().windowed_by(windows)
    if emits:
        table = windowed.emit_strategy(EmitStrategy.on_window_close()).aggregate(aggregate, store="windows")
    else:
        table = windowed.aggregate(aggregate, store="windows").suppress(until_window_closes(), name="closed")
    behind(table.to_stream())
    return builder.build()


@examples(40)
@given(case=cases(), data=st.data())
def test_both_execution_modes_write_the_same(case: Case, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


@examples(30)
@given(case=st.booleans().flatmap(lambda sessions: cases(sessions=sessions, functions=True)), data=st.data())
def test_both_execution_modes_write_the_same_behind_python_functions(case: Case, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


@examples(40)
@given(case=cases(sessions=True), data=st.data())
def test_both_execution_modes_write_the_same_sessions(case: Case, data: st.DataObject) -> None:
    hold_execution_modes_against_each_other(case, data)


def hold_execution_modes_against_each_other(case: Case, data: st.DataObject) -> None:
    (part,) = case.topology.sub_topologies()
    try:
        plan_vectorized(case.topology, part, logs(case))
    except NotVectorizableError as reason:
        assume("compares" not in str(reason))  # a condition on a column whose type a select changed
        raise
    cuts, modes = drawn_runs(len(case.epochs), data)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        log = write_log(case, root / "log", files=data.draw(st.integers(1, 2)))
        try:
            expected = replay(case, log, root / "records", cuts, [Execution.RECORD] * len(cuts))
        except DataError:
            with refused("value-type-wrong"):
                replay(case, log, root / "columns", cuts, modes)
            return
        with patch.object(batch_size, "read_rows", return_value=data.draw(st.sampled_from([1, 2, 7, 100]))):
            found = replay(case, log, root / "columns", cuts, modes)
        assert_equal(found, expected)
