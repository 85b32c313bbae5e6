"""L2 and L3 of `process_batch` from files to files: sizes of reads, runs and spilled stores change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow import (
    Batch,
    BatchContext,
    BatchProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Topology,
    key_value_store,
)
from rewindow.contracts.tasks import (
    Epoch,
    Execution,
    JobCode,
    LogSlice,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.engine.worker.task_execution import run_task
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.settings import Limits, Semantics, Settings
from tests.engine.test_record_execution import EPOCHS, PARTITIONS, Log, logs, random_log, write_files

WHOLE, CUT = [(0, EPOCHS)], [(0, 1), (1, 3), (3, EPOCHS)]


class Sums(BatchProcessor):
    """Counts by key, sends the sum so far of every other record, and twice a second all counts."""

    def init(self, context: BatchContext) -> None:
        self.counts = context.store("counts")
        context.schedule("500ms", PunctuationType.STREAM_TIME, self.tell, name="often")

    def process_batch(self, batch: Batch) -> None:
        counts = dict(zip(batch.keys, self.counts.get_many(batch.keys), strict=True))
        for index, (key, value) in enumerate(zip(batch.keys, batch.values, strict=True)):
            counts[key] = (counts[key] or 0) + 1
            if batch.offsets[index] % 2:
                batch.forward(index, Record(key, f"{counts[key]} {value.amount} {batch.stream_times_ms[index]}"))
        self.counts.put_many(counts)

    def tell(self, now_ms: int) -> None:
        rows = dict(self.counts.all())
        self.context.forward_many(list(rows), [f"{count} at {now_ms}" for count in rows.values()])
        self.counts.delete_many([key for key, count in rows.items() if count % 3 == 0])


class SumsByRecord(Processor):
    """The same, record by record."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.counts = context.store("counts")
        context.schedule("500ms", PunctuationType.STREAM_TIME, self.tell, name="often")

    def process(self, record: Record) -> None:
        count = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, count)
        if self.context.record_metadata.offset % 2:
            told = f"{count} {record.value.amount} {self.context.stream_time_ms}"
            self.context.forward(Record(record.key, told, record.timestamp))

    def tell(self, now_ms: int) -> None:
        for key, count in list(self.counts.all()):
            self.context.forward(Record(key, f"{count} at {now_ms}", now_ms))
            if count % 3 == 0:
                self.counts.delete(key)


def topology(supplier: type[Processor]) -> Topology:
    builder = StreamsBuilder()
    stores = [key_value_store("counts", key=str, value=int)]
    builder.stream("events").process(supplier, name="sums", stores=stores, key=str, value=str).to("out")
    return builder.build()


def in_batches() -> Topology:
    return topology(Sums)


def by_record() -> Topology:
    return topology(SumsByRecord)


def replay(log: Log, root: Path, make: Any, *, ranges: Any = WHOLE, size: int = 65_536, memory: int = 2**30) -> Any:
    """Return the rows and states after runs over ranges of epochs."""
    states: dict[int, Any] = {}
    changes: dict[int, list[str]] = {}
    outputs, metrics = [], {}
    for run, (first, end) in enumerate(ranges, start=1):
        roots = {target: str(root / str(run) / target) for target in ("output/out", "changelog/counts")}
        settings = Settings(limits=Limits(store_memory=memory))
        work = SubTopologyWork(
            0,
            RunIdentity("", run, f"attempt{run}", make().fingerprint()),
            JobCode(make, logs, Semantics(), settings),
            tuple(Epoch(e + 1, log.watermark(e)) for e in range(first, end)),
            (),
            StagingArea(roots, PARTITIONS),
            execution=Execution.RECORD,
            rows_at_once=size,
        )
        for p in range(PARTITIONS):
            state = TaskState.from_json(json.loads(json.dumps(states[p]))) if p in states else None
            slices = {"events": LogSlice(log.files[p], tuple(log.bounds(p)[first:end]))}
            report = run_task(work, TaskWork(p, slices, {}, state, {"counts": tuple(changes.get(p, ()))}))
            states[p] = report.state
            for row in report.metrics:
                metrics[p, run, row["name"], row["reason"]] = row
            for file in report.files:
                path = f"{roots[file.target]}/{file.path}"
                if file.target.startswith("output"):
                    outputs.append(path)
                else:
                    changes.setdefault(p, []).append(path)
    rows = pa.concat_tables([pq.read_table(path, partitioning=None) for path in outputs]).drop_columns(["_run"])
    return (
        rows.sort_by([("_partition", "ascending"), ("_offset", "ascending")]),
        states,
        metrics if len(ranges) == 1 else {},
    )


@pytest.mark.parametrize(
    "varied",
    [{}, {"size": 7}, {"size": 1}, {"ranges": CUT}, {"memory": 2_000}, {"memory": 2_000, "ranges": CUT, "size": 11}],
    ids=str,
)
def test_batches_give_the_rows_and_states_of_record_by_record(tmp_path: Path, varied: dict[str, Any]) -> None:
    log = write_files(random_log(11), tmp_path / "log")
    expected, states, metrics = replay(log, tmp_path / "one", by_record)
    assert expected.num_rows > 2_000, "the case must have results"
    found, found_states, found_metrics = replay(log, tmp_path / "two", in_batches, **varied)
    assert found.equals(expected)
    assert found_states == states
    assert not found_metrics or found_metrics == metrics
