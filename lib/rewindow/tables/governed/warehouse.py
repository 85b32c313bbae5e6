"""The adapter of tables that a catalog governs, through Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rewindow.contracts.expectations import EXPECTATIONS
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, LogTable
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.commit import Commit, JournalFile, TargetTotal
from rewindow.control.plan.spec import CHANGELOG, OUTPUT, RunSpec, TableSpec
from rewindow.control.plan.stored_format import stored_json
from rewindow.engine.spark.errors import mapped
from rewindow.engine.spark.open_table import named
from rewindow.errors import InvariantError, StorageError, one_line
from rewindow.streams.record import TopicPartition
from rewindow.tables.governed.checkpoints import find_checkpoint
from rewindow.tables.governed.commit import OWNER, create_table, owner, table_version
from rewindow.tables.governed.diff import compare_frames, frame_hash
from rewindow.tables.governed.drift import check_published
from rewindow.tables.governed.engine import ROOT
from rewindow.tables.governed.journal import (
    REPORT,
    SparkJournal,
    block_path,
    journal_row,
    rows_of_block,
    summary,
)
from rewindow.tables.governed.ledger import SparkLedger
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.publish import check_claim, lagging, publish
from rewindow.tables.governed.run_rows import block_batches
from rewindow.tables.shared.audit import INTERNAL, audit_counts, commit_of, totals
from rewindow.tables.shared.checkpoint import Checkpoint
from rewindow.tables.shared.diff import TableDiff, first_difference
from rewindow.tables.shared.ledger import dated
from rewindow.tables.shared.publications import SHARED_TABLES, due_tables
from rewindow.tables.shared.warehouse import Feeds, JobStates, not_deterministic

_JOURNAL, _LANDINGS = "rewindow_journal", "rewindow_landings"


class CatalogTables:
    """The tables of one catalog's schema, through Spark. Only heartbeats are files of the warehouse."""

    def __init__(self, spark: Callable[[], SparkSession], home: str, warehouse: str) -> None:
        """``home``: ``catalog.schema`` of rewindow's own tables. Nothing is read or created."""
        self.warehouse = warehouse.rstrip("/")
        self._spark_of = spark
        self._home = TableName.parse(f"{home}.rewindow_runs", "")
        self._spark_ledgers: dict[str, SparkLedger] = {}
        self._feed_ledgers: dict[str, SparkLedger] = {}
        self._states, self._folded_feeds = JobStates(), Feeds()
        self._reports: dict[str, list[TaskReport]] = {}
        self._created: set[tuple[str, str]] = set()

    def journal(self, job: str) -> SparkJournal:
        """Return a job's journal."""
        return SparkJournal(self._spark_of, self._home._replace(name=_JOURNAL), job)

    def state(self, job: str) -> JobState:
        """Return a job's current state. Raises `InvariantError` (70) if its ledger is broken."""
        return self._states.fold(job, self.ledger_rows(job))

    def append(self, job: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return whether they are the rows that now have their numbers."""
        return self._rows(job).append(dated(rows))

    def ledger_rows(self, job: str) -> list[LedgerRow]:
        """Return the rows of a job's ledger from a fresh look."""
        return self._rows(job).read()

    @property
    def home(self) -> str:
        """Where the ledgers are, for people."""
        return f"{self._home.catalog}.{self._home.schema}"

    def landings(self, feed: str) -> SparkLedger:
        """Return a feed's landing ledger."""
        name = self._home._replace(name=_LANDINGS)
        return self._feed_ledgers.setdefault(feed, SparkLedger(self._spark_of, name, feed))

    def feed_rows(self, feed: str) -> list[LedgerRow]:
        """Return the rows of a feed's landing ledger from a fresh look."""
        return self.landings(feed).read()

    def feed(self, feed: str) -> Feed:
        """Return a feed as its landing ledger defines it. Raises `SourceError` (66) if it was never landed."""
        return self._folded_feeds.find(feed, self.feed_rows(feed), self.home)

    def log_name(self, feed: str, topic: str) -> TableName:
        """Return the table of a log that `land` writes. Its properties name its feed and topic (ADR-58)."""
        return self._home._replace(name=re.sub("[-.]", "_", f"log_{feed}__{topic}"))

    def log_table(self, feed: Feed, topic: str) -> LogTable:
        """Return the table of a log: Spark reads it for the tasks."""
        source_offsets = feed.definition.source_offsets.get(topic)
        name = self.name_of(source_offsets.table) if source_offsets else self.log_name(feed.definition.feed, topic)
        return LogTable(named(name.quoted), f"{self._home.catalog} governs it", source_offsets)

    def log_files(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:  # noqa: ARG002
        """Return nothing: Spark reads every log for the tasks (`log_table`)."""
        return ()

    def name_of(self, path: str) -> TableName:
        """Return the table at a `TableSpec`'s path: an output by its own name, rewindow's tables beside the ledger."""
        if path.startswith("rewindow/"):
            return self._home._replace(name=path.replace("/", "_"))
        return TableName.parse(path, self._home.catalog)

    def roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Create missing tables; return the path prefix of each target's blocks."""
        if not self._created:
            self.journal(spec.job).prepare()
        state = self.state(spec.job)
        for target, table in spec.binding.tables.items():
            self._create(spec.job, spec.branch, target, table)
            if not target.startswith(CHANGELOG):
                check_claim(self._spark_of(), spec.job, state, target, self.name_of(table.path), table.path)
        return self.scratch_roots(spec, internal)

    def check_targets(self, spec: RunSpec) -> None:
        """Raise what `roots` would raise for a planned run's existing tables; change nothing."""
        state = self.state(spec.job)
        for target, table in spec.binding.tables.items():
            name = self.name_of(table.path)
            if not target.startswith(CHANGELOG) and table_version(self._spark_of(), name) is not None:
                check_claim(self._spark_of(), spec.job, state, target, name, table.path)

    def scratch_roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Return the path prefix of each target's blocks. It begins with the attempt, so a replay has its own."""
        targets = (*spec.binding.tables, *(f"{INTERNAL}{topic}" for topic in internal))
        return {target: f"{ROOT}{block_path(spec.attempt.id, target, '')}".rstrip("/") for target in targets}

    def discard(self, spec: RunSpec) -> None:
        """Remove what a replay made from the journal."""
        self.journal(spec.job).drop([spec.attempt.id])

    def totals(self, reports: Sequence[TaskReport]) -> Mapping[str, TargetTotal]:
        """Return the rows, files and bytes that reports name, by target."""
        return totals(reports)

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target that a replay made differently."""
        before = self._staged(spec.job, run.commit.attempt, target, self.reports(run))
        now = self._staged(spec.job, spec.attempt.id, target, reports)
        return first_difference(before, now) or "the rows are equal, their digests are not"

    def restore(self, state: JobState, spec: RunSpec) -> Checkpoint:
        """Return the checkpoint that a run resumes from: blocks of the journal, in the order of their runs."""
        return find_checkpoint(state.basis(spec.parent), self.reports)

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow | None:  # noqa: ARG002
        """Return None: stores have no tables here, and a restore reads only the blocks that it needs from the journal."""
        return None

    def stage(self, spec: RunSpec, reports: Sequence[TaskReport]) -> JournalFile:
        """Append the report of the run as a whole; the engine appended the others. Repeating changes nothing."""
        last = reports[-1]
        text = stored_json(last.as_json())
        rows = pa.Table.from_batches([journal_row(last.sub_topology, last.partition, REPORT, "", text, None)])
        journal = self.journal(spec.job)
        failure: Exception | None = None
        try:
            with mapped():
                journal.append(spec.attempt.id, last.sub_topology, self._spark_of().createDataFrame(rows))
        except Exception as error:  # noqa: BLE001 - the append may have landed: the journal decides
            failure = error
        staged = journal.reports(spec.attempt.id)
        if summary("", staged) != summary("", reports):
            message = (
                f"attempt {spec.attempt.id} differs in the journal from its reports ({one_line(failure)}): run again"
            )
            raise StorageError(message) from failure
        return summary(spec.attempt.id, staged)

    def check_repeats(self, spec: RunSpec, reports: Sequence[TaskReport], feed: Feed) -> None:
        """Check that an attempt made the same rows as the attempt that it repeats, if that one staged a complete run."""
        before = self.journal(spec.job).reports(spec.repeats) if spec.repeats else []
        if not any(report.sub_topology == len(spec.binding.topology) for report in before):
            return  # it died before it reported completely, so there is nothing to compare
        try:
            audit_counts(spec, feed, before)
        except InvariantError:
            return
        for target in spec.binding.tables:
            if target == EXPECTATIONS:
                continue  # the job's file may expect something else now
            mine = self._staged(spec.job, spec.attempt.id, target, reports)
            theirs = self._staged(spec.job, spec.repeats or "", target, before)
            different = first_difference(theirs, mine, ignored=["_run"])
            if different is not None:
                raise not_deterministic(spec, target, different)

    def staged_batches(
        self, spec: RunSpec, reports: Sequence[TaskReport], target: str, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the rows that an attempt staged for a target, from its blocks in the journal."""
        return block_batches(self.journal(spec.job), spec.attempt.id, target, reports, names)

    def run_batches(self, run: CommittedRun, target: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the rows of a committed run, from its blocks in the journal."""
        return block_batches(self.journal(run.spec.job), run.commit.attempt, target, self.reports(run), names)

    def audit(self, state: JobState, spec: RunSpec, staged: JournalFile, feed: Feed) -> Commit:
        """Read back all that was staged; return the COMMIT of the attempt. Raises as the adapter of files does."""
        reports = self.journal(spec.job).reports(spec.attempt.id)
        if summary(spec.attempt.id, reports) != staged:
            raise StorageError(
                f"attempt {spec.attempt.id} differs from what was staged. Nothing was committed: run again"
            )
        audit_counts(spec, feed, reports)
        self.journal(spec.job).check(spec.attempt.id, [file for report in reports for file in report.files])
        return commit_of(state, spec, staged, reports)

    def publish(self, job: str, state: JobState, branch: str) -> Iterator[str]:
        """Bring a branch's tables up to the ledger; yield before each commit. Any process may do so at any time."""
        for due in due_tables(state, branch):
            if due.publications:
                self._create(job, branch, due.target, due.table)
        yield from publish(self._spark_of, self.journal(job), state, branch, self.name_of, self.reports)

    def lagging(self, job: str, state: JobState, branch: str) -> dict[str, int]:
        """Return how many commits each of a branch's tables lacks, by target, without those that lack none."""
        return lagging(self._spark_of, job, state, branch, self.name_of)

    def check_published(self, job: str, state: JobState, branch: str) -> None:
        """Check that a branch's outputs have the rows that were published. Raises `StorageError` (74)."""
        check_published(self._spark_of(), job, state, branch, self.name_of, lambda: self.state(job))

    def reports(self, run: CommittedRun) -> list[TaskReport]:
        """Return what a committed run's tasks reported. Raises `StorageError` (74) if the journal was altered."""
        attempt = run.commit.attempt
        if attempt not in self._reports:
            reports = self.journal(run.spec.job).reports(attempt)
            if summary(attempt, reports) != run.commit.journal:
                raise StorageError(
                    f"the journal lacks the reports that attempt {attempt} committed: restore it from a copy"
                )
            self._reports[attempt] = reports
        return self._reports[attempt]

    def location_of(self, table: TableSpec) -> str:
        """Return a table's full name; for a store the journal's name, which keeps its changes."""
        is_store = table.path.startswith("state/")
        return str(self._home._replace(name=_JOURNAL) if is_store else self.name_of(table.path))

    def count_rows(self, table: TableSpec) -> int:
        """Return how many rows a table has."""
        with mapped():
            return self._frame(table).count()

    def version_of(self, table: TableSpec) -> int | None:
        """Return a table's Delta version; None if there is no table."""
        return table_version(self._spark_of(), self.name_of(table.path))

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

    def _create(self, job: str, branch: str, target: str, table: TableSpec) -> None:
        """Create a missing table, once in a process. Raises `ConfigError` (78) if another job or branch owns it."""
        if target.startswith(CHANGELOG) or (table.path, branch) in self._created:
            return
        properties = {} if table.path in SHARED_TABLES else {OWNER: owner(job, branch)}
        create_table(self._spark_of(), self.name_of(table.path), table.columns, table.partition_by, properties)
        self._created.add((table.path, branch))

    def _frame(self, table: TableSpec) -> DataFrame:
        return self._spark_of().table(self.name_of(table.path).quoted)

    def _rows(self, job: str) -> SparkLedger:
        return self._spark_ledgers.setdefault(job, SparkLedger(self._spark_of, self._home, job))

    def _staged(self, job: str, attempt: str, target: str, reports: Sequence[TaskReport]) -> pa.Table | None:
        paths = [block_path(attempt, target, f.path) for report in reports for f in report.files if f.target == target]
        if not paths:
            return None
        with mapped():
            found = self.journal(job).blocks([attempt]).collect()
        return pa.concat_tables([rows_of_block(bytes(row["data"])) for row in found if row["path"] in paths])
