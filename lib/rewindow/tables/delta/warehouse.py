"""The adapter of tables that are folders of files, through delta-rs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.expectations import EXPECTATIONS
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, LogTable
from rewindow.control.plan.spec import CHANGELOG, Commit, JournalFile, RunSpec, TableSpec
from rewindow.errors import InvariantError, StorageError
from rewindow.storage.locations import check_spark_reads
from rewindow.tables.delta.check_published import Checked, check_ledger, check_published, check_state, lagging
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.ledger import LandingLedgers, Ledger
from rewindow.tables.delta.open_table import open_table, table_path
from rewindow.tables.delta.run_rows import measures, run_batches, staged_batches
from rewindow.tables.delta.table_rows import (
    content_hash,
    count_rows,
    first_rows,
    read_batches,
    read_rows,
    rows_of_key,
    table_files,
)
from rewindow.tables.shared.audit import INTERNAL, audit_counts, commit_of, not_deterministic
from rewindow.tables.shared.ledger import JobStates, dated
from rewindow.tables.shared.paths import JOURNAL, QUARANTINE, RUNS, internal_path, log_path, staged_by

if TYPE_CHECKING:
    from rewindow.control.health.inputs import StepTimes
    from rewindow.control.ingest.landings import Feed
    from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
    from rewindow.control.run import Job
    from rewindow.streams.record import TopicPartition
    from rewindow.tables.delta.drift import Digest
    from rewindow.tables.delta.journal import Journal
    from rewindow.tables.delta.log_tables import LogFiles
    from rewindow.tables.delta.publish import FileRefusals
    from rewindow.tables.delta.quarantine import FileQuarantine
    from rewindow.tables.shared.checkpoints import Checkpoint
    from rewindow.tables.shared.diff import TableDiff
    from rewindow.tables.shared.drift import Drift
    from rewindow.tables.shared.stored_feeds import Feeds
    from rewindow.tables.shared.stored_formats import StoredTable


class DeltaTables:
    """The tables of one warehouse, through delta-rs."""

    def __init__(self, warehouse: str, *, reads_directly: bool = True, digest: Digest | None = None) -> None:
        """Bind to a folder or URI. Nothing is read or created.

        ``reads_directly``: whether workers may open the logs' files. ``digest`` returns the digest of rows, as tasks compute
        it.
        """
        self.warehouse, self.digest, self._reads_directly = warehouse.rstrip("/"), digest, reads_directly
        self._ledgers, self._reports = dict[str, Ledger](), dict[str, list[TaskReport]]()
        self.landing_ledgers = LandingLedgers(self.warehouse)
        self._states = JobStates()
        self._checked, self._published = Checked(), dict[tuple[str, str, str], int]()
        self._logs: dict[tuple[str, str], tuple[tuple[int, int], LogFiles]] = {}

    def ledger(self, job: str) -> Ledger:
        """Return a job's ledger. Each job has one `Ledger` object, which reads each file only once."""
        return self._ledgers.setdefault(job, Ledger(table_path(self.warehouse, RUNS), job))

    def state(self, job: str) -> JobState:
        """Return a job's current state. Raises `InvariantError` (70) if its ledger is broken."""
        return self._states.fold(job, self.ledger_rows(job))

    def command(self, *, feed: str, job: str | None = None) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context that does nothing. Ledgers are always read again, because reading one takes milliseconds."""
        return nullcontext()

    def reading(self, feeds: Iterable[str], jobs: Iterable[str]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context that does nothing. Ledgers are always read again, because reading one takes milliseconds."""
        return nullcontext()

    def ledger_rows(self, job: str) -> Sequence[LedgerRow]:
        """Read a job's ledger, and return all its rows."""
        return self.ledger(job).read()

    def append(self, job: str, *rows: LedgerRow) -> bool:
        """Append rows in one commit. Return False if another writer has used their numbers (see `Ledger.append`)."""
        self._states.store(job, self.ledger(job))
        return self.ledger(job).append(dated(rows))

    def feed(self, feed: str) -> Feed:
        """Return a feed as its landing ledger defines it. Raises `SourceError` (66) if it was never landed."""
        return self._folded_feeds.find(feed, self.feed_rows(feed), self.home)

    @cached_property
    def _folded_feeds(self) -> Feeds:
        from rewindow.tables.shared.stored_feeds import Feeds

        return Feeds()

    def feed_rows(self, feed: str) -> Sequence[LedgerRow]:
        """Read a feed's landing ledger, and return all its rows."""
        return self.landing_ledgers.of(feed).read()

    @property
    def home(self) -> str:
        """Where the ledgers are, as messages show it."""
        return self.warehouse

    def roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Create missing tables; return the folder of each target, including internal logs. Raises as `publish.prepare` does."""
        from rewindow.tables.delta.publish import prepare

        prepare(self.warehouse, spec.job, self.state(spec.job), spec.branch, spec.binding.tables)
        return self._roots(spec, internal)

    def check_targets(self, spec: RunSpec) -> None:
        """Check a planned run's existing tables without changing anything. Raises as `roots` would."""
        from rewindow.tables.delta.publish import check_targets

        check_targets(self.warehouse, spec.job, self.state(spec.job), spec.branch, spec.binding.tables)

    def check_owners(self, job: str, branch: str, outputs: Iterable[TableSpec]) -> None:  # noqa: ARG002
        """Raise `ConfigError` (78) if an existing output table belongs to another job."""
        from rewindow.tables.delta.create_table import check_owners

        check_owners(self.warehouse, job, outputs)

    def scratch_roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Return, for each target, a folder outside of all tables. The files in these folders are compared, then deleted."""
        folder = table_path(self.warehouse, f"internal/{spec.job}/{spec.attempt.id}")
        return {
            target: f"{folder}/{target}"
            for target in (*spec.binding.tables, *(f"{INTERNAL}{topic}" for topic in internal))
        }

    def discard(self, spec: RunSpec) -> None:
        """Delete an attempt's scratch folders."""
        Folder(table_path(self.warehouse, f"internal/{spec.job}/{spec.attempt.id}")).remove()

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target in which a replay into scratch folders differs from the committed run."""
        from rewindow.tables.delta.diff import staged_rows
        from rewindow.tables.shared.diff import first_difference

        internal = [target.removeprefix(INTERNAL)] if target.startswith(INTERNAL) else []
        made, committed = self.scratch_roots(spec, internal), self._roots(run.spec, internal)
        rows = staged_rows(committed[target], self.reports(run), target), staged_rows(made[target], reports, target)
        return first_difference(*rows) or "the rows are equal, their digests are not"

    def check_repeats(self, spec: RunSpec, reports: Sequence[TaskReport], feed: Feed) -> None:
        """Check that an attempt made the same rows as the one that it repeats, if the repeated attempt staged a complete run.

        Raises `InvariantError` (70), which names the table and the first row that differs.
        """
        from rewindow.tables.delta.diff import staged_rows, unstored_partition
        from rewindow.tables.shared.diff import first_difference

        roots = self._roots(spec, ())
        before = self._complete(spec, feed, roots) if spec.repeats else None
        if before is None:
            return
        for target, root in roots.items():
            # Results of expectations may differ, because the expectations in the job's file may have changed since.
            if target == EXPECTATIONS:
                continue
            rows = [staged_rows(root, made, target) for made in (before, reports)]
            different = first_difference(rows[0], rows[1], ignored=["_run", *unstored_partition(target)])
            if different is not None:
                raise not_deterministic(spec, target, different)

    def staged_batches(
        self, spec: RunSpec, reports: Sequence[TaskReport], target: str, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``names`` of the rows that an attempt staged for a target, in the order of its tasks."""
        return staged_batches(self._roots(spec, ())[target], reports, target, names)

    def run_batches(self, run: CommittedRun, target: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``names`` of a committed run's rows, from its staged files or from a table that was rewritten."""
        return run_batches(self.location_of(run.spec.binding.tables[target]), run, self.reports(run), target, names)

    def log_files(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:
        """Return the files of a log with the offsets ``[start, end)``.

        The log's files are listed again only after a landing.
        """
        return self._log(feed, where.topic).find(feed, where, start, end)

    def log_table(self, feed: Feed, topic: str) -> LogTable | None:
        """Return the table of a log that Spark must read for the tasks; None if the tasks can open the log's files."""
        source_offsets = feed.definition.source_offsets.get(topic)
        if source_offsets:
            path, why = source_offsets.table.replace(".", "/"), "its offsets are those of its source"
        else:
            path = log_path(feed.definition.feed, topic)
            why = self._log(feed, topic).problem if self._reads_directly else "the target says source: shuffle"
        location = table_path(self.warehouse, path)
        if why:
            check_spark_reads(location, why)
        return LogTable(location, why, source_offsets) if why else None

    def _log(self, feed: Feed, topic: str) -> LogFiles:
        from rewindow.tables.delta.log_tables import LogFiles

        key, state = (feed.definition.feed, topic), (feed.definition.generation, len(feed.landings))
        if key not in self._logs or self._logs[key][0] != state:
            self._logs[key] = (state, LogFiles(table_path(self.warehouse, log_path(*key))))
        return self._logs[key][1]

    def restore(self, state: JobState, spec: RunSpec) -> Checkpoint:
        """Return the checkpoint that a run resumes from.

        If another process has committed the parent run but not published it, the parent is published first.
        """
        parent = state.find_run(spec.parent)
        maker = parent.spec.branch if parent else spec.branch
        if parent and self._published.get((spec.job, state.ledger, maker), 0) < parent.shared_ordinal:
            for _ in self.publish(spec.job, state, maker):
                pass
        try:
            return self._checkpoint(state, spec.parent)
        except StorageError:
            # `gc` may have replaced changelog files by a snapshot that is not published yet.
            now = self.state(spec.job)
            for _ in self.publish(spec.job, now, maker):
                pass
            return self._checkpoint(now, spec.parent)

    def _checkpoint(self, state: JobState, parent: int | None) -> Checkpoint:
        from rewindow.control.plan.branch_decisions import check_has_state
        from rewindow.tables.delta.checkpoints import find_checkpoint

        check_has_state(state, parent)
        return find_checkpoint(self.warehouse, state.find_run(parent), state.basis(parent), self.reports)

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        """Stage the rows of a snapshot; return the ledger row that makes the snapshot valid once it is appended.

        Raises `StorageError` (74).
        """
        from rewindow.tables.delta.checkpoints import stage_snapshot

        return stage_snapshot(self.warehouse, state, run, uuid4().hex, self.reports)

    def stage(self, spec: RunSpec, reports: Sequence[TaskReport]) -> JournalFile:
        """Append the reports of an attempt to the journal, in one commit. Repeated calls change nothing."""
        return self._journal(spec.job).append(spec.attempt.id, reports)

    def audit(self, state: JobState, spec: RunSpec, staged: JournalFile, feed: Feed) -> Commit:
        """Read back all that an attempt staged; return its COMMIT.

        Raises `StorageError` (74), which names a file that was altered, and `InvariantError` (70) if records were lost or
        processed twice. In both cases, nothing was committed.
        """
        from rewindow.tables.delta.journal import audit_files

        reports = self._journal(spec.job).read(staged, spec.attempt.id)
        audit_counts(spec, feed, reports)
        audit_files(reports, self._roots(spec, ()))
        return commit_of(state, spec, staged, reports)

    def publish(self, job: str, state: JobState, branch: str) -> Iterator[str]:
        """Bring a branch's tables up to date with the ledger; yield the name of each commit before making it.

        Any process may do so at any time.
        """
        from rewindow.tables.delta.publish import publish

        yield from publish(self.warehouse, job, state, branch, self.reports, self.state)
        self._published[job, state.ledger, branch] = len(state.committed)

    def finish_reset(self, job: str, state: JobState) -> Iterator[str]:
        """Empty the tables that the last RESET names; yield the name of each commit before making it."""
        from rewindow.tables.delta.publish import finish_reset

        return finish_reset(self.warehouse, job, state)

    def unknown_tables(self, job: str, state: JobState, outputs: Sequence[str]) -> list[str]:
        """Return the tables with rows of the job that its ledger did not publish; see `publish.unknown`."""
        from rewindow.tables.delta.publish import unknown

        return unknown(self.warehouse, job, state, outputs)

    def store_rows(self, state: JobState, run: CommittedRun, store: str) -> pa.Table:
        """Return a store's keys and values after a run, with their partition. Raises `StorageError` (74)."""
        from rewindow.tables.delta.checkpoints import store_rows

        return store_rows(self.warehouse, run, state.basis(run.spec.run), store, self.reports)

    def restored(self, state: JobState, run: CommittedRun, store: str) -> tuple[int, int]:
        """Return how many rows and bytes of a store's changelog a restore of the state after a run reads."""
        from rewindow.tables.delta.checkpoints import changelog_files

        target, basis = f"{CHANGELOG}{store}", state.basis(run.spec.run)
        files = changelog_files(self.location_of(run.spec.binding.tables[target]), target, basis, self.reports)
        return sum(file.rows or 0 for file in files), sum(file.bytes for file in files)

    def lagging(self, job: str, state: JobState, branch: str) -> dict[str, int]:
        """Return, by target, how many publications each table of a branch lacks. Complete tables are left out."""
        return lagging(self.warehouse, job, state, branch)

    def check_ledger(self, job: str, state: JobState, branch: str) -> None:
        """Check that no table of a branch has publications that the ledger lacks. Raises `CheckpointError` (76)."""
        check_ledger(self.warehouse, job, state, branch, self.state)

    def check_published(
        self, job: str, state: JobState, branch: str, *, early: bool = False, brief: bool = False
    ) -> None:
        """Check that a branch's tables contain what was published; see `check_published`."""
        check_published(self.warehouse, job, state, branch, self.state, self._checked, early=early, brief=brief)

    def reports(self, run: CommittedRun) -> list[TaskReport]:
        """Return the reports of a committed run's tasks. The last result is cached."""
        attempt = run.commit.attempt
        if attempt not in self._reports:
            self._reports = {attempt: self._journal(run.spec.job).read(run.commit.journal, attempt)}
        return self._reports[attempt]

    def drift(self, job: str, state: JobState, branch: str) -> list[Drift]:
        """Return the tables of a branch that differ from what was published. Reads the tables' files."""
        from rewindow.tables.delta.drift import Files, find_drift

        return [*find_drift(self.warehouse, job, state, branch, Files(self.warehouse, self.reports, self.digest))]

    def known_reports(self, run: CommittedRun) -> Sequence[TaskReport]:
        """Return the reports of a committed run's tasks. They are in one file."""
        return self.reports(run)

    def check_next(self, job: str, state: JobState, branch: str) -> None:
        """Raise `StorageError` (74) if a file is missing that a branch's tables name or that its next run would read."""
        self.check_published(job, state, branch, early=True)
        head = state.branch(branch).head
        if head is not None and state.has_state(head.spec.run):
            check_state(self.warehouse, state, head, self.state, self.reports)

    def step_times(self, runs: Sequence[CommittedRun]) -> Mapping[int, StepTimes]:
        """Return when the steps of these runs ended, by run id; see `step_times`."""
        from rewindow.tables.delta.journal import step_times

        return step_times(self.warehouse, runs)

    def later_refusals(self, job: Job, state: JobState) -> FileRefusals:
        """Return the checks that a run makes before or after planning, for commands that only plan."""
        from rewindow.tables.delta.publish import FileRefusals

        check = partial(self.check_published, early=True, brief=True)
        return FileRefusals(self.warehouse, job, state, check, self.feed, self.state, self.reports)

    def stored_tables(self) -> list[StoredTable]:
        """Return rewindow's own tables, with the formats that are stated in their rows. Raises `StorageError` (74)."""
        from rewindow.tables.delta.stored_formats import stored_tables

        return stored_tables(self.warehouse)

    def measures(self, runs: Sequence[CommittedRun]) -> list[dict[str, Any]]:
        """Return the metrics of a chain of runs, added up by task; see `add_up_runs`."""
        return measures(self.warehouse, runs, self.reports)

    def location_of(self, table: TableSpec) -> str:
        """Return where a table is, as messages show it."""
        return table_path(self.warehouse, table.path)

    def count_rows(self, table: TableSpec) -> int:
        """Return how many rows a table has."""
        return count_rows(self.location_of(table))

    def first_rows(self, table: TableSpec, limit: int, *, last: bool = False, keys: Sequence[str] = ()) -> pa.Table:
        """Return the first ``limit`` rows of an output, or the last, in the order of timestamp, record and ``keys``."""
        return first_rows(self.location_of(table), limit, last=last, keys=keys)

    def rows_of_runs(self, table: TableSpec, runs: Collection[int]) -> pa.Table:
        """Return the rows of these runs in an output, in no particular order."""
        return read_rows(self.location_of(table), where=pc.field("_run").isin(pa.array(list(runs), pa.int64())))

    def frame(self, session: Any, table: TableSpec) -> Any:
        """Return an output as a data frame of a Spark session. The session must be able to read the folder or bucket."""
        return session.read.format("delta").load(self.location_of(table))

    def rows_of_key(self, table: TableSpec, key: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Return the rows of an output whose key columns have one of the given values, in the order in which runs wrote them."""
        return rows_of_key(self.location_of(table), key)

    def similar_key(self, table: TableSpec, column: str, text: str) -> str | None:
        """Return a value of a key column that differs from ``text`` only in case or surrounding blanks; None if there is none."""
        same = pc.utf8_lower(pc.utf8_trim_whitespace(pc.field(column))) == text.strip().lower()
        keys = (
            key for batch in read_batches(self.location_of(table), same) for key in batch.column(column).to_pylist()
        )
        return next((key for key in keys if key != text), None)

    def has_foreign_rows(self, table: TableSpec) -> bool:
        """Return whether a table has files that no run staged, such as files of UPDATE or OPTIMIZE."""
        path = self.location_of(table)
        handle = open_table(path)
        return handle is not None and not all(staged_by(file.path) for file in table_files(path, handle))

    def log_path(self, feed: str, topic: str) -> str:
        """Return the path of a log that `land` writes, below the warehouse."""
        return log_path(feed, topic)

    def first_batches(self, feed: str, topic: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a log, beginning with its first file. Raises `StorageError` (74) if the log has no table."""
        yield from read_batches(table_path(self.warehouse, log_path(feed, topic)))

    def only_spark_reads(self, feed: Feed, topic: str) -> str:
        """Return why only Spark can read the records of a log; an empty text if this process can."""
        table = self.log_table(feed, topic)
        return table.why if table else ""

    def log_parts(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:
        """Return the files with the offsets ``[start, end)`` of a log."""
        return self.log_files(feed, where, start, end)

    def as_files(self, feed: Feed, parts: Sequence[LogFile]) -> Sequence[LogFile]:  # noqa: ARG002
        """Return ``parts`` unchanged, because they are files already."""
        return parts

    def quarantine(self, feeds: Iterable[str]) -> FileQuarantine | None:
        """Return the quarantine without rows of replaced landings of these feeds; None if there is no quarantine."""
        from rewindow.tables.delta.quarantine import open_quarantine

        return open_quarantine(table_path(self.warehouse, QUARANTINE), map(self.feed_rows, feeds))

    def version_of(self, table: TableSpec) -> int | None:
        """Return a table's Delta version; None if there is no table."""
        return handle.version() if (handle := open_table(self.location_of(table))) else None

    def compare(
        self, first: TableSpec, second: TableSpec, keys: Sequence[str], *, epochs: tuple[int, int], samples: int
    ) -> TableDiff:
        """Compare two output tables key by key; see `compare_tables`."""
        from rewindow.tables.delta.diff import compare_tables

        return compare_tables(self.location_of(first), self.location_of(second), keys, epochs=epochs, samples=samples)

    def content_hash(self, table: TableSpec) -> str:
        """Return the content hash of a table."""
        return content_hash(self.location_of(table))

    def hashes(self, job: str, branch: str) -> dict[str, str]:
        """Return the content hash of each table of a branch. Equal results have equal hashes (L2)."""
        from rewindow.tables.delta.diff import branch_hashes

        return branch_hashes(self.warehouse, self.state(job), branch, self.reports)

    def _roots(self, spec: RunSpec, internal: Iterable[str]) -> dict[str, str]:
        roots = {target: table_path(self.warehouse, table.path) for target, table in spec.binding.tables.items()}
        for topic in internal:
            roots[f"{INTERNAL}{topic}"] = table_path(self.warehouse, internal_path(spec.job, spec.attempt.id, topic))
        return roots

    def _complete(self, spec: RunSpec, feed: Feed, roots: Mapping[str, str]) -> list[TaskReport] | None:
        """Return the reports of the attempt that ``spec`` repeats; None if its reports or files are incomplete or damaged."""
        from rewindow.tables.delta.journal import audit_files

        try:
            before = self._journal(spec.job).find(spec.repeats) if spec.repeats else None
            if before is not None:
                audit_counts(spec, feed, before)
                audit_files(before, roots)
        except (InvariantError, StorageError):
            return None
        return before

    def _journal(self, job: str) -> Journal:
        from rewindow.tables.delta.journal import Journal

        return Journal(table_path(self.warehouse, JOURNAL), job)
