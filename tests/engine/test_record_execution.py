"""Record execution from files to files, in this process: L2 and L3 on a repartitioned, windowed topology."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow import (
    Count,
    Mean,
    Processor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    TimeWindows,
    Topology,
    until_window_closes,
)
from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import (
    Epoch,
    Execution,
    InternalFile,
    JobCode,
    LogFile,
    LogSlice,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.task_execution import run_task
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, log_shape
from rewindow.streams.settings import Semantics
from tests.refusals import containing, refused

PARTITIONS, EPOCHS = 3, 5
LOG_COLUMNS = (
    Column("offset", "long"),
    Column("timestamp", "long"),
    Column("user", "string"),
    Column("amount", "double"),
)
META = ["_partition", "_offset"]


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("events")
        .filter(lambda _user, event: event.amount is not None)
        .group_by(lambda user, _event: user[-1], key=str)
        .windowed_by(TimeWindows.of("1s", grace="300ms"))
        .aggregate({"events": Count(), "mean": Mean("amount")}, store="seconds")
        .suppress(until_window_closes())
        .to_stream()
        .to("finals")
    )
    return builder.build()


def failing_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").map_values(lambda event: 1 / (event.amount or 0), name="divide").to("finals")
    return builder.build()


def misfitting_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").map_values(lambda event: str(event.amount), value=float).to("finals")
    return builder.build()


def logs() -> LogShapes:
    key, value = log_shape((LOG_COLUMNS[2],), is_scalar=True), log_shape((LOG_COLUMNS[3],), is_scalar=False)
    return {"events": (key, value)}


@dataclass
class Log:
    """A landed log: rows, files and epoch bounds by partition."""

    rows: list[list[tuple[int, int, str, float | None]]]
    files: list[tuple[LogFile, ...]] = field(default_factory=list)

    def bounds(self, partition: int) -> list[tuple[int, int]]:
        number = len(self.rows[partition])
        ranges = [number * epoch // EPOCHS for epoch in range(EPOCHS + 1)]
        return list(pairwise(ranges))

    def watermark(self, epoch: int) -> int:
        landed = [row[1] for p in range(PARTITIONS) for row in self.rows[p][: self.bounds(p)[epoch][1]]]
        return max(landed)


def random_log(seed: int) -> Log:
    seeded = random.Random(seed)
    rows: list[list[tuple[int, int, str, float | None]]] = [[] for _ in range(PARTITIONS)]
    now = 0
    for _ in range(3000):
        now += seeded.randint(0, 20)
        user = f"u{seeded.randint(0, 50)}"
        into = rows[partition_of(user, PARTITIONS)]
        into.append((len(into), max(0, now - seeded.randint(0, 400)), user, seeded.choice([1.5, 2.25, None])))
    return Log(rows)


def write_files(log: Log, root: Path, order: random.Random | None = None, parts: int = 1) -> Log:
    """Write the log's files, ``parts`` per partition. ``order`` shuffles the rows over them, as OPTIMIZE does."""
    log.files = []
    for partition, rows in enumerate(log.rows):
        permuted = order.sample(rows, len(rows)) if order else rows
        size = len(rows) // parts + 1
        files = []
        for start in range(0, len(rows), size):
            some = permuted[start : start + size]
            buffer = StagingTarget("log/events", str(root), attempt="land", partition=partition).buffer(
                LOG_COLUMNS, ["offset"], partition
            )
            for row in some:
                buffer.append(row)
            (file,) = buffer.close()
            files.append(LogFile(f"{root}/{file.path}", min(r[0] for r in some), max(r[0] for r in some)))
        log.files.append(tuple(files))
    return log


@dataclass
class Result:
    rows: pa.Table
    states: dict[tuple[int, int], Any]
    consumed: int


def replay(
    log: Log, root: Path, ranges: list[tuple[int, int]], semantics: Semantics, make: Any = topology, seed: int = 0
) -> Result:
    """Replay epochs ``[first, end)`` run by run, each restored from the files and the state of the previous one."""
    seeded = random.Random(seed)
    states: dict[tuple[int, int], Any] = {}
    stores: dict[tuple[int, int], dict[str, list[str]]] = {}
    outputs: list[str] = []
    consumed = 0
    for run, (first, end) in enumerate(ranges, start=1):
        internal: dict[int, list[InternalFile]] = {}
        for part in make().sub_topologies():
            targets = [f"internal/{s.topic}" if s.is_internal else f"output/{s.topic}" for s in part.sinks]
            targets += [f"changelog/{store.name}" for store in part.stores]
            roots = {target: str(root / str(run) / target) for target in targets}
            epochs = tuple(Epoch(e + 1, log.watermark(e)) for e in range(first, end))
            tasks = []
            for p in range(PARTITIONS):
                at = (part.index, p)
                state = TaskState.from_json(json.loads(json.dumps(states[at]))) if at in states else None
                slices = {"events": LogSlice(log.files[p], tuple(log.bounds(p)[first:end]))}
                internal_files = {"seconds-repartition": tuple(internal.get(p, ()))}
                changed = {name: tuple(paths) for name, paths in stores.get(at, {}).items()}
                tasks.append(TaskWork(p, slices, internal_files, state, changed))
            identity = RunIdentity("", run, f"attempt{run}", make().fingerprint())
            code, staging = JobCode(make, logs, semantics), StagingArea(roots, PARTITIONS)
            work = SubTopologyWork(part.index, identity, code, epochs, (), staging, execution=Execution.RECORD)
            for task_work in seeded.sample(tasks, len(tasks)):
                at = (part.index, task_work.partition)
                report = run_task(work, task_work)
                states[at] = report.state
                consumed += sum(report.consumed.values())
                for file in report.files:
                    path = f"{roots[file.target]}/{file.path}"
                    kind, _, name = file.target.partition("/")
                    if kind == "internal":
                        into = internal.setdefault(int(file.partition_values["_partition"]), [])
                        into.append(InternalFile(path, task_work.partition))
                    elif kind == "changelog":
                        stores.setdefault(at, {}).setdefault(name, []).append(path)
                    else:
                        outputs.append(path)
    tables = [pq.read_table(path, partitioning=None) for path in outputs]
    rows = pa.concat_tables(tables).drop_columns(["_run"]).sort_by([(name, "ascending") for name in META])
    return Result(rows, states, consumed)


@pytest.mark.parametrize("stream_time_from", ["records", "watermark"])
@pytest.mark.parametrize("seed", [1, 2])
def test_many_runs_produce_the_rows_and_states_of_one_run(tmp_path: Path, seed: int, stream_time_from: str) -> None:
    log = write_files(random_log(seed), tmp_path / "log")
    semantics = Semantics(stream_time_from=stream_time_from)
    one = replay(log, tmp_path / "one", [(0, EPOCHS)], semantics)
    many = replay(log, tmp_path / "many", [(0, 1), (1, 3), (3, 4), (4, EPOCHS)], semantics, seed=seed)
    assert one.rows.num_rows > 50, "the case must have results"
    assert one.rows.equals(many.rows)
    assert one.states == many.states
    assert one.consumed == many.consumed


def test_rewritten_files_produce_the_same_rows(tmp_path: Path) -> None:
    log = random_log(3)
    clean = replay(write_files(log, tmp_path / "a"), tmp_path / "one", [(0, EPOCHS)], Semantics())
    mixed = write_files(log, tmp_path / "b", order=random.Random(3), parts=4)
    assert replay(mixed, tmp_path / "two", [(0, 2), (2, EPOCHS)], Semantics()).rows.equals(clean.rows)


def test_a_missing_offset_is_an_error_not_a_gap(tmp_path: Path) -> None:
    log = random_log(4)
    del log.rows[1][100]
    with refused("log-offset-missing", topic="events", offset=containing("100")):
        replay(write_files(log, tmp_path / "log"), tmp_path / "run", [(0, EPOCHS)], Semantics())


def test_a_flipped_byte_is_an_error(tmp_path: Path) -> None:
    log = write_files(random_log(5), tmp_path / "log")
    path = Path(log.files[0][0].path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(bytes(content))
    with refused("log-file-unreadable"):
        replay(log, tmp_path / "run", [(0, EPOCHS)], Semantics())


def test_a_failing_function_is_named_with_its_record(tmp_path: Path) -> None:
    log = write_files(random_log(6), tmp_path / "log")
    first_null = {p: next(row[0] for row in rows if row[3] is None) for p, rows in enumerate(log.rows)}
    with refused("node-failed", error=containing("division by zero")) as caught:
        replay(log, tmp_path / "run", [(0, EPOCHS)], Semantics(), failing_topology)
    messages = [f"node 'divide' failed at events offset {offset}, partition {p}:" for p, offset in first_null.items()]
    assert any(message in str(caught.value) for message in messages)


def test_a_value_of_another_type_names_table_and_column(tmp_path: Path) -> None:
    log = write_files(random_log(7), tmp_path / "log")
    with refused("value-type-wrong", type="str", declared="double", given="'None'") as caught:
        replay(log, tmp_path / "run", [(0, EPOCHS)], Semantics(), misfitting_topology)
    message = (
        r"\[the record with the key '\S+' and the timestamp \d+, number \d+ of its topic, sent by [\w-]+ in epoch 1\]$"
    )
    assert re.search(message, str(caught.value))
    assert str(caught.value).startswith("output/finals: ")


class Collects(Processor):
    """Sends a list and changes it afterwards."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen: list[int] = []

    def process(self, record: Record) -> None:
        self.seen.append(record.timestamp or 0)
        self.context.forward(Record(record.key, self.seen))


def collecting_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").process(Collects, name="collects").to("finals")
    return builder.build()


def test_a_sent_value_does_not_change_afterwards(tmp_path: Path) -> None:
    log = random_log(8)
    log.rows = [rows[:20] for rows in log.rows]
    write_files(log, tmp_path / "log")
    one = replay(log, tmp_path / "one", [(0, EPOCHS)], Semantics(), collecting_topology)
    many = replay(log, tmp_path / "many", [(e, e + 1) for e in range(EPOCHS)], Semantics(), collecting_topology)
    assert one.rows.equals(many.rows)
    assert len({len(json.loads(value)) for value in one.rows["value"].to_pylist()}) > 1


def test_staged_files_survive_json() -> None:
    file = StagedFile("output/x", 1, "a.parquet", 2, 3, {"partition": "1"}, {"numRecords": 2}, "r", "f")
    assert StagedFile.from_json(json.loads(json.dumps(file.as_json()))) == file
