"""Inline execution of small sub-topologies: which ones are small, and what user code may do to the process."""

from __future__ import annotations

import os
import sys
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rewindow import StreamsBuilder, Topology
from rewindow.contracts.staged_files import SHARED
from rewindow.contracts.tasks import (
    Epoch,
    Execution,
    JobCode,
    LogSlice,
    LogTable,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.engine.worker.local_engine import InlineEngine, size_of
from rewindow.streams.settings import Semantics
from tests.engine.test_record_execution import EPOCHS, PARTITIONS, logs, random_log, write_files
from tests.refusals import containing, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from rewindow.contracts.staged_files import TaskReport

RECORDS = 3000


def the_job(work: Callable[[], Any]) -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").peek(lambda _key, _value: work(), name="work").to("results")
    return builder.build()


def talking() -> Topology:
    return the_job(lambda: print("hello"))


def leaving() -> Topology:
    return the_job(lambda: sys.exit(0))


def leaving_at_once() -> Topology:
    return the_job(lambda: os._exit(0))


def quiet() -> Topology:
    return the_job(lambda: None)


class FakeSpark:
    """A fake of the Spark engine that records its work."""

    def __init__(self) -> None:
        self.works: list[SubTopologyWork] = []

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        self.works.append(work)
        return []


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return write_files(random_log(1), tmp_path_factory.mktemp("log"))


def make_work(log: Any, root: Path, make: Callable[[], Topology] = quiet, **more: Any) -> SubTopologyWork:
    tasks = [
        TaskWork(p, {"events": LogSlice(log.files[p], tuple(log.bounds(p)))}, {}, None, {}) for p in range(PARTITIONS)
    ]
    epochs = tuple(Epoch(epoch + 1, log.watermark(epoch)) for epoch in range(EPOCHS))
    identity, code = RunIdentity("", 1, "attempt", make().fingerprint()), JobCode(make, logs, Semantics())
    staging = StagingArea({"output/results": str(root / "results")}, PARTITIONS)
    return SubTopologyWork(0, identity, code, epochs, tuple(tasks), staging, **more)


def run(work: SubTopologyWork, most: int = RECORDS) -> tuple[list[TaskReport], FakeSpark]:
    spark = FakeSpark()
    return InlineEngine(lambda: spark, most=most).run_sub_topology(work), spark


def test_a_small_sub_topology_runs_inline_and_a_larger_one_on_spark(log: Any, tmp_path: Path) -> None:
    work = make_work(log, tmp_path)
    reports, spark = run(work)
    assert size_of(work) == RECORDS == sum(report.consumed.get("events", 0) for report in reports)
    assert [report.partition for report in reports] == [SHARED, *range(PARTITIONS)]
    assert not spark.works
    _, spark = run(work, RECORDS - 1)
    assert spark.works == [replace(work, execution=Execution.RECORD)]


def test_what_is_left_to_spark_is_told_with_the_reason(log: Any, tmp_path: Path) -> None:
    told: list[str] = []

    def tell(most: int, **more: Any) -> str:
        work = make_work(log, tmp_path, **more)
        InlineEngine(FakeSpark, most=most, on_other=told.append).run_sub_topology(work)
        return told[-1] if told else ""

    assert tell(RECORDS) == ""
    size = f"about {RECORDS:,} records to read and rows to restore"
    assert tell(RECORDS - 1) == f"run sub-topology 0: {size} are more than `inline: {RECORDS - 1}`"
    tables = {"events": LogTable("somewhere", "its offsets are those of its source")}
    assert tell(RECORDS, tables=tables) == (
        "run sub-topology 0: tasks cannot open the log of 'events': its offsets are those of its source"
    )


def test_a_run_in_this_process_reports_the_share_that_is_done(log: Any, tmp_path: Path) -> None:
    shares: list[float] = []
    engine = InlineEngine(FakeSpark, most=RECORDS, on_share=shares.append)
    engine.run_sub_topology(make_work(log, tmp_path))
    assert shares == sorted(shares)
    assert (len(shares), shares[-1]) == (PARTITIONS, 1.0)


def test_a_target_may_demand_vectorized_execution(log: Any, tmp_path: Path) -> None:
    engine = InlineEngine(FakeSpark, most=RECORDS, execution=Execution.VECTORIZED)
    with refused(
        "vectorized-execution-unsupported",
        sub_topology=0,
        reason=containing("vectorized execution takes a chain: "),
    ):
        engine.run_sub_topology(make_work(log, tmp_path))


def test_a_log_that_only_spark_can_read_runs_on_spark(log: Any, tmp_path: Path) -> None:
    _, spark = run(make_work(log, tmp_path, tables={"events": LogTable("somewhere", "governed")}))
    assert len(spark.works) == 1


def test_prints_of_user_code_go_to_stderr(log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(make_work(log, tmp_path, talking))
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("hello\n")) == ("", RECORDS)


@pytest.mark.parametrize("make", [leaving, leaving_at_once])
def test_user_code_cannot_end_the_command_with_success(log: Any, tmp_path: Path, make: Callable[[], Topology]) -> None:
    leave = os._exit
    with refused("node-failed", node="work"):
        run(make_work(log, tmp_path, make))
    assert os._exit is leave


def test_an_unexpected_error_has_the_same_message_as_from_a_worker(
    log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        message = "the disk is away"
        raise OSError(message)

    monkeypatch.setattr("rewindow.engine.worker.local_engine.run_tasks", broken)
    with refused(
        "worker-file-failed",
        reason=containing("the disk is away"),
        fix="a file could not be read or written: run again",
    ):
        run(make_work(log, tmp_path))


def test_rewindow_errors_pass_unchanged(log: Any, tmp_path: Path) -> None:
    work = make_work(log, tmp_path)
    with refused("topology-not-deterministic"):
        run(replace(work, identity=replace(work.identity, fingerprint="another")))


def test_the_topology_for_planning_is_built_once_and_each_record_task_builds_its_own(log: Any, tmp_path: Path) -> None:
    built: list[Topology] = []

    def make() -> Topology:
        built.append(quiet())
        return built[-1]

    work = make_work(log, tmp_path, make)
    built.clear()
    run(work)
    run(work)
    assert len(built) == 1 + 2 * PARTITIONS


def test_job_code_travels_without_its_topology() -> None:
    code = JobCode(quiet, logs, Semantics())
    assert code.topology is code.topology
    assert "topology" not in vars(copy(code))
