"""Windows behind Python functions: when they stay vectorized, and what happens if a function fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from rewindow import Count, Last, Max, Sum, Topology
from rewindow.contracts.tasks import Execution, LogSlice, TaskWork
from rewindow.engine.worker.task_execution import run_tasks
from rewindow.errors import DataError
from rewindow.streams.serde.schema import Column
from tests.engine.executions import replay, sub_topology_work, write_log
from tests.engine.test_vectorized_execution import both, case, topology


@pytest.mark.parametrize(
    ("stream", "aggregate", "is_vectorized"),
    [
        (lambda s: s.filter(lambda key, value: key != "b" and value.amount % 2 == 0), Last("amount"), True),
        (lambda s: s.map_values(lambda v: v.amount * 2, value=int), Last(), True),
        (lambda s: s.map_values(lambda v: None if v.amount == 20 else v.amount, value=int), Last(), True),
        (lambda s: s.flat_map_values(lambda v: range(v.amount % 4), value=int), Sum(), True),
        (lambda s: s.map_values(lambda v: v.amount, value=int).filter_not(lambda _, v: v > 30), Max(), True),
        (lambda s: s.map_values(lambda v: v.amount / 2 if v.amount % 2 else v.amount // 2, value=float), Sum(), False),
        (lambda s: s.map_values(lambda v: v.amount > 20, value=int), Count(), True),
        (lambda s: s.map_values(lambda v: "\ud800" if v.amount == 20 else "a", value=str), Count(), True),
    ],
)
def test_windows_behind_functions_stay_vectorized_while_results_have_the_declared_type(
    tmp_path, stream, aggregate, is_vectorized
):
    rows = [(time, "abc"[time % 3], time) for time in range(60)]
    runs = both(case(aggregate, Column("amount", "long"), rows, 3, stream), tmp_path, [(0, 1), (1, 3)])
    assert [run.report.is_vectorized for run in runs] == [is_vectorized] * 2


@pytest.mark.parametrize(
    ("stream", "aggregate", "message"),
    [
        (lambda s: s.map_values(lambda v: 1 // (v.amount - 20), value=int), Count(), "map-values-1.*ZeroDivisionError"),
        (lambda s: s.filter(lambda _, v: v.amonut > 1), Count(), "filter-1.*has no attribute 'amonut'"),
        (lambda s: s.map_values(lambda v: 2**63 + v.amount, value=int), Last(), "9223372036854775808"),
        (lambda s: s.map_values(lambda v: next(iter(())), value=int), Count(), "map-values-1.*StopIteration"),
        (lambda s: s.filter(lambda _, v: next(iter(()))), Count(), "filter-1.*StopIteration"),
        (lambda s: s.flat_map_values(lambda v: next(iter(())), value=int), Count(), "flat-map-values-1.*StopIteration"),
        (lambda s: s.map_values(lambda v: f"{v.amount}", value=int), Last(), "'0' \\(str\\)"),
    ],
)
def test_a_function_that_fails_has_the_error_of_record_execution(tmp_path, stream, aggregate, message):
    one = case(aggregate, Column("amount", "long"), [(time, "a", time) for time in range(60)], stream=stream)
    log, errors = write_log(one, tmp_path / "log"), []
    for execution in (Execution.AUTO, Execution.RECORD):
        with pytest.raises(DataError, match=message) as raised:
            replay(one, log, tmp_path / execution, [(0, 1)], [execution])
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


def test_user_code_of_two_tasks_shares_no_objects(tmp_path):
    """As in record execution, where each task builds its own topology."""

    def build() -> Topology:
        seen: list[Any] = []
        return topology(Last(), lambda s: s.map_values(lambda v: seen.append(v) or len(seen), value=int))

    one = case(Last(), Column("amount", "long"), [(time, "a", time) for time in range(60)])._replace(topology=build())
    work = sub_topology_work(one, tmp_path / "w", 1, (0, 1), Execution.AUTO)
    work = replace(work, code=replace(work.code, load_topology=build))
    slices = {"events": LogSlice(write_log(one, tmp_path / "log"), one.bounds)}
    tasks = [TaskWork(partition, slices, {}, None, {"windows": (), "closed": ()}) for partition in (0, 1)]
    for report in run_tasks(work, tasks):
        assert report.is_vectorized
        (file,) = [file for file in report.files if file.target == "output/finals"]
        assert pq.read_table(f"{work.staging.roots[file.target]}/{file.path}")["value"].to_pylist() == [
            10,
            20,
            30,
            40,
            50,
        ]
