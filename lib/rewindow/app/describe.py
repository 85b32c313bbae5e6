"""A job as JSON values for `show` and `explain`: its runs, tables, metrics and topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.app.open_project import OpenProject
from rewindow.contracts.expectations import Observation
from rewindow.contracts.staged_files import QUARANTINE
from rewindow.contracts.tasks import Execution, LogTable
from rewindow.control.code_version import run_version
from rewindow.control.health.inputs import records_of
from rewindow.control.health.job_health import describe_holds
from rewindow.control.heartbeat import this_attempt
from rewindow.control.plan.job_state import Branch, CommittedRun
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.control.run import Job, first_run
from rewindow.errors import naming
from rewindow.streams.batch_processor import MANY, batch_limits
from rewindow.streams.error_policy import policies_of
from rewindow.streams.metrics import SIMULATED_TIME, add_up, kind_of, reason_order
from rewindow.streams.nodes import SourceNode
from rewindow.streams.record import known_time
from rewindow.streams.serde.binding import bind_sink, bind_store
from rewindow.streams.serde.schema import Column
from rewindow.tables.shared.paths import safe_name
from rewindow.tables.shared.warehouse import Warehouse


def show_job(project: OpenProject, job: str, *, branch: str = MAIN, hashes: bool = False) -> dict[str, Any]:
    """Return what `show` says of a job: the runs, tables and metrics of a branch."""
    project.job_config(job)
    with naming(JOB=job):
        return describe_job(project.tables, job, branch=safe_name(branch, "branch"), hashes=hashes)


def explain_job(project: OpenProject, job: str, *, spark: bool = False) -> dict[str, Any]:
    """Return what `explain` says of a job: its topology; with ``spark``, also Spark's plan of each sub-topology in a first run.

    Before the first landing, the types are those that the sources have now, as far as these decide them.
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


def describe_job(tables: Warehouse, job: str, *, branch: str, hashes: bool) -> dict[str, Any]:
    """Return the runs of a branch, its tables and the totals of its metrics, without rewound runs."""
    state = tables.state(job)
    known = state.branch(branch)
    runs = known.runs
    tables.check_published(job, state, branch)
    return {
        "job": job,
        "branch": branch,
        "branches": sorted(name for name, known in state.branches.items() if known.runs),
        "runs": [_describe_run(run) for run in runs],
        "tables": _describe_tables(tables, known, hashes=hashes),
        "lagging": dict(tables.lagging(job, state, branch)),
        "metrics": _describe_metrics(tables.measures(runs)),
        "unmet": [_describe_unmet(run, one) for run in runs for one in run.commit.unmet],
        "on_hold": describe_holds(state, branch),
    }


def describe_published(tables: Warehouse, job: str, branch: str) -> list[dict[str, Any]]:
    """Return the output tables of a branch with their versions and what the last run wrote to them."""
    known = tables.state(job).branch(branch)
    if not known.published_runs:
        return []
    last = known.published_runs[-1]
    described = []
    for target, table in known.tables.items():
        total = last.commit.targets.get(target)
        version = tables.version_of(table) if target.startswith(OUTPUT) else None
        if version is None:
            continue
        described.append(
            {
                "topic": target.removeprefix(OUTPUT),
                "table": table.path,
                "version": version,
                "run": last.spec.name,
                "rows": total.rows if total else 0,
                "digest": total.digest if total else None,
                "watermark_ms": known_time(last.commit.watermark_ms),
            }
        )
    return described


def describe_topology(
    job: Job, execution: Execution = Execution.AUTO, tables: Mapping[str, LogTable | None] | None = None
) -> dict[str, Any]:
    """Return a job's topology: each sub-topology's sources, execution mode, nodes and stores, and the outputs.

    ``tables`` maps each topic to its log's table if Spark must read it for the tasks.
    """
    from rewindow.engine.worker.vectorized.window_planner import describe_execution, why_one_by_one  # noqa: PLC0415 - loads pyarrow

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
    """Return how a node takes its records, if it is a `BatchProcessor`; ``reason``: why it takes them one by one."""
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


def _describe_unmet(run: CommittedRun, one: Observation) -> dict[str, Any]:
    return {
        "run": run.spec.name,
        "output": one.output,
        "expectation": one.name,
        "on_fail": one.on_fail,
        "observed": one.observed,
        "expected": one.expected,
    }


def _describe_run(run: CommittedRun) -> dict[str, Any]:
    return {
        "run": run.spec.name,
        "epochs": [run.spec.input.first, run.spec.input.last] if run.spec.epochs else None,
        "records": records_of(run),
        "rows": sum(total.rows for target, total in run.commit.targets.items() if target.startswith("output/")),
        "watermark_ms": known_time(run.commit.watermark_ms),
        "final": run.spec.final,
        "code": run_version(run.spec.binding),
        "ledger_row": run.spec.run,
    }


def _describe_tables(tables: Warehouse, branch: Branch, *, hashes: bool) -> list[dict[str, Any]]:
    """Return a branch's tables; ``rows`` is None for one that does not exist yet.

    Branches share changelogs, so a changelog counts only rows of this branch's runs.
    """
    described = []
    for target, table in branch.tables.items():
        if "/" not in target:
            continue
        is_output = target.startswith(OUTPUT)
        totals = [run.commit.targets[target].rows for run in branch.runs if target in run.commit.targets]
        rows: int | None = sum(totals)
        if is_output:
            rows = None if tables.version_of(table) is None else tables.count_rows(table)
        row: dict[str, Any] = {"table": target, "path": tables.location_of(table), "rows": rows}
        if hashes and is_output and rows is not None:
            row["content"] = tables.content_hash(table)[:16]
        described.append(row)
    return described


def _describe_metrics(measures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the metrics over all runs. Rates are per simulated second; current values are summed over the tasks."""
    current: Counter[tuple[str, ...]] = Counter()
    for one in measures:
        current[one["level"], one["node"], one["name"], one["reason"]] += one["current"] or 0
    seconds = max((one["total"] for one in measures if one["name"] == SIMULATED_TIME), default=0) / 1000
    described = []
    for key, measure in sorted(add_up(measures).items(), key=lambda item: (*item[0][:3], reason_order(item[0][3]))):
        level, node, name, reason = key
        kind = kind_of(name)
        shown = {
            "total": measure.total,
            "rate": round(measure.total / seconds, 6) if seconds else None,
            "current": current[key],
            "avg": round(measure.total / measure.count, 1),
            "min": measure.minimum,
            "max": measure.maximum,
        }
        described.append(
            {"level": level, "node": node, "metric": name, "reason": reason, "unit": kind.unit}
            | {part: value if part in kind.parts else None for part, value in shown.items()}
        )
    return described


def _columns(*shapes: Any) -> str:
    columns: list[Column] = [column for shape in shapes for column in shape.columns]
    return ", ".join(f"{column.name} {column.type}" for column in columns)
