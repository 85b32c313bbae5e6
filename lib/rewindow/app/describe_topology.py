"""The topology of a job as JSON values for `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rewindow.contracts.staged_files import QUARANTINE
from rewindow.contracts.tasks import Execution, LogTable
from rewindow.control.heartbeat import this_attempt
from rewindow.control.plan.spec import OUTPUT
from rewindow.control.plan.undeclared_types import undeclared_types
from rewindow.control.run import Job, first_run
from rewindow.engine.worker.vectorized.choose_execution import describe_execution, why_one_by_one
from rewindow.streams.batch_processor import MANY, batch_limits
from rewindow.streams.error_policy import policies_of
from rewindow.streams.nodes import SourceNode
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import bind_sink, bind_store

if TYPE_CHECKING:
    from rewindow.app.open_project import OpenProject


def explain_job(project: OpenProject, job: str, *, spark: bool = False) -> dict[str, Any]:
    """Return what `explain` shows of a job: its topology. With ``spark``, add Spark's plan of each sub-topology in a first run.

    Before the first landing, columns have the types that the sources have now. If only a landing can decide a type, it is json.
    """
    is_landed = project.was_landed(project.job_config(job).feed)
    bound = project.bind(job) if is_landed or spark else project.bind_to_sources(job)
    logs = bound.feed.definition.logs if is_landed else ()
    tables = {topic: project.tables.log_table(bound.feed, topic) for topic in logs}
    described = describe_topology(bound, project.execution, tables)
    described |= {"inline": project.target.most_inline, "landed": is_landed}
    if spark:
        from rewindow.engine.spark.spark_engine import SparkEngine  # noqa: PLC0415 - Spark only where it is needed

        paths = [str(project.root)]
        engine = SparkEngine(project.spark, slots=project.slots, import_paths=paths, execution=project.execution)
        works = first_run(bound, this_attempt(), project.tables)
        for part, work in zip(described["sub_topologies"], works, strict=True):
            part["spark_plan"] = engine.spark_plan(work)
    return described


def describe_topology(
    job: Job, execution: Execution = Execution.AUTO, tables: Mapping[str, LogTable | None] | None = None
) -> dict[str, Any]:
    """Return a job's topology: the outputs, and for each sub-topology its sources, execution mode, nodes and stores.

    ``tables`` maps each topic to the table of its log if Spark must read this table for the tasks, otherwise to None.
    """
    settings, has_quarantine = job.code.settings, QUARANTINE in job.binding.tables
    logs = job.code.load_logs()
    topology = job.code.topology
    parts = []
    for part, described in zip(topology.sub_topologies(), topology.describe(), strict=True):
        batches = batch_limits(part, policies_of(part, settings.on_error), keeps_dropped=settings.keeps_dropped)
        one_by_one = why_one_by_one(topology, part, settings, has_quarantine=has_quarantine)
        parts.append(
            {
                "sub_topology": part.index,
                "execution": describe_execution(execution, topology, part, logs, one_by_one=one_by_one),
                "sources": [
                    {"topic": source.topic, "how": _describe_source(source, tables or {})} for source in part.sources
                ],
                "nodes": [_describe_node(node, batches.get(node["name"])) for node in described["nodes"]],
                "stores": [
                    {"name": store.name, "kind": store.kind, "columns": _columns(*bind_store(store, logs))}
                    for store in part.stores
                ],
            }
        )
    sinks = [sink for part in topology.sub_topologies() for sink in part.sinks if not sink.is_internal]
    return {
        "job": job.name,
        "feed": job.feed.definition.feed,
        "partitions": job.feed.definition.partitions,
        "semantics": dict(job.binding.semantics),
        "sub_topologies": parts,
        "outputs": [
            {
                "topic": sink.topic,
                "table": job.binding.tables[f"{OUTPUT}{sink.topic}"].path,
                "columns": _columns(*bind_sink(sink, logs)),
            }
            for sink in sinks
        ],
        "undeclared": list(undeclared_types(topology)),
    }


def _describe_node(node: Mapping[str, Any], batches: str | None) -> dict[str, Any]:
    return {
        "node": node["name"],
        "does": node.get("processor") or f"{'reads' if 'source' in node else 'writes'} a topic",
        "topic": node.get("source") or node.get("sink"),
        "parents": list(node["parents"]),
        "stores": list(node.get("stores", ())),
    } | _describe_batches(batches)


def _describe_batches(reason: str | None) -> dict[str, str]:
    """Return how a `BatchProcessor` gets its records: many at a time or one by one. The mapping is empty for other nodes.

    ``reason`` is `MANY` for a processor that gets many records at a time, and None for other nodes. Otherwise it says why the
    processor gets records one by one.
    """
    if reason is None:
        return {}
    return {"batches": "many records at a time" if reason == MANY else f"one record at a time, because {reason}"}


def _describe_source(source: SourceNode, tables: Mapping[str, LogTable | None]) -> str:
    if source.is_global:
        return "internal log of this run, which every task reads in the order of its upstream events"
    if source.is_internal:
        return "internal log of this run, in the order of its upstream events"
    table = tables.get(source.topic)
    if table is not None:
        return f"shuffle reader: Spark reads the table for the tasks, because {table.why}"
    return "partition-local reader: each task opens its own partition's files, in offset order"


def _columns(*shapes: Any) -> str:
    columns: list[Column] = [column for shape in shapes for column in shape.columns]
    return ", ".join(f"{column.name} {column.type}" for column in columns)
