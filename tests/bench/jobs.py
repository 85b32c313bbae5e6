"""The jobs of the record execution benchmark: each as a topology, as a loop, and as the work of its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rewindow import (
    Batch,
    BatchProcessor,
    Count,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Sum,
    TimeWindows,
    Topology,
    key_value_store,
    until_window_closes,
)
from rewindow.contracts.tasks import (
    Epoch,
    Execution,
    JobCode,
    LogFile,
    LogSlice,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.streams.settings import Semantics

if TYPE_CHECKING:
    from pathlib import Path
from tests.bench.by_hand import HandWrittenCount, HandWrittenFinals
from tests.bench.workload import EPOCHS, HOUR_MS, START_MS, Slice, logs


class CountByKey(Processor):
    """Counts by key; every ten minutes of stream time, it forwards all counters and clears them."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counters = context.store("counters")
        context.schedule("10m", PunctuationType.STREAM_TIME, self.report)

    def process(self, record: Record) -> None:
        self.counters.put(record.key, (self.counters.get(record.key) or 0) + 1)

    def report(self, now_ms: int) -> None:
        for key, count in self.counters.all():
            self.context.forward(Record(key, count, now_ms))
            self.counters.delete(key)


def processor_topology(counting: type[Processor | BatchProcessor] = CountByKey) -> Topology:
    topology = Topology()
    topology.add_store(key_value_store("counters", key=str, value=int))
    topology.add_source("events", "events")
    topology.add_processor("count", counting, "events", stores=("counters",))
    return topology.add_sink("counts", "results", "count", key=str, value=int)


class CountBatches(BatchProcessor):
    """Counts as `CountByKey`, many records at a time."""

    def init(self, context: ProcessorContext) -> None:
        self.counters = context.store("counters")
        context.schedule("10m", PunctuationType.STREAM_TIME, self.report)

    def process_batch(self, batch: Batch) -> None:
        counts = Counter(batch.keys)
        before = self.counters.get_many(counts)
        self.counters.put_many(
            {key: count + (known or 0) for (key, count), known in zip(counts.items(), before, strict=True)}
        )

    def report(self, now_ms: int) -> None:
        del now_ms
        counts = dict(self.counters.all())
        self.context.forward_many(list(counts), list(counts.values()))
        self.counters.delete_many(counts)


def batch_topology() -> Topology:
    return processor_topology(CountBatches)


def finals_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("events")
        .group_by_key()
        .windowed_by(TimeWindows.of("1h", grace="10m"))
        .aggregate({"events": Count(), "total": Sum("amount")}, store="hours")
        .suppress(until_window_closes())
        .to_stream()
        .to("results")
    )
    return builder.build()


@dataclass(frozen=True, slots=True)
class Job:
    """A job as a topology and as a loop. ``columns``: the types of its results."""

    topology: Callable[[], Topology]
    by_hand: Callable[[], Any]
    columns: Mapping[str, pa.DataType]


JOBS = {
    "processor": Job(
        processor_topology,
        HandWrittenCount,
        {"key": pa.string(), "value": pa.int64(), "_timestamp": pa.int64()},
    ),
    "processor-batch": Job(
        batch_topology,
        HandWrittenCount,
        {"key": pa.string(), "value": pa.int64(), "_timestamp": pa.int64()},
    ),
    "finals": Job(
        finals_topology,
        HandWrittenFinals,
        {
            "user": pa.string(),
            "window_start": pa.int64(),
            "window_end": pa.int64(),
            "events": pa.int64(),
            "total": pa.float64(),
            "_timestamp": pa.int64(),
        },
    ),
}


def sub_topology_work(
    job: str, log: Sequence[Slice], root: Path, epochs: int = EPOCHS, execution: Execution = Execution.RECORD
) -> SubTopologyWork:
    """Return the work of a job, which has one sub-topology, over the first epochs of the log."""
    topology = JOBS[job].topology
    (part,) = topology().sub_topologies()
    targets = [f"output/{sink.topic}" for sink in part.sinks] + [f"changelog/{store.name}" for store in part.stores]
    tasks = [
        TaskWork(p, {"events": LogSlice((LogFile(path, 0, bounds[-1][1] - 1),), tuple(bounds[:epochs]))}, {}, None, {})
        for p, (path, bounds) in enumerate(log)
    ]
    return SubTopologyWork(
        sub_topology=part.index,
        identity=RunIdentity("", 1, "bench", topology().fingerprint()),
        code=JobCode(topology, partial(logs), Semantics()),
        epochs=tuple(Epoch(n, START_MS + n * HOUR_MS) for n in range(1, epochs + 1)),
        tasks=tuple(tasks),
        staging=StagingArea({target: str(root / target) for target in targets}, len(log)),
        execution=execution,
    )
