"""Edge cases of vectorized execution: fallbacks, dropped keys, pruned reads, and the output of `explain`."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest

from rewindow import (
    Collect,
    Count,
    First,
    Last,
    Materialized,
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
from rewindow.dsl.operators.compound import Reduce
from rewindow.engine.worker import parquet_writer
from rewindow.engine.worker.vectorized import window_results as final_results
from rewindow.engine.worker.vectorized.choose_execution import describe_execution, why_one_by_one
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import OnError, Semantics, Settings
from tests.engine.executions import Case, assert_equal, logs, replay, write_log
from tests.refusals import refused

KEY = Column("user", "string")


def topology(aggregate: Any, stream: Any = None) -> Topology:
    builder = StreamsBuilder()
    stream = stream(builder.stream("events")) if stream else builder.stream("events")
    (
        stream.group_by_key()
        .windowed_by(TimeWindows.of("10ms", grace="5ms"))
        .aggregate(aggregate, store="windows")
        .suppress(until_window_closes(), name="closed")
        .to_stream()
        .to("finals")
    )
    return builder.build()


def case(aggregate: Any, value: Column, rows: list[tuple[Any, ...]], epochs: int = 1, stream: Any = None) -> Case:
    cuts = [len(rows) * number // epochs for number in range(epochs + 1)]
    return Case(
        topology(aggregate, stream),
        (KEY, value),
        1,
        rows,
        tuple(Epoch(number, -1) for number in range(1, epochs + 1)),
        tuple(pairwise(cuts)),
        Semantics(),
    )


def both(case: Case, root: Path, cuts: list[tuple[int, int]]) -> list[Any]:
    """Replay in both execution modes, compare them, and return the runs of vectorized execution."""
    log = write_log(case, root / "log")
    found = replay(case, log, root / "columns", cuts, [Execution.AUTO] * len(cuts))
    assert_equal(found, replay(case, log, root / "records", cuts, [Execution.RECORD] * len(cuts)))
    return found


@pytest.mark.parametrize(
    ("aggregate", "value", "values"),
    [
        (Sum("amount"), Column("amount", "decimal(20,0)"), [Decimal(10**19), Decimal(10**19), Decimal(1)]),
        (Mean("amount"), Column("amount", "decimal(30,2)"), [Decimal(10**25), Decimal(1), Decimal(2)]),
        (Sum("amount"), Column("amount", "long"), [2**63 - 1, -1, 0]),
    ],
)
def test_values_beyond_the_kernels_fall_back_to_record_execution(tmp_path, aggregate, value, values):
    rows = [(time, "k", one) for time, one in enumerate(values)] + [(30, "z", values[-1])]
    (left,) = both(case(aggregate, value, rows), tmp_path, [(0, 1)])
    assert not left.report.is_vectorized
    assert len(left.rows("output/finals")) == 1


NAN = math.nan


@pytest.mark.parametrize(
    "values", [*permutations([NAN, 1.0, 2.0]), (NAN, NAN, NAN), (None, NAN, None), (math.inf, NAN, -math.inf)]
)
def test_nan_is_the_largest_number_in_every_order_and_cut(tmp_path, values):
    """The minimum and maximum of rows in one run, and of a state that each of three runs restores."""
    aggregate = {"least": Min("amount"), "most": Max("amount")}
    rows = [(time, "k", one) for time, one in enumerate(values)] + [(30, "z", 1.0)]
    given = [one for one in values if one is not None]
    numbers = [one for one in given if not math.isnan(one)]
    expected = (min(numbers, default=NAN), NAN if len(numbers) < len(given) else max(numbers))
    for name, epochs, cuts in (("whole", 1, [(0, 1)]), ("cut", 4, [(0, 1), (1, 2), (2, 4)])):
        runs = both(case(aggregate, Column("amount", "double"), rows, epochs), tmp_path / name, cuts)
        assert all(run.report.is_vectorized for run in runs)
        (row,) = [row for run in runs for row in run.rows("output/finals") if "'k'" in row]
        assert "'least': {!r}, 'most': {!r},".format(*expected) in row


def test_a_select_beyond_64_bits_falls_back_to_record_execution(tmp_path):
    def stream(s):
        return s.select("amount * amount as square, 1.5 * amount as more").where("square > 3")

    rows = [(time, "k", amount) for time, amount in enumerate([3, 2**32, None, -4])] + [(30, "z", 1)]
    wide = case({"n": Count(), "most": Max("more")}, Column("amount", "long"), rows, stream=stream)
    (left,) = both(wide, tmp_path / "unread", [(0, 1)])
    assert not left.report.is_vectorized
    few = case({"n": Count(), "most": Max("more")}, Column("amount", "long"), rows[:1] + rows[2:], stream=stream)
    (left,) = both(few, tmp_path / "few", [(0, 1)])
    assert left.report.is_vectorized


def test_a_sum_that_does_not_fit_has_the_error_of_record_execution(tmp_path):
    rows = [(1, "k", 2**63 - 1), (2, "k", 1)]
    long = case(Sum("amount"), Column("amount", "long"), rows)
    with refused("value-type-wrong", declared="long"):
        replay(long, write_log(long, tmp_path / "log"), tmp_path, [(0, 1)], [Execution.AUTO])
    assert not list((tmp_path / "1").rglob("*.parquet")), "files of the abandoned attempt remain"


def test_keys_without_a_window_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(final_results, "_IDLE_KEYS", 3)
    kept: list[int] = []
    forget = final_results.WindowTask._forget
    monkeypatch.setattr(
        final_results.WindowTask, "_forget", lambda task: (forget(task), kept.append(len(task.keys)))[0]
    )
    rows = [(time, f"key-{time}", 1) for time in range(0, 3000, 7)]
    (left,) = both(case({"n": Count(), "sum": Sum("amount")}, Column("amount", "long"), rows, 20), tmp_path, [(0, 20)])
    assert left.report.is_vectorized
    assert max(kept) < 60


def test_closed_windows_are_not_read_from_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "ROW_GROUP", 2)
    rows = [(time, f"key-{time % 3}", time) for time in range(0, 200, 2)]
    left = both(case({"most": Max("amount")}, Column("amount", "long"), rows, 5), tmp_path, [(0, 2), (2, 3), (3, 5)])
    assert all(one.report.is_vectorized for one in left)


@pytest.mark.parametrize(
    ("aggregate", "value", "stream", "expected"),
    [
        (Count(), "long", None, "vectorized execution"),
        (Sum("amount"), "json", None, r"record execution .*: sum\(amount\) of type json has no kernel"),
        (Mean("amount"), "string", None, r"mean\(amount\) of type string has no kernel"),
        (Count(), "long", lambda s: s.where("amount > 1"), "vectorized execution"),
        (Count(), "long", lambda s: s.where("amount > 1.5"), "where-1: amount > 1.5 compares long with another type"),
        (Collect("amount"), "json", None, "vectorized execution"),
        (Collect(), "string", lambda s: s.select("amount as text, key as user"), "vectorized execution"),
        (Reduce(max), "long", None, r"record execution .*: the aggregate reduce has no kernel"),
        (First("amount"), "json", None, r"first\(amount\) of type json has no kernel"),
        (Last(), "long", None, r"last\(\) of whole rows has no kernel"),
        ({"a": First("amount"), "z": Last("amount")}, "long", None, "vectorized execution"),
        (Sum("twice"), "long", lambda s: s.select("amount * 2 as twice"), "vectorized execution"),
        (Max("user"), "long", lambda s: s.select("key as user"), "vectorized execution"),
        (
            Max("late"),
            "long",
            lambda s: s.where("amount > 1").select("timestamp - amount as late").where("late > 3"),
            "vectorized execution",
        ),
        (Count(), "json", lambda s: s.select("amount + 1 as n"), r"select-1: \(amount \+ 1\) computes with json"),
        (
            Count(),
            "long",
            lambda s: s.filter(lambda _k, _v: True),
            "filter-1: Python functions, called record by record",
        ),
        (Count(), "long", lambda s: s.map_values(lambda v: v), "map-values-1: Python functions"),
        (
            Sum(),
            "long",
            lambda s: s.map_values(lambda v: v),
            r"sum\(\) needs values of a declared type: give map_values",
        ),
        (Sum(), "long", lambda s: s.map_values(lambda v: v, value=Decimal), "value is a Decimal that a function makes"),
    ],
)
def test_explain_states_the_execution_and_the_reason(aggregate, value, stream, expected):
    one = case(aggregate, Column("amount", value), [], stream=stream)
    part = one.topology.sub_topologies()[-1]
    (shapes,) = logs(one).values()
    text = describe_execution(Execution.AUTO, one.topology, part, {"events": shapes}, one_by_one="")
    assert re.search(expected, text), text


def test_the_target_can_set_record_execution():
    one = case(Count(), Column("amount", "long"), [])
    (part,) = one.topology.sub_topologies()
    assert "execution: record" in describe_execution(Execution.RECORD, one.topology, part, logs(one), one_by_one="")


QUARANTINES = OnError(quarantines=True)


@pytest.mark.parametrize(
    ("settings", "has_quarantine", "expected"),
    [
        (Settings(keeps_dropped=False), False, ["", ""]),
        (Settings(), False, ["", ""]),
        (Settings(keeps_dropped=False), True, ["", ""]),
        (Settings(), True, ["the job has `dropped: quarantine`"] * 2),
        (Settings({"of": OnError(3)}), False, ["node of has `on_error: retry 3`", ""]),
        (
            Settings({"of": OnError(2, quarantines=True)}, keeps_dropped=False),
            True,
            [
                "node of has `on_error: retry 2 quarantine`",
                "the job quarantines records: node of has `on_error: retry 2 quarantine`",
            ],
        ),
        (
            Settings({"of": QUARANTINES}),
            True,
            [
                "node of has `on_error: quarantine`, and the job has `dropped: quarantine`",
                "the job has `dropped: quarantine`",
            ],
        ),
    ],
)
def test_settings_that_need_record_execution_are_named(settings, has_quarantine, expected):
    builder = StreamsBuilder()
    counts = builder.stream("events").map(lambda k, v: (v, k), name="of").group_by_key()
    closed = counts.windowed_by(TimeWindows.of("1h", grace="0s")).count(store="n").suppress(until_window_closes())
    closed.to_stream().to("out")
    topology = builder.build()
    parts = topology.sub_topologies()
    assert [why_one_by_one(topology, part, settings, has_quarantine=has_quarantine) for part in parts] == expected


@pytest.mark.parametrize(
    ("store", "aggregate", "expected"),
    [
        ("sessions", {"n": Count(), "most": Max("amount")}, "vectorized execution"),
        (Materialized.as_("sessions", retention="1h"), Count(), "keeps sessions longer than they can change"),
        ("sessions", Sum("money"), "if a suppress follows sessions, their results may not be decimals, texts or bytes"),
        ("sessions", {"n": Count(), "last": Last("amount")}, "vectorized execution"),
        ("sessions", {"n": Count(), "all": Collect("amount")}, "vectorized execution"),
        ("sessions", {"most": Max("amount"), "all": Collect("amount")}, "can be combined only with count and collect"),
    ],
)
def test_explain_states_which_sessions_are_vectorized(store, aggregate, expected):
    builder = StreamsBuilder()
    windowed = builder.stream("events").group_by_key().windowed_by(SessionWindows.of("10ms", grace="5ms"))
    made = windowed.aggregate(aggregate, store=store)
    made.suppress(until_window_closes()).to_stream().to("finals")
    value = (Column("amount", "long"), Column("money", "decimal(10,2)"))
    one = Case(builder.build(), (KEY, *value), 1, [], (), (), Semantics())
    (part,) = one.topology.sub_topologies()
    assert expected in describe_execution(Execution.AUTO, one.topology, part, logs(one), one_by_one="")


def test_a_session_without_a_value_falls_back_to_record_execution(tmp_path):
    builder = StreamsBuilder()
    windowed = builder.stream("events").group_by_key().windowed_by(SessionWindows.of("0ms", grace="1ms"))
    made = windowed.aggregate(Sum("amount"), store="sessions")
    made.suppress(until_window_closes(), name="closed").to_stream().to("finals")
    rows = [(20, "a", None), (20, "a", None), (20, "a", 1), (20, "a", 2), (40, "b", 5)]
    epochs, bounds = (Epoch(1, 20), Epoch(2, 40)), ((0, 2), (2, 5))
    one = Case(builder.build(), (KEY, Column("amount", "long")), 1, rows, epochs, bounds, Semantics())
    both(one, tmp_path, [(0, 1), (1, 2)])


LISTED = {"n": Count(), "notes": Collect("note"), "rows": Collect()}


@pytest.mark.parametrize(
    ("windows", "aggregate"),
    [
        (TimeWindows.of("10ms", grace="5ms").advance_by("5ms"), LISTED | {"mean": Mean("amount"), "last": Max("note")}),
        (SessionWindows.of("3ms", grace="5ms"), LISTED),
        (SessionWindows.of("3ms", grace="5ms"), Collect("note")),
    ],
)
def test_lists_and_nulls_stay_vectorized_from_run_to_run(tmp_path, windows, aggregate):
    builder = StreamsBuilder()
    made = builder.stream("events").group_by_key().windowed_by(windows).aggregate(aggregate, store="windows")
    made.suppress(until_window_closes(), name="closed").to_stream().to("finals")
    notes = [None, "ä", 'say "no"', "a,b", "", None, "𝄞"]
    times = [20, 24, 22, 22, 29, 33, 30, 31, 60, 45, 62, 62, 61, 90]  # some late, some join two sessions
    rows = [(time, "ab"[n % 5 == 0], notes[n % len(notes)], n / 4) for n, time in enumerate(times)]
    value = (Column("note", "string"), Column("amount", "double"))
    epochs, bounds = tuple(Epoch(n, -1) for n in (1, 2, 3)), ((0, 4), (4, 9), (9, 14))
    one = Case(builder.build(), (KEY, *value), 1, rows, epochs, bounds, Semantics())
    left = both(one, tmp_path, [(0, 1), (1, 2), (2, 3)])
    assert all(run.report.is_vectorized for run in left)
    assert any("say" in row for run in left for row in run.rows("output/finals"))
