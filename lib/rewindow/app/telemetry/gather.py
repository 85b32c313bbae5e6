"""Gather the facts of landings, runs and changes of branches, from their results and the ledgers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rewindow.app.telemetry.facts import ColumnOrigins, Facts, Measure, Read, Table, Written
from rewindow.control.health.inputs import dropped_by_reason, not_taken, rows_by_output
from rewindow.control.ingest.landings import LANDING, Feed, Landing
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import OUTPUT
from rewindow.control.run import Job, RunReport
from rewindow.dsl.column_origins import column_origins
from rewindow.dsl.flows import Origin
from rewindow.streams.record import known_time

if TYPE_CHECKING:
    from rewindow.app.telemetry.tables import Locator
    from rewindow.control.ingest.protocols import LandReport
    from rewindow.control.plan.job_state import Branch, JobState

COMMITTED, NOTHING_TO_DO = "committed", "nothing_to_do"


def landing_planned(locator: Locator, feed: str) -> Facts:
    """Return the sources that a landing reads."""
    return Facts(tuple(Read(table) for table in locator.sources(feed).values()))


def landing_done(locator: Locator, report: LandReport) -> Facts:
    """Return what a landing read and wrote. One without landings read and wrote nothing."""
    details: dict[str, Any] = {
        "outcome": COMMITTED if report.landings else NOTHING_TO_DO,
        "reason": report.waiting or None,
        "generation": report.generation,
        "landings": list(report.landings),
        "watermark_ms": known_time(report.watermark_ms),
        "quarantined": report.quarantined,
        "rows_behind": report.behind,
    }
    if not report.landings:
        return Facts(details=details)
    feed = locator.tables.feed(report.feed)
    positions = _last_positions(locator, report.feed)
    landed = [landing for landing in feed.landings if landing.number in report.landings]
    records, sources = {topic: _records(landed, topic) for topic in feed.definition.logs}, locator.sources(report.feed)
    inputs = [
        Read(replace(table, version=positions.get(topic, {}).get("version")), records.get(topic))
        for topic, table in sources.items()
    ]
    outputs = [
        Written(
            replace(table, version=locator.log_version(feed, topic)),
            records[topic],
            landings=_landings(feed, topic, report.landings[0], report.landings[-1]),
            origins=_copied(feed, topic, sources[topic]) if topic in sources else None,
        )
        for topic, table in locator.logs(feed).items()
        if topic not in feed.definition.source_offsets  # the source is the log
    ]
    measures = [Measure("landed", count, {"topic": topic}) for topic, count in records.items()]
    measures += [Measure("dropped", report.quarantined, {"kind": "quarantined"})] if report.quarantined else []
    measures += [Measure("rows_behind", report.behind)] if report.behind else []
    return Facts(tuple(inputs), tuple(outputs), {**details, "records": records}, tuple(measures))


def run_planned(locator: Locator, job: Job) -> Facts:
    """Return the logs that a run reads, and the tables that it writes."""
    logs = locator.logs(job.feed)
    inputs = tuple(Read(logs[topic]) for topic in _topics(job))
    outputs = {
        target: Written(locator.output(table))
        for target, table in job.binding.tables.items()
        if target.startswith(OUTPUT)
    }
    origins = _origins(job, logs)
    return Facts(inputs, tuple(replace(one, origins=origins.get(target)) for target, one in outputs.items()))


def run_done(locator: Locator, job: Job, result: RunReport | UpToDate) -> Facts:
    """Return what a run read and wrote, with its counts. A run that had nothing to do read and wrote nothing."""
    if isinstance(result, UpToDate):
        return run_skipped(result)
    spec, commit, logs = result.spec, result.commit, locator.logs(job.feed)
    origins = _origins(job, logs)
    inputs = tuple(
        Read(
            replace(logs[topic], version=locator.log_version(job.feed, topic)),
            commit.consumed.get(topic, 0),
            _landings(job.feed, topic, spec.input.first, spec.input.last) if spec.epochs else None,
        )
        for topic in _topics(job)
    )
    outputs = []
    for target, table in spec.binding.tables.items():
        total = commit.targets.get(target)
        if not target.startswith(OUTPUT) or not result.is_published:
            continue  # readers see nothing new while a run is on hold
        known = {"run": spec.name, "rows": total.rows if total else 0, "digest": total.digest if total else None}
        counts = (total.rows, total.bytes, total.files) if total else (0, 0, 0)
        wrote = Written(locator.output(table, with_version=True), *counts, commit=known, origins=origins.get(target))
        outputs.append(wrote)
    dropped = dropped_by_reason(result.metrics)
    behind = len(not_taken(job.feed, spec.input.last))
    details = {
        "outcome": COMMITTED,
        "run": spec.name,
        "epochs": [spec.input.first, spec.input.last] if spec.epochs else None,
        "generation": spec.input.generation,
        "watermark_ms": known_time(commit.watermark_ms),
        "records": dict(commit.consumed),
        "rows": rows_by_output(commit),
        "dropped": dropped,
        **{kind: sum(dropped.get(kind, {}).values()) for kind in ("late", "quarantined")},
        "behind": behind,
        "digests": {target.removeprefix(OUTPUT): commit.targets[target].digest for target in _outputs(commit.targets)},
        "chain": commit.chain,
        "completes_dead_attempt": spec.takes_over is not None,
    }
    met = [
        Measure(
            "expectations",
            1,
            {"output": one.output, "on_fail": one.on_fail, "result": "met" if one.is_met else "unmet"},
        )
        for one in commit.expectations
    ]
    return Facts(inputs, tuple(outputs), details, (*_run_measures(details), *met))


def run_skipped(result: UpToDate) -> Facts:
    """Return the facts of a run that had nothing to do."""
    return Facts(details={"outcome": NOTHING_TO_DO, "reason": result.reason})


def backfill_done(
    branch: str, stands_on: str | None, first_epoch: int, results: Sequence[RunReport | UpToDate]
) -> Facts:
    """Return the facts of a backfill. Its runs report by themselves what they read and wrote."""
    runs = [result.spec.name for result in results if isinstance(result, RunReport)]
    outcome = COMMITTED if runs else NOTHING_TO_DO
    return Facts(
        details={"outcome": outcome, "branch": branch, "stands_on": stands_on, "first_epoch": first_epoch, "runs": runs}
    )


def branch_changed(
    locator: Locator, state: JobState, into: str, details: Mapping[str, Any], source: str | None = None
) -> Facts:
    """Return what a promotion, a rewind or an acceptance left in the output tables of a branch; ``source`` was promoted."""
    branch = state.branch(into)
    head = branch.published_runs[-1] if branch.published_runs else None
    outputs = []
    for target, table in branch.tables.items():
        if not target.startswith(OUTPUT):
            continue
        total = head.commit.targets.get(target) if head else None
        known = {"run": head.spec.name if head else None, "digest": total.digest if total else None}
        outputs.append(Written(locator.output(table, with_version=True), commit=known))
    inputs = _outputs_of(locator, state.branch(source)) if source else ()
    did_something = any(details.get(name) for name in ("is_new", "rewound", "accepted", "lagged"))
    if not did_something:
        return Facts(details={"outcome": NOTHING_TO_DO, **details})
    return Facts(inputs, tuple(outputs), {"outcome": COMMITTED, **details})


def _run_measures(details: Mapping[str, Any]) -> list[Measure]:
    measures = [Measure("records", count, {"topic": topic}) for topic, count in details["records"].items()]
    measures += [Measure("rows", count, {"output": topic}) for topic, count in details["rows"].items()]
    for kind, reasons in details["dropped"].items():
        measures += [Measure("dropped", count, {"kind": kind, "reason": reason}) for reason, count in reasons.items()]
    return [*measures, Measure("behind", details["behind"])]


def _copied(feed: Feed, topic: str, source: Table) -> ColumnOrigins:
    schema = feed.definition.logs[topic]
    columns = {column.name: frozenset([Origin(topic, column.name)]) for column in (*schema.key, *schema.value)}
    return ColumnOrigins({topic: source}, columns)


def _origins(job: Job, logs: Mapping[str, Table]) -> dict[str, ColumnOrigins]:
    known = column_origins(job.code.topology, job.code.load_logs())
    return {f"{OUTPUT}{topic}": ColumnOrigins(logs, one.columns, one.rows) for topic, one in known.items()}


def _topics(job: Job) -> list[str]:
    topics = [
        source.topic for part in job.code.topology.sub_topologies() for source in part.sources if not source.is_internal
    ]
    return [topic for topic in dict.fromkeys(topics) if topic in job.feed.definition.logs]


def _outputs(targets: Mapping[str, Any]) -> list[str]:
    return [target for target in targets if target.startswith(OUTPUT)]


def _outputs_of(locator: Locator, branch: Branch) -> tuple[Read, ...]:
    return tuple(Read(locator.output(branch.tables[target], with_version=True)) for target in _outputs(branch.tables))


def _landings(feed: Feed, topic: str, first: int, last: int) -> dict[str, Any]:
    landing = feed.landings[last - 1]
    return {
        "feed": feed.definition.feed,
        "topic": topic,
        "generation": landing.generation,
        "first": first,
        "last": last,
        "watermark_ms": known_time(landing.watermark_ms),
    }


def _records(landings: Sequence[Landing], topic: str) -> int:
    ranges = (item for landing in landings for item in landing.ranges.items())
    return sum(landed.end - landed.start for where, landed in ranges if where.topic == topic)


def _last_positions(locator: Locator, feed: str) -> Mapping[str, Any]:
    last = next((row.body for row in reversed(locator.tables.feed_rows(feed)) if row.kind == LANDING), {})
    found: Mapping[str, Any] = last.get("positions") or {}
    return found
