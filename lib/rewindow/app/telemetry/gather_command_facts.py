"""Gather facts about landings, runs and changes of branches, from results, from ledgers, and from the locations of tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rewindow.app.open_target import output_location
from rewindow.app.telemetry.command_facts import ColumnOrigins, Facts, Measure, Read, Table, Written
from rewindow.config.feed import SourceConfig, feed_spec
from rewindow.config.load import load_feed, load_job
from rewindow.config.target import PLATFORM, TargetConfig
from rewindow.contracts.ingest import SourceSpec
from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.control.health.inputs import dropped_by_reason, not_taken, rows_by_output
from rewindow.control.ingest.landings import LANDING, Feed, Landing
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import MAIN, OUTPUT, TableSpec
from rewindow.control.run import Job, RunReport
from rewindow.dsl.column_origins import TIMESTAMP, Origin, column_origins
from rewindow.streams.record import known_time
from rewindow.streams.serde.schema import Column
from rewindow.tables.shared.warehouse import Warehouse

if TYPE_CHECKING:
    from rewindow.control.ingest.landing_report import LandReport
    from rewindow.control.plan.job_state import Branch, JobState

_PARTITIONED_BY = (Column("generation", "long"), Column("partition", "long"))
_UNKNOWN_HOST = "databricks"
"""The host of a catalog if neither ``DATABRICKS_HOST`` nor the target names a host."""


@dataclass(frozen=True, slots=True)
class Locator:
    """Finds the tables of a project on a target."""

    root: Path
    target: TargetConfig
    warehouse: str
    tables: Warehouse

    def sources(self, feed: str) -> dict[str, Table]:
        """Return the source of each log of a feed, by topic, as the feed's file names it."""
        config = load_feed(self.root, feed)
        spec = feed_spec(config, project_root=str(self.root), warehouse=self.warehouse)
        sources = {}
        for log in spec.logs:
            given = config.logs[log.topic]
            sources[log.topic] = replace(self._source(given.source, log.source), renamed=given.columns)
        return sources

    def _source(self, given: SourceConfig, spec: SourceSpec) -> Table:
        if given.job is not None:
            return self._output_of(given)
        if given.table is not None:
            return self._at(given.table if self._host else given.table.replace(".", "/"))
        return Table(spec.location, format=spec.format)

    def logs(self, feed: Feed) -> dict[str, Table]:
        """Return the logs of a landed feed, by topic, with their columns and without versions."""
        return {topic: self._log(feed, topic) for topic in feed.definition.logs}

    def output(self, table: TableSpec, *, with_version: bool = False) -> Table:
        """Return an output table."""
        return self._at(table.path, table.columns, self.tables.version_of(table) if with_version else None)

    def log_version(self, feed: Feed, topic: str) -> int | None:
        """Return the Delta version of a log; None if its table does not exist."""
        return self.tables.version_of(TableSpec(self._log_path(feed, topic), ()))

    def _log_path(self, feed: Feed, topic: str) -> str:
        source_offsets = feed.definition.source_offsets.get(topic)
        if source_offsets:
            return source_offsets.table if self._host else source_offsets.table.replace(".", "/")
        return self.tables.log_path(feed.definition.feed, topic)

    def _log(self, feed: Feed, topic: str) -> Table:
        schema, own = feed.definition.logs[topic], feed.definition.source_offsets.get(topic)
        table, columns = self._at(self._log_path(feed, topic)), (*schema.key, *schema.value)
        if own is None:
            return replace(table, columns=(*_PARTITIONED_BY, *LOG_COLUMNS, *columns))
        renamed = {log: name for name, log in own.renames.items()}
        shown = tuple(Column(renamed.get(column.name, column.name), column.type) for column in columns)
        return replace(table, columns=shown, renamed={**renamed, TIMESTAMP: renamed.get(own.timestamp, own.timestamp)})

    def _output_of(self, source: SourceConfig) -> Table:
        config = load_job(self.root, str(source.job))
        return self._at(output_location(config, MAIN, self.target.catalog, str(source.output)))

    def _at(self, path: str, columns: tuple[Column, ...] = (), version: int | None = None) -> Table:
        location = self.tables.location_of(TableSpec(path, ()))
        if self._host:
            return Table(location, columns, version=version, catalog_host=self._host)
        name = path.replace("/", ".")
        return Table(location, columns, version=version, name=name, warehouse=self.warehouse)

    @property
    def _host(self) -> str | None:
        return catalog_host(self.target, os.environ) if self.target.catalog is not None else None


def catalog_host(target: TargetConfig, environ: Mapping[str, str]) -> str:
    """Return the host of a catalog: ``DATABRICKS_HOST``, or the Spark Connect server of the target."""
    server = target.connect if target.connect != PLATFORM else None
    given = environ.get("DATABRICKS_HOST", "") or server or ""
    host = urlsplit(given if "://" in given else f"https://{given}").netloc
    return host.rpartition("@")[2] or _UNKNOWN_HOST


COMMITTED, NOTHING_TO_DO = "committed", "nothing_to_do"


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Gathers the facts of operations on a project, for the observers of telemetry."""

    locator: Locator

    def landing_planned(self, feed: str) -> Facts:
        """Return the sources that a landing reads."""
        return Facts(tuple(Read(table) for table in self.locator.sources(feed).values()))

    def landing_done(self, report: LandReport) -> Facts:
        """Return what a landing read and wrote. If it added no landing, it read and wrote nothing."""
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
        feed = self.locator.tables.feed(report.feed)
        positions = _last_positions(self.locator, report.feed)
        landed = [landing for landing in feed.landings if landing.number in report.landings]
        records, sources = (
            {topic: _records(landed, topic) for topic in feed.definition.logs},
            self.locator.sources(report.feed),
        )
        inputs = [
            Read(replace(table, version=positions.get(topic, {}).get("version")), records.get(topic))
            for topic, table in sources.items()
        ]
        outputs = [
            Written(
                replace(table, version=self.locator.log_version(feed, topic)),
                records[topic],
                landings=_landings(feed, topic, report.landings[0], report.landings[-1]),
                origins=_copied(feed, topic, sources[topic]) if topic in sources else None,
            )
            for topic, table in self.locator.logs(feed).items()
            if topic not in feed.definition.source_offsets  # with source offsets, the source itself is the log
        ]
        measures = [Measure("landed", count, {"topic": topic}) for topic, count in records.items()]
        measures += [Measure("dropped", report.quarantined, {"kind": "quarantined"})] if report.quarantined else []
        measures += [Measure("rows_behind", report.behind)] if report.behind else []
        return Facts(tuple(inputs), tuple(outputs), {**details, "records": records}, tuple(measures))

    def run_planned(self, job: Job) -> Facts:
        """Return the logs that a run reads, and the tables that it writes."""
        logs = self.locator.logs(job.feed)
        inputs = tuple(Read(logs[topic]) for topic in _topics(job))
        outputs = {
            target: Written(self.locator.output(table))
            for target, table in job.binding.tables.items()
            if target.startswith(OUTPUT)
        }
        origins = _origins(job, logs)
        return Facts(
            inputs, tuple(replace(written, origins=origins.get(target)) for target, written in outputs.items())
        )

    def run_done(self, job: Job, result: RunReport | UpToDate) -> Facts:
        """Return what a run read and wrote, with its counts. A run that had nothing to do read and wrote nothing."""
        if isinstance(result, UpToDate):
            return self.run_skipped(result)
        spec, commit, logs = result.spec, result.commit, self.locator.logs(job.feed)
        origins = _origins(job, logs)
        inputs = tuple(
            Read(
                replace(logs[topic], version=self.locator.log_version(job.feed, topic)),
                commit.consumed.get(topic, 0),
                _landings(job.feed, topic, spec.input.first, spec.input.last) if spec.epochs else None,
            )
            for topic in _topics(job)
        )
        outputs = []
        for target, table in spec.binding.tables.items():
            total = commit.targets.get(target)
            if not target.startswith(OUTPUT) or not result.is_published:
                continue  # a run is on hold, so readers of the tables see nothing new
            last_commit = {
                "run": spec.name,
                "rows": total.rows if total else 0,
                "digest": total.digest if total else None,
            }
            counts = (total.rows, total.bytes, total.files) if total else (0, 0, 0)
            wrote = Written(
                self.locator.output(table, with_version=True), *counts, commit=last_commit, origins=origins.get(target)
            )
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
            "digests": {
                target.removeprefix(OUTPUT): commit.targets[target].digest for target in _outputs(commit.targets)
            },
            "chain": commit.chain,
            "completes_dead_attempt": spec.takes_over is not None,
        }
        met = [
            Measure(
                "expectations",
                1,
                {
                    "output": expectation.output,
                    "on_fail": expectation.on_fail,
                    "result": "met" if expectation.is_met else "unmet",
                },
            )
            for expectation in commit.expectations
        ]
        return Facts(inputs, tuple(outputs), details, (*_run_measures(details), *met))

    @staticmethod
    def run_skipped(result: UpToDate) -> Facts:
        """Return the facts of a run that had nothing to do."""
        return Facts(details={"outcome": NOTHING_TO_DO, "reason": result.reason})

    @staticmethod
    def backfill_done(
        branch: str, stands_on: str | None, first_epoch: int, results: Sequence[RunReport | UpToDate]
    ) -> Facts:
        """Return the facts of a backfill.

        They leave out what its runs read and wrote, because each run is an operation of its own.
        """
        runs = [result.spec.name for result in results if isinstance(result, RunReport)]
        outcome = COMMITTED if runs else NOTHING_TO_DO
        return Facts(
            details={
                "outcome": outcome,
                "branch": branch,
                "stands_on": stands_on,
                "first_epoch": first_epoch,
                "runs": runs,
            }
        )

    def branch_changed(
        self, state: JobState, into: str, details: Mapping[str, Any], source: str | None = None
    ) -> Facts:
        """Return the state of a branch's output tables after a promotion, a rewind or a publication.

        ``source``: the branch that was promoted.
        """
        branch = state.branch(into)
        head = branch.published_runs[-1] if branch.published_runs else None
        outputs = []
        for target, table in branch.tables.items():
            if not target.startswith(OUTPUT):
                continue
            total = head.commit.targets.get(target) if head else None
            last_commit = {"run": head.spec.name if head else None, "digest": total.digest if total else None}
            outputs.append(Written(self.locator.output(table, with_version=True), commit=last_commit))
        inputs = _outputs_of(self.locator, state.branch(source)) if source else ()
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
    by_topic = column_origins(job.code.topology, job.code.load_logs())
    return {
        f"{OUTPUT}{topic}": ColumnOrigins(logs, origins.columns, origins.rows) for topic, origins in by_topic.items()
    }


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
    positions: Mapping[str, Any] = last.get("positions") or {}
    return positions
