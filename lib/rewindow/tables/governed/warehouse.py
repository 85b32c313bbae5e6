"""The adapter of tables that a catalog governs, through Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, LogSpan, LogTable
from rewindow.control.health.inputs import StepTimes
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_fold import COMMIT, PLAN, RESTAGE, SNAPSHOT
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.spec import MAIN, OUTPUT, Commit, JournalFile, RunSpec, TableSpec
from rewindow.control.run import Job
from rewindow.engine.spark.spark_calls import mapped, named
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import OUTPUT_META
from rewindow.tables.governed.attempts import audit, check_repeats, may_hold, stage, staged_rows
from rewindow.tables.governed.check_published import check_published
from rewindow.tables.governed.checkpoints import changelog_files, find_checkpoint, stage_snapshot, store_rows
from rewindow.tables.governed.create_table import OWNER, check_owners, create_table, owner
from rewindow.tables.governed.diff import compare_frames, frame_hash
from rewindow.tables.governed.drift import find_drift
from rewindow.tables.governed.journal import ROOT, JournalRows, SparkJournal, block_path
from rewindow.tables.governed.last_publications import KnownTablesOfJobs, lacking
from rewindow.tables.governed.ledger import SparkLedger, give_state
from rewindow.tables.governed.log_tables import LogCopies, landed_files
from rewindow.tables.governed.names import TableName, log_name
from rewindow.tables.governed.own_rows import OwnRows, feed_name
from rewindow.tables.governed.own_table import METRIC, NAME
from rewindow.tables.governed.publish import (
    check_targets,
    claim,
    finish_reset,
    is_finished,
    is_published,
    lagging,
    publish,
    published_tables,
    unknown_tables,
    unpublished,
)
from rewindow.tables.governed.quarantine import CatalogQuarantine, open_quarantine
from rewindow.tables.governed.run_rows import RunReports, block_batches
from rewindow.tables.governed.stored_formats import stored_tables
from rewindow.tables.governed.table_history import table_version
from rewindow.tables.governed.table_rows import first_of, rows_of_key, similar_value
from rewindow.tables.shared.audit import INTERNAL, add_up_runs, reported
from rewindow.tables.shared.checkpoints import Checkpoint
from rewindow.tables.shared.diff import TableDiff, first_difference
from rewindow.tables.shared.drift import Drift
from rewindow.tables.shared.ledger import JobStates, dated
from rewindow.tables.shared.paths import METRICS, QUARANTINE
from rewindow.tables.shared.publications import SHARED_TABLES
from rewindow.tables.shared.stored_feeds import Feeds
from rewindow.tables.shared.stored_formats import StoredTable


class CatalogTables:
    """The tables of one catalog's schema, through Spark. Only heartbeats are files of the warehouse."""

    def __init__(self, spark: Callable[[], SparkSession], home: str, warehouse: str) -> None:
        """``home``: catalog and schema of rewindow's own tables, as ``catalog.schema``. Nothing is read or created."""
        self.warehouse = warehouse.rstrip("/")
        self._spark_of = spark
        self._home = TableName.parse(f"{home}.{NAME}", "")
        self.own, self._states, self._folded_feeds = OwnRows(spark, self._home), JobStates(), Feeds()
        self._reports, self.known_tables = RunReports(self.journal), KnownTablesOfJobs(spark, self.own)
        self._copies = LogCopies()
        self._created, self._logs = set[tuple[str, str]](), dict[str, tuple[str, str]]()

    def command(self, *, feed: str, job: str | None = None) -> AbstractContextManager[None]:
        """Return the context manager of one landing or run.

        Inside it, a single query reads all ledgers and reports that are needed.
        """
        self.known_tables.clear()
        return self.own.command([feed_name(feed), *([job] if job else [])])

    def reading(self, feeds: Iterable[str], jobs: Iterable[str]) -> AbstractContextManager[None]:
        """Return the context manager of a command that only reads. Inside it, one query reads these ledgers and their reports.

        The history of each table is read once.
        """
        self.known_tables.clear()
        return self.own.command([*map(feed_name, feeds), *jobs], only_reads=True)

    def journal(self, job: str) -> SparkJournal:
        """Return a job's journal."""
        return self.own.journal(job)

    def state(self, job: str) -> JobState:
        """Return a job's current state. Raises `InvariantError` (70) if its ledger is broken."""
        return self._states.fold(job, self.ledger_rows(job))

    def append(self, job: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return False if another writer has used their numbers.

        During a command, a PLAN may be held in memory until workers append rows or the run commits (`may_hold`). A row that
        makes an attempt valid is appended together with the rows of the attempt that the journal holds.
        """
        if self.own.is_in_command and may_hold(self.state(job), self.ledger_rows(job), rows):
            return self.own.ledger(job).hold(dated(rows))
        attempts = [row.body["attempt"] for row in rows if row.kind in (COMMIT, SNAPSHOT, RESTAGE)]
        has_landed = self.own.append(
            job, dated(rows), give_state, attempts, self.known_tables(job).to_record() if attempts else ()
        )
        # The staged rows of a snapshot contain the number of its SNAPSHOT row. If the SNAPSHOT row did not land, the staged
        # rows are useless.
        if not has_landed and rows[0].kind == SNAPSHOT:
            self.journal(job).drop(attempts)
        # The metrics of the former attempt are deleted. Otherwise the view of the metrics would show them besides the new ones.
        if has_landed and rows[0].kind == RESTAGE:
            JournalRows(self.own.table, job).delete([f"{rows[0].body['was']}/{METRIC}"])
        return has_landed

    def ledger_rows(self, job: str) -> Sequence[LedgerRow]:
        """Return the rows of a job's ledger. During a command, rows that were read or appended are not read again."""
        return self.own.ledger(job).read()

    @property
    def home(self) -> str:
        """Where the ledgers are, as messages show it."""
        return f"{self._home.catalog}.{self._home.schema}"

    def landings(self, feed: str) -> SparkLedger:
        """Return a feed's landing ledger."""
        return self.own.ledger(feed_name(feed))

    def feed_rows(self, feed: str) -> Sequence[LedgerRow]:
        """Return the rows of a feed's landing ledger, as `ledger_rows` does."""
        return self.landings(feed).read()

    def feed(self, feed: str) -> Feed:
        """Return a feed as its landing ledger defines it. Raises `SourceError` (66) if it was never landed."""
        return self._folded_feeds.find(feed, self.feed_rows(feed), self.home)

    def log_name(self, feed: str, topic: str) -> TableName:
        """Return the name of the table of a log that `land` writes. Its properties name feed and topic (ADR-58)."""
        return log_name(self._home, feed, topic)

    def log_table(self, feed: Feed, topic: str) -> LogTable:
        """Return the table of a log, which Spark reads for the tasks of large sub-topologies."""
        source_offsets = feed.definition.source_offsets.get(topic)
        name = self.name_of(source_offsets.table) if source_offsets else self.log_name(feed.definition.feed, topic)
        self._logs[named(name.quoted)] = feed.definition.feed, topic
        return LogTable(named(name.quoted), f"{self._home.catalog} governs it", source_offsets)

    def log_files(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:  # noqa: ARG002
        """Return no files, because Spark reads every log for the tasks (`log_table`)."""
        return ()

    def landed_files(self, table: LogTable, partition: int, spans: Sequence[LogSpan]) -> list[LogFile]:
        """Return the landed blocks that contain the offsets in ``spans`` of a log's partition, in offset order."""
        feed, topic = self._logs[table.location]
        return landed_files(self.landings(feed), topic, partition, spans)

    def rows_staged(self, path: str) -> int | None:
        """Return the number of rows of a block that a run staged; None if the run's reports were not read."""
        return self._reports.rows_staged(path)

    def name_of(self, path: str) -> TableName:
        """Return the name of the table at the path of a `TableSpec`. Rewindow's own tables are in the schema of the ledger."""
        if path.startswith("rewindow/"):
            return self._home._replace(name=path.replace("/", "_"))
        return TableName.parse(path, self._home.catalog)

    def roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Create missing tables; return the path prefix of each target's blocks."""
        self.journal(spec.job).prepare()
        for _step in self.finish_reset(spec.job, self.state(spec.job)):
            # Another process may have appended a RESET after this run published.
            pass
        for target, table in spec.binding.tables.items():
            if is_published(target):
                self._create(spec.job, spec.branch, table)
        claim(self._spark_of(), self.state(spec.job), spec, self.name_of, self.known_tables(spec.job))
        return self.scratch_roots(spec, internal)

    def check_targets(self, spec: RunSpec) -> None:
        """Check a planned run's existing tables without changing anything. Raises as `roots` would."""
        check_targets(self._spark_of(), self.state(spec.job), spec, self.name_of)

    def check_owners(self, job: str, branch: str, outputs: Iterable[TableSpec]) -> None:
        """Raise `ConfigError` (78) if an existing output table belongs to another job or branch."""
        check_owners(self._spark_of(), map(self.name_of, (table.path for table in outputs)), owner(job, branch))

    def scratch_roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Return the path prefix of each target's blocks. The prefix begins with the attempt, so a replay has other blocks."""
        targets = (*spec.binding.tables, *(f"{INTERNAL}{topic}" for topic in internal))
        return {target: f"{ROOT}{block_path(spec.attempt.id, target, '')}".rstrip("/") for target in targets}

    def discard(self, spec: RunSpec) -> None:
        """Remove from the journal the rows that a replay staged."""
        self.journal(spec.job).drop([spec.attempt.id])

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target in which a replay differs from the committed run."""
        journal = self.journal(spec.job)
        before = staged_rows(journal, run.commit.attempt, target, self.reports(run))
        now = staged_rows(journal, spec.attempt.id, target, reports)
        return first_difference(before, now) or "the rows are equal, their digests are not"

    def restore(self, state: JobState, spec: RunSpec) -> Checkpoint:
        """Return the checkpoint that a run resumes from: blocks of the journal, in the order of their runs."""
        head = state.chain_to(spec.parent)[-1:]
        return find_checkpoint(head[0] if head else None, state.basis(spec.parent), self.reports)

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        """Let the journal hold a snapshot; return the ledger row that makes it valid once it is appended.

        Raises `StorageError` (74).
        """
        return stage_snapshot(self.journal(run.spec.job), state, run, uuid4().hex, self.reports)

    def stage(self, spec: RunSpec, reports: Sequence[TaskReport]) -> JournalFile:
        """Let the journal hold the report of the run as a whole. Raises `StorageError` (74) if it already has others."""
        return stage(self.journal(spec.job), spec, reports)

    def check_repeats(self, spec: RunSpec, reports: Sequence[TaskReport], feed: Feed) -> None:
        """Check that an attempt made the same rows as the one that it repeats, if the repeated attempt is complete."""
        check_repeats(self.journal(spec.job), spec, reports, feed)

    def staged_batches(
        self, spec: RunSpec, reports: Sequence[TaskReport], target: str, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``names`` of the rows that an attempt staged for a target, from its blocks in the journal."""
        return block_batches(self.journal(spec.job), spec.attempt.id, target, reports, names)

    def run_batches(self, run: CommittedRun, target: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``names`` of the rows of a committed run, from its blocks in the journal."""
        return block_batches(self.journal(run.spec.job), run.commit.attempt, target, self.reports(run), names)

    def audit(self, state: JobState, spec: RunSpec, staged: JournalFile, feed: Feed) -> Commit:
        """Check all that an attempt staged; return its COMMIT. Raises as `DeltaTables.audit` does."""
        return audit(self.journal(spec.job), state, spec, staged, feed)

    def publish(self, job: str, state: JobState, branch: str) -> Iterator[str]:
        """Bring a branch's tables up to date with the ledger; yield the name of each commit before making it.

        Any process may do so at any time.
        """
        yield from self.finish_reset(job, state)
        for due in published_tables(state, branch):
            if lacking(due, 0):
                self._create(job, branch, due.table)
        check, look = partial(self.check_ledger, job, state, branch), self.known_tables(job)
        yield from publish(self._spark_of, self.journal(job), state, branch, self.name_of, self.reports, look, check)

    def finish_reset(self, job: str, state: JobState) -> Iterator[str]:
        """Empty the tables that the last RESET names; yield the name of each commit before making it.

        Does nothing if a run was committed after the RESET. The metrics are a view of the journal. So the metrics of the
        former ledger identity are deleted from the journal.
        """
        if is_finished(state):
            return
        branches = {MAIN, *(row.body["branch"] for row in self.ledger_rows(job) if row.kind == PLAN)}
        yield from finish_reset(self._spark_of(), job, state, branches, self.name_of)
        rows = JournalRows(self.own.table, job)
        listed = [f"{item.attempt}/{item.part}" for item in rows.listed() if item.part == METRIC]
        now = self._states.fold(
            job, self.own.ledger(job).read_afresh()
        )  # The ledger is read after the journal was listed, so that the list has no metrics of a later COMMIT.
        if listed and not is_finished(now):
            yield "empty metrics"
            rows.delete(listed)

    def unknown_tables(self, job: str, state: JobState, outputs: Sequence[str]) -> list[str]:
        """Return the tables with rows of the job that its ledger did not publish; see `publish.unknown_tables`."""
        return unknown_tables(self._spark_of(), job, state, outputs, self.name_of)

    def unpublished(self, job: str, state: JobState, attempts: Collection[str]) -> set[str]:
        """Return the attempts whose rows a publication must still add to a table of any branch; see `publish.unpublished`."""
        return unpublished(self._spark_of, job, state, attempts, self.name_of, self.known_tables(job))

    def lagging(self, job: str, state: JobState, branch: str) -> dict[str, int]:
        """Return, by target, how many publications each table of a branch lacks. Complete tables are left out."""
        return lagging(self._spark_of, job, state, branch, self.name_of, self.known_tables(job))

    def check_published(self, job: str, state: JobState, branch: str, *, brief: bool = False) -> None:  # noqa: ARG002
        """Check that a branch's outputs have the rows that were published. Raises `StorageError` (74)."""
        self._check(job, state, branch, only_ledger=False)

    def check_ledger(self, job: str, state: JobState, branch: str) -> None:
        """Check that no output has publications that the ledger lacks. Raises `CheckpointError` (76)."""
        self._check(job, state, branch, only_ledger=True)

    def _check(self, job: str, state: JobState, branch: str, *, only_ledger: bool) -> None:
        fold, read, look = self._states.fold, self.own.ledger(job).read_afresh, self.known_tables(job)
        check_published(
            self._spark_of(),
            job,
            state,
            branch,
            self.name_of,
            lambda: fold(job, read()),
            look,
            only_ledger=only_ledger,
        )

    def drift(self, job: str, state: JobState, branch: str) -> list[Drift]:
        """Return the tables of a branch that differ from what was published. Reads all rows of the tables."""
        return list(find_drift(self._spark_of(), job, state, branch, self.name_of, self.known_tables(job)))

    def reports(self, run: CommittedRun) -> list[TaskReport]:
        """Return the reports of a committed run's tasks. Raises `StorageError` (74) if the journal was altered."""
        return self._reports.of(run)

    def known_reports(self, run: CommittedRun) -> None:  # noqa: ARG002
        """Return None. Reports are rows of the journal, and reading them takes a query."""
        return

    def check_next(self, job: str, state: JobState, branch: str) -> None:
        """Check nothing: tables and state are rows in the catalog, and the platform is responsible for their files."""

    def step_times(self, runs: Sequence[CommittedRun]) -> Mapping[int, StepTimes]:  # noqa: ARG002
        """Return no times, because one commit contains the staged rows, the reports and the COMMIT of a small run."""
        return {}

    def later_refusals(self, job: Job, state: JobState) -> CatalogRefusals:
        """Return the checks of the published tables. All other checks are made only by the run itself."""
        return CatalogRefusals(
            partial(self.check_published, job.name, state), partial(self.check_ledger, job.name, state)
        )

    def stored_tables(self) -> list[StoredTable]:
        """Return the parts of rewindow's own table, with the formats that are stated in their rows.

        Raises `StorageError` (74).
        """
        return stored_tables(self.own.table)

    def measures(self, runs: Sequence[CommittedRun]) -> list[dict[str, Any]]:
        """Return the metrics of a chain of runs, added up by task; see `add_up_runs`."""
        return add_up_runs(reported((run.spec.run, report) for run in runs for report in self.reports(run)))

    def store_rows(self, state: JobState, run: CommittedRun, store: str) -> pa.Table:
        """Return a store's keys and values after a run, with their partition. Raises `StorageError` (74) for a lost block."""
        return store_rows(self.journal(run.spec.job), run, state.basis(run.spec.run), store, self.reports)

    def restored(self, state: JobState, run: CommittedRun, store: str) -> tuple[int, int]:
        """Return how many rows and bytes of a store's changelog a restore of the state after a run reads."""
        files = [file for _, file in changelog_files(state.basis(run.spec.run), store, self.reports)]
        return sum(file.rows for file in files), sum(file.bytes for file in files)

    def location_of(self, table: TableSpec) -> str:
        """Return a table's full name. For a store, return the name of rewindow's own table, which contains its changelog."""
        return str(self._home if table.path.startswith("state/") else self.name_of(table.path))

    def count_rows(self, table: TableSpec) -> int:
        """Return how many rows a table has."""
        with mapped():
            return self._frame(table).count()

    def first_rows(self, table: TableSpec, limit: int, *, last: bool = False, keys: Sequence[str] = ()) -> pa.Table:
        """Return the first ``limit`` rows of an output, or the last, in the order of timestamp, record and ``keys``."""
        frame = self._frame(table)
        names = [column.name for column in OUTPUT_META if column.name != "_run"]
        with mapped():
            return first_of(frame, [name for name in (*names, *keys) if name in frame.columns], limit, last=last)

    def rows_of_runs(self, table: TableSpec, runs: Collection[int]) -> pa.Table:
        """Return the rows of these runs in an output, in no particular order."""
        with mapped():
            return self._frame(table).where(F.col("_run").isin(list(runs))).toArrow()

    def frame(self, session: SparkSession, table: TableSpec) -> DataFrame:
        """Return an output as a data frame of a Spark session that has the catalog."""
        return session.table(self.name_of(table.path).quoted)

    def rows_of_key(self, table: TableSpec, key: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Return the rows of an output whose key columns have one of the given values, in the order in which runs wrote them."""
        with mapped():
            return rows_of_key(self._frame(table), key)

    def similar_key(self, table: TableSpec, column: str, text: str) -> str | None:
        """Return a value of a key column that differs from ``text`` only in case or surrounding blanks; None if there is none."""
        with mapped():
            return similar_value(self._frame(table), column, text)

    def has_foreign_rows(self, table: TableSpec) -> bool:  # noqa: ARG002
        """Return False. Only `check_published`, which reads rows, finds out whether an output was changed."""
        return False

    def log_path(self, feed: str, topic: str) -> str:
        """Return the full name of a log that `land` writes."""
        return str(self.log_name(feed, topic))

    def first_batches(self, feed: str, topic: str) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield no rows, because a query takes longer than a small landing."""
        yield from ()

    def only_spark_reads(self, feed: Feed, topic: str) -> str:
        """Return why only Spark can read a log's records; an empty text if they were landed, because then this process can."""
        return "its offsets are those of its source" if topic in feed.definition.source_offsets else ""

    def log_parts(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:
        """Return the landed blocks with offsets ``[start, end)`` of a log."""
        spans = feed.spans(where, start, end)
        return landed_files(self.landings(feed.definition.feed), where.topic, where.partition, spans)

    def as_files(self, feed: Feed, parts: Sequence[LogFile]) -> Sequence[LogFile]:
        """Return landed blocks as local files, in the same order. The files last as long as this object."""
        return self._copies.files(self.journal(feed_name(feed.definition.feed)), parts)

    def quarantine(self, feeds: Iterable[str]) -> CatalogQuarantine | None:
        """Return the quarantine without rows of replaced landings of these feeds; None if there is no quarantine."""
        ledgers = {feed: (self.journal(feed_name(feed)), self.feed_rows(feed)) for feed in feeds}
        return open_quarantine(self._spark_of(), self.name_of(QUARANTINE), ledgers)

    def version_of(self, table: TableSpec) -> int | None:
        """Return a table's Delta version; None if there is no table.

        For metrics, return the version of rewindow's own table.
        """
        return table_version(self._spark_of(), self._home if table.path == METRICS else self.name_of(table.path))

    def compare(
        self, first: TableSpec, second: TableSpec, keys: Sequence[str], *, epochs: tuple[int, int], samples: int
    ) -> TableDiff:
        """Compare two output tables key by key; see `compare_frames`."""
        frames, columns = [self._frame(table) for table in (first, second)], [first.columns, second.columns]
        return compare_frames(frames, columns, keys, epochs=epochs, samples=samples)

    def content_hash(self, table: TableSpec) -> str:
        """Return the content hash of a table. Its rows are collected in this process."""
        return frame_hash(self._frame(table), table.columns)

    def hashes(self, job: str, branch: str) -> dict[str, str]:
        """Return the content hash of each output table of a branch."""
        tables = self.state(job).branch(branch).tables
        return {target: self.content_hash(table) for target, table in tables.items() if target.startswith(OUTPUT)}

    def _create(self, job: str, branch: str, table: TableSpec) -> None:
        """Create a table if it is missing (once per process). Raises `ConfigError` (78) if another job or branch owns it."""
        if (table.path, branch) in self._created:
            return
        properties = {} if table.path in SHARED_TABLES else {OWNER: owner(job, branch)}
        create_table(self._spark_of(), self.name_of(table.path), table.columns, table.partition_by, properties)
        self._created.add((table.path, branch))

    def _frame(self, table: TableSpec) -> DataFrame:
        return self._spark_of().table(self.name_of(table.path).quoted)


class CatalogRefusals:
    """The checks of published tables that a run makes before or after planning. Implements `LaterRefusals`."""

    def __init__(self, check_published: Callable[[str], None], check_ledgers: Callable[[str], None]) -> None:
        """``check_published`` checks a branch's tables.

        ``check_ledgers`` only checks that the ledger has their publications.
        """
        self._check_published, self._check_ledgers = check_published, check_ledgers

    def check_ledgers(self, branch: str) -> None:
        """Check that no output has publications that the ledger lacks. Raises `CheckpointError` (76)."""
        self._check_ledgers(branch)

    def check_published(self, branch: str) -> None:
        """Check that a branch's outputs have the rows that were published. Raises `StorageError` (74)."""
        self._check_published(branch)

    def check_run(self, spec: RunSpec) -> None:
        """Check nothing. The run itself checks its tables when it creates missing ones."""
