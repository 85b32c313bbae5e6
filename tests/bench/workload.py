"""The workload of the record execution benchmark: a log, two jobs, and a handwritten loop for each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
    ROWS_AT_ONCE,
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
from rewindow.engine.worker.staging import StagingTarget
from rewindow.streams.semantics import Semantics
from rewindow.streams.serde.binding import LogShapes, log_shape
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.serde.schema import Column

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS, KEYS, EPOCHS = 8, 20_000, 24
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
START_MS = 1_767_225_600_000  # 2026-01-01
GRACE_MS, INTERVAL_MS = 10 * MINUTE_MS, 10 * MINUTE_MS
COLUMNS = [Column("offset", "long"), Column("timestamp", "long"), Column("user", "string"), Column("amount", "double")]


class Slice(NamedTuple):
    """One partition of the log: its file, and the offsets ``[start, end)`` of each epoch."""

    path: str
    bounds: list[tuple[int, int]]


def make_log(root: Path, rows: int, seed: int = 1, partitions: int = PARTITIONS) -> list[Slice]:
    """Stage a day of records in order of arrival, in hourly landings. One in twenty is half an hour late on average."""
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(START_MS, START_MS + 24 * HOUR_MS, rows))
    mean_ms = np.where(rng.random(rows) < 1 / 20, 30 * MINUTE_MS, MINUTE_MS)
    timestamps = arrival - rng.exponential(mean_ms).astype(np.int64)
    amounts = np.round(rng.lognormal(3, 1, rows), 2)
    numbers = rng.integers(0, KEYS, rows)
    names = [f"user-{number:05d}" for number in range(KEYS)]
    of_key, users = np.array([partition_of(name, partitions) for name in names]), pa.array(names)
    slices = []
    for partition in range(partitions):
        mine = np.flatnonzero(of_key[numbers] == partition)
        staging = StagingTarget("log/events", str(root), attempt="land", partition=partition)
        # By columns, because writing the log row by row took longer than all measurements.
        writer = staging.file(COLUMNS, ["offset"], partition)
        for some in np.split(mine, range(ROWS_AT_ONCE, len(mine), ROWS_AT_ONCE)):
            first = writer.rows
            columns = (np.arange(first, first + len(some)), timestamps[some], users.take(numbers[some]), amounts[some])
            writer.write(pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=writer.schema))
        file = writer.close()
        assert file is not None
        ends = np.searchsorted(arrival[mine], [START_MS + hour * HOUR_MS for hour in range(1, EPOCHS + 1)]).tolist()
        slices.append(Slice(f"{root}/{file.path}", list(zip([0, *ends], ends, strict=False))))
    return slices


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


def logs() -> LogShapes:
    """Return the shapes of the log: a bare key and a row as value, the defaults of a feed."""
    return {"events": (log_shape((COLUMNS[2],), is_scalar=True), log_shape((COLUMNS[3],), is_scalar=False))}


Input = Iterator[tuple[int, str, float]]
"""Timestamp, key, amount."""


def read(path: str) -> Input:
    """Read a partition's file as record execution does: Arrow batches, converted to lists by column."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=["timestamp", "user", "amount"]):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class Store:
    """The store of the loop: a dictionary with the methods that the loop needs."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def get(self, key: str) -> int | None:
        return self.values.get(key)

    def put(self, key: str, value: int) -> None:
        self.values[key] = value

    def take_all(self) -> list[tuple[str, int]]:
        items = sorted(self.values.items())
        self.values.clear()
        return items


class HandWrittenCount:
    """The job `processor` by hand: a store, a ``process`` function, and a check of the clock after each record."""

    def __init__(self) -> None:
        self.counters = Store()
        self.results: list[tuple[Any, ...]] = []

    def process(self, key: str, amount: float) -> None:
        del amount
        self.counters.put(key, (self.counters.get(key) or 0) + 1)

    def report(self, now_ms: int) -> None:
        for key, count in self.counters.take_all():
            self.results.append((key, count, now_ms))

    def run(self, rows: Input) -> list[tuple[Any, ...]]:
        clock, due = -1, None
        for timestamp, key, amount in rows:
            if timestamp > clock:
                clock = timestamp
                if due is None:
                    due = clock
            self.process(key, amount)
            if due <= clock:
                self.report(clock)
                due += ((clock - due) // INTERVAL_MS + 1) * INTERVAL_MS
        return self.results


class HandWrittenFinals:
    """The job `finals` by hand: open windows by start, late records dropped, windows sent after their grace period."""

    def __init__(self) -> None:
        self.windows: dict[int, dict[str, list[Any]]] = {}
        self.results: list[tuple[Any, ...]] = []

    def process(self, key: str, timestamp: int, amount: float) -> None:
        window = self.windows.setdefault(timestamp - timestamp % HOUR_MS, {})
        state = window.get(key)
        if state is None:
            window[key] = [1, amount, timestamp]
        else:
            state[0] += 1
            state[1] += amount
            if timestamp > state[2]:  # noqa: PLR1730 - the fast way
                state[2] = timestamp

    def close(self, start: int) -> None:
        window = self.windows.pop(start)
        for key in sorted(window):
            events, total, timestamp = window[key]
            self.results.append((key, start, start + HOUR_MS, events, total, timestamp))

    def run(self, rows: Input) -> list[tuple[Any, ...]]:
        clock, closed_to = -1, -1  # windows that start before `closed_to` are closed
        for timestamp, key, amount in rows:
            if timestamp > clock:
                clock = timestamp
                if clock - HOUR_MS - GRACE_MS >= closed_to:
                    closed_to = (clock - HOUR_MS - GRACE_MS) // HOUR_MS * HOUR_MS + HOUR_MS
                    for start in sorted(start for start in self.windows if start < closed_to):
                        self.close(start)
            if timestamp >= closed_to:
                self.process(key, timestamp, amount)
        return self.results


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
