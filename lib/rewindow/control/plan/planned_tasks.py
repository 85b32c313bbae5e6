"""Derive the work of each sub-topology from a planned run: the epochs, files and state of each task. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rewindow.contracts.expectations import EXPECTATION_COLUMNS, EXPECTATIONS
from rewindow.contracts.reserved_names import QUARANTINE_COLUMNS
from rewindow.contracts.staged_files import METRICS, QUARANTINE, StagedFile, TaskReport
from rewindow.contracts.tasks import (
    Epoch,
    InternalFile,
    JobCode,
    LogFile,
    LogSlice,
    LogTable,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.spec import OUTPUT, JobBinding, RunSpec, TableSpec
from rewindow.errors import ConfigError
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import SIMULATED_TIME, kind_of, tags_of, type_of
from rewindow.streams.nodes import SourceNode
from rewindow.streams.record import UNKNOWN, TopicPartition
from rewindow.streams.serde.schema import CHANGELOG_META, OUTPUT_META, PARTITION, Column
from rewindow.streams.serde.types_to_columns import LogShapes, bind_sink, bind_store, unknown_topic
from rewindow.streams.topology import SubTopology, Topology

METRICS_TARGET = "metrics"


@dataclass(frozen=True, slots=True)
class Restored:
    """A checkpoint: the state of each task by (sub-topology, partition), and the changelog files of each (store, partition)."""

    states: Mapping[tuple[int, int], Mapping[str, Any]]
    stores: Mapping[tuple[str, int], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TablePaths:
    """Paths of a branch's tables below the warehouse.

    ``output`` returns the path for an output topic, ``changelog`` the path for a store and its columns.
    """

    output: Callable[[str], str]
    changelog: Callable[[str, Sequence[Column]], str]
    metrics: str
    quarantine: str | None = None
    """The table of dropped records. With None, dropped records are only counted."""
    expectations: str | None = None
    """The table of the results of expectations. None if the job has no expectations."""


def bind_job(
    job: str, feed: Feed, topology: Topology, logs: LogShapes, semantics: Mapping[str, Any], paths: TablePaths
) -> JobBinding:
    """Bind a job to its feed. Return the binding, with the job's fingerprint, and its stores and tables with their columns.

    Raises `ConfigError` (78) for an undeclared output, an unknown topic, an internal topic with the name of a log, an
    undeclared type, or a field that the code reads and no record has.
    """
    parts = topology.sub_topologies()
    for part in parts:
        _check_topics(topology, part, logs)
        _check_internal_topics(job, topology, feed, part)
    shapes = {}
    for part in parts:
        for store in part.stores:
            with _naming(job, topology, "store", store.name):
                shapes[store.name] = bind_store(store, logs)
    keys = {name: key.names for name, (key, _) in shapes.items()}
    stores = {name: (*key.columns, *value.columns) for name, (key, value) in shapes.items()}
    tables = {}
    for name, own_columns in stores.items():
        columns = (Column(PARTITION, "long"), *own_columns, *CHANGELOG_META)
        tables[f"changelog/{name}"] = TableSpec(paths.changelog(name, columns), columns)
    for name, reads in topology.reads:
        with _naming(job, topology, "node", name):
            reads.check(logs)
    for part in parts:
        _check_partitions(job, topology, feed, part)
        for sink in part.sinks:
            with _naming(job, topology, "node", sink.name):
                key, value = bind_sink(sink, logs)
            if not sink.is_internal:
                columns = (*key.columns, *value.columns, *OUTPUT_META)
                target = f"{OUTPUT}{sink.topic}"
                tables[target], keys[target] = TableSpec(paths.output(sink.topic), columns), key.names
    tables[METRICS_TARGET] = TableSpec(paths.metrics, METRICS)
    if paths.quarantine is not None:
        tables[QUARANTINE] = TableSpec(paths.quarantine, QUARANTINE_COLUMNS)
    if paths.expectations is not None:
        tables[EXPECTATIONS] = TableSpec(paths.expectations, EXPECTATION_COLUMNS)
    return JobBinding(
        job=job,
        feed=feed.definition.feed,
        fingerprint=topology.fingerprint(),
        topology=topology.describe(),
        semantics=semantics,
        stores=stores,
        tables=tables,
        keys=keys,
        timed=topology.timed_nodes(),
    )


def _check_topics(topology: Topology, part: SubTopology, logs: LogShapes) -> None:
    for source in part.sources:
        if not source.is_internal and source.topic not in logs:
            raise unknown_topic(source.topic, logs).at_line(topology.lines.get(f"node {source.name}"))


def _check_internal_topics(job: str, topology: Topology, feed: Feed, part: SubTopology) -> None:
    """Raise `ConfigError` (78) if an internal topic has the name of a log of the feed, whether or not the job reads it."""
    # A stream of the log would get the internal records instead. Also, processed records are counted by the name of the topic.
    for source in part.sources:
        if source.is_internal and source.topic in feed.definition.logs:
            kind, (name, *_) = "global table" if source.is_global else "repartition", source.topic.rpartition("-")
            raise ConfigError(
                "internal-topic-taken",
                "job {job!r}: the internal topic of its {kind} {name!r} has the name {topic}, which a log of feed "
                "{feed!r} has too. Give the {kind} another name, by naming the step or store that makes it",
                job=job,
                kind=kind,
                name=name,
                topic=source.topic,
                feed=feed.definition.feed,
            ).at_line(topology.lines.get(f"node {source.name}"))


def _check_partitions(job: str, topology: Topology, feed: Feed, part: SubTopology) -> None:
    """Raise `ConfigError` (78) if a sub-topology reads a repartition topic and a log that keeps its source's partitions."""
    if feed.definition.partitions == 1:
        return
    # Kafka's producers and a repartition put the same key into different partitions.
    ours = [source for source in part.sources if source.is_internal and not source.is_global]
    kept = {*feed.definition.source_offsets, *feed.definition.recorded}
    theirs = [source.topic for source in part.sources if source.topic in kept]
    if ours and theirs:
        raise ConfigError(
            "log-keeps-source-partitions",
            "job {job!r}: {log} keeps the partitions of its source, but {topic} is repartitioned by "
            "this job, so equal keys do not meet. Remove `partition:` and `offset:` of {log} from the "
            "feed's configuration and land it again",
            job=job,
            log=theirs[0],
            topic=ours[0].topic,
        ).at_line(topology.lines.get(f"node {ours[0].name}"))


@contextmanager
def _naming(job: str, topology: Topology, kind: str, name: str) -> Iterator[None]:
    """Add to configuration errors the job, the part of its topology, and the line of code that made this part."""
    try:
        yield
    except ConfigError as error:
        error.surrounded(f"job {job!r}, {kind} {name!r}: ")
        error.at_line(topology.lines.get(f"{kind} {name}"))
        raise


def run_epochs(spec: RunSpec, feed: Feed) -> tuple[Epoch, ...]:
    """Return the epochs of a run. A final run ends with an extra epoch without records."""
    jumps = spec.binding.semantics.get("wall_clock") == "run"
    epochs = [
        Epoch(
            number,
            feed.landings[number - 1].watermark_ms,
            clock_to_ms=spec.input.clock_to_ms if jumps and number == spec.input.last else UNKNOWN,
        )
        for number in spec.epochs
    ]
    if spec.final:
        epochs.append(Epoch(spec.input.last + 1, UNKNOWN, is_final=True))
    return tuple(epochs)


def sub_topology_work(
    spec: RunSpec,
    code: JobCode,
    feed: Feed,
    part: SubTopology,
    *,
    files: Callable[[TopicPartition, int, int], Sequence[LogFile]],
    table: Callable[[str], LogTable | None],
    restored: Restored,
    internal: Iterable[StagedFile],
    roots: Mapping[str, str],
) -> SubTopologyWork:
    """Return the work of one sub-topology.

    ``files`` finds the files with the offsets ``[start, end)`` of a topic-partition. ``table`` returns a topic's table if
    Spark must read the table instead of its files, and otherwise None. ``internal`` are the files of internal logs that
    earlier sub-topologies of this run staged, and ``roots`` maps each target to its folder.
    """
    internal = tuple(internal)
    epochs = run_epochs(spec, feed)
    tasks = []
    topics = [source.topic for source in part.sources if not source.is_internal]
    tables = {topic: log_table for topic in topics if (log_table := table(topic)) is not None}
    everywhere = part.global_stores
    for partition in range(feed.definition.partitions):
        state = restored.states.get((part.index, partition))
        tasks.append(
            TaskWork(
                partition,
                {topic: _slice(spec, feed, topic, partition, None if topic in tables else files) for topic in topics},
                {s.topic: _internal_files(internal, s, partition, roots) for s in part.sources if s.is_internal},
                None if state is None else _task_state(TaskState.from_json(state), spec, part),
                {
                    store.name: restored.stores.get((store.name, 0 if store.name in everywhere else partition), ())
                    for store in part.stores
                },
                sum(feed.is_enforced(epoch, topics, partition) for epoch in spec.epochs),
            )
        )
    return SubTopologyWork(
        sub_topology=part.index,
        identity=RunIdentity(spec.job, spec.run, spec.attempt.id, spec.binding.fingerprint),
        code=code,
        epochs=epochs,
        tasks=tuple(tasks),
        staging=StagingArea(roots, feed.definition.partitions),
        tables=tables,
    )


def _task_state(state: TaskState, spec: RunSpec, part: SubTopology) -> TaskState:
    """Return a task's state without the schedules of removed nodes. The removal of these nodes was accepted."""
    if not spec.accepted:
        return state
    names = {node.name for node in part.nodes}
    return replace(state, schedules=[schedule for schedule in state.schedules if schedule.node in names])


def metrics_rows(spec: RunSpec, reports: Iterable[TaskReport]) -> list[tuple[Any, ...]]:
    """Return the rows of a run for the metrics table (`contracts.staged_files.METRICS`)."""
    stores = {store["name"]: store["kind"] for part in spec.binding.topology for store in part["stores"]}
    rows = []
    for report in reports:
        task, seconds = f"{report.sub_topology}_{report.partition}", _simulated_seconds(report)
        for measure in report.metrics:
            level, node, name = measure["level"], measure["node"], measure["name"]
            kind, store = kind_of(name), stores.get(node, "")
            rows.append(
                (
                    *(spec.job, spec.branch, spec.run, report.sub_topology, report.partition, level, node, name),
                    *(
                        measure["reason"],
                        type_of(level, store),
                        kind.recording_level,
                        tags_of(level, node, task, store),
                    ),
                    *(kind.unit, measure["count"], measure["total"], measure["minimum"], measure["maximum"]),
                    *(measure["current"], measure["total"] / seconds if seconds and "rate" in kind.parts else None),
                )
            )
    return rows


def _simulated_seconds(report: TaskReport) -> float:
    """Return the simulated duration of a task in seconds."""
    elapsed_ms: int = sum(measure["total"] for measure in report.metrics if measure["name"] == SIMULATED_TIME)
    return elapsed_ms / 1000


def _slice(
    spec: RunSpec,
    feed: Feed,
    topic: str,
    partition: int,
    files: Callable[[TopicPartition, int, int], Sequence[LogFile]] | None,
) -> LogSlice:
    topic_partition = TopicPartition(topic, partition)
    bounds = [feed.epoch_range(epoch, topic_partition) for epoch in spec.epochs]
    if spec.final:
        # The extra epoch of a final run has no records.
        end = bounds[-1][1] if bounds else 0
        bounds.append((end, end))
    start, end = (bounds[0][0], bounds[-1][1]) if bounds else (0, 0)
    if files is None:
        return LogSlice((), tuple(bounds), tuple(feed.spans(topic_partition, start, end)))
    return LogSlice(tuple(files(topic_partition, start, end)) if end > start else (), tuple(bounds))


def _internal_files(
    files: Iterable[StagedFile], source: SourceNode, partition: int, roots: Mapping[str, str]
) -> tuple[InternalFile, ...]:
    target, wanted = f"internal/{source.topic}", 0 if source.is_global else partition
    return tuple(
        InternalFile(f"{roots[target]}/{file.path}", file.partition)
        for file in files
        if file.target == target and int(file.partition_values[PARTITION]) == wanted
    )


def records_due(feed: Feed, spec: RunSpec, part: SubTopology) -> int:
    """Return how many records of the feed's logs a sub-topology reads.

    Internal logs are not counted, because they are not written yet.
    """
    return sum(
        feed.records(spec.epochs, TopicPartition(source.topic, partition))
        for source in part.sources
        if not source.is_internal
        for partition in range(feed.definition.partitions)
    )
