"""The protocol of a warehouse, which both adapters implement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile
from rewindow.control.health.inputs import StepTimes
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState, LedgerRow, Standing
from rewindow.control.plan.spec import OUTPUT, RunSpec, TableSpec
from rewindow.control.run import Job
from rewindow.control.verify import Scratch
from rewindow.errors import UsageError
from rewindow.streams.record import TopicPartition
from rewindow.tables.shared.diff import TableDiff
from rewindow.tables.shared.drift import Drift
from rewindow.tables.shared.quarantine import Quarantine
from rewindow.tables.shared.stored_formats import StoredTable


class Warehouse(Scratch, Protocol):
    """The tables of one warehouse: what runs and verifications need, and what commands show to people."""

    warehouse: str
    """The folder or URI of heartbeats and, unless a catalog governs them, of all tables."""

    @property
    def home(self) -> str:
        """Where the ledgers are, as messages show it."""
        ...

    def command(self, *, feed: str, job: str | None = None) -> AbstractContextManager[None]:
        """Return the context manager of one landing or run. Inside it, ledger rows may be reused instead of read again."""
        ...

    def reading(self, feeds: Iterable[str], jobs: Iterable[str]) -> AbstractContextManager[None]:
        """Return the context manager of a command that only reads these feeds and jobs. Inside it, rows may be reused."""
        ...

    def ledger_rows(self, job: str) -> Sequence[LedgerRow]:
        """Read the ledger of a job and return all its rows. Inside `command` or `reading`, known rows may be reused."""
        ...

    def feed(self, feed: str) -> Feed:
        """Return a feed as its landing ledger defines it. Raises `SourceError` (66) if it was never landed."""
        ...

    def feed_rows(self, feed: str) -> Sequence[LedgerRow]:
        """Read the landing ledger of a feed and return all its rows. Inside `command` or `reading`, known rows may be reused."""
        ...

    def check_owners(self, job: str, branch: str, outputs: Iterable[TableSpec]) -> None:
        """Raise `ConfigError` (78) if an output table exists and belongs to another job or, in a catalog, another branch."""
        ...

    def finish_reset(self, job: str, state: JobState) -> Iterator[str]:
        """Empty the tables that the last RESET names. Yields the name of each commit before making it."""
        ...

    def unknown_tables(self, job: str, state: JobState, outputs: Sequence[str]) -> Sequence[str]:
        """Return the tables with rows of the job that its ledger did not publish, among ``outputs`` and the job's own tables."""
        ...

    def location_of(self, table: TableSpec) -> str:
        """Return where a table is, as messages show it."""
        ...

    def drift(self, job: str, state: JobState, branch: str) -> Sequence[Drift]:
        """Return the tables of a branch that differ from what was published. Reads all rows of the tables."""
        ...

    def known_reports(self, run: CommittedRun) -> Sequence[TaskReport] | None:
        """Return the reports of a committed run's tasks; None if reading the reports takes more than opening a file."""
        ...

    def check_next(self, job: str, state: JobState, branch: str) -> None:
        """Raise `StorageError` (74) if a file is missing that a branch's tables name or that its next run would read."""
        ...

    def step_times(self, runs: Sequence[CommittedRun]) -> Mapping[int, StepTimes]:
        """Return when the steps of these runs ended, by run id. Steps whose time is not in the tables are left out."""
        ...

    def later_refusals(self, job: Job, state: JobState) -> LaterRefusals:
        """Return the checks that a run makes before or after planning, for commands that only plan."""
        ...

    def stored_tables(self) -> list[StoredTable]:
        """Return rewindow's own tables, with the formats that are stated in their rows.

        Reads every row of the ledgers and the journal.
        """
        ...

    def measures(self, runs: Sequence[CommittedRun]) -> list[dict[str, Any]]:
        """Return the metrics of a chain of runs, added up by task; see `add_up_runs`."""
        ...

    def count_rows(self, table: TableSpec) -> int:
        """Return how many rows a table has."""
        ...

    def first_rows(self, table: TableSpec, limit: int, *, last: bool = False, keys: Sequence[str] = ()) -> pa.Table:
        """Return the first ``limit`` rows of an output, or the last, in the order of timestamp, record and ``keys``."""
        ...

    def rows_of_runs(self, table: TableSpec, runs: Collection[int]) -> pa.Table:
        """Return the rows of these runs in an output, in no particular order."""
        ...

    def frame(self, session: Any, table: TableSpec) -> Any:
        """Return an output as a data frame of a Spark session."""
        ...

    def rows_of_key(self, table: TableSpec, key: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Return the rows of an output whose key columns have one of the given values, in the order in which runs wrote them."""
        ...

    def similar_key(self, table: TableSpec, column: str, text: str) -> str | None:
        """Return a value of a key column that differs from ``text`` only in case or surrounding blanks; None if there is none."""
        ...

    def has_foreign_rows(self, table: TableSpec) -> bool:
        """Return whether a writer other than a run wrote rows of an output; False if only reading the rows would tell."""
        ...

    def log_path(self, feed: str, topic: str) -> str:
        """Return the path of a log that `land` writes, as in `TableSpec.path`."""
        ...

    def first_batches(self, feed: str, topic: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a log, beginning with its first file; no rows if reading them takes longer than a small landing."""
        ...

    def only_spark_reads(self, feed: Feed, topic: str) -> str:
        """Return why only Spark can read the records of a log; an empty text if this process can."""
        ...

    def log_parts(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:
        """Return the parts with the offsets ``[start, end)`` of a log that this process can read. See `as_files`."""
        ...

    def as_files(self, feed: Feed, parts: Sequence[LogFile]) -> Sequence[LogFile]:
        """Return parts of a log as files that can be opened, in the same order."""
        ...

    def quarantine(self, feeds: Iterable[str]) -> Quarantine | None:
        """Return the quarantine without rows of replaced landings of these feeds; None if there is no quarantine."""
        ...

    def version_of(self, table: TableSpec) -> int | None:
        """Return a table's Delta version; None if there is no table."""
        ...

    def store_rows(self, state: JobState, run: CommittedRun, store: str) -> pa.Table:
        """Return a store's keys and values after a run, with their partition, in no particular order."""
        ...

    def restored(self, state: JobState, run: CommittedRun, store: str) -> tuple[int, int]:
        """Return how many rows and bytes of a store's changelog a restore of the state after a run reads."""
        ...

    def compare(
        self, first: TableSpec, second: TableSpec, keys: Sequence[str], *, epochs: tuple[int, int], samples: int
    ) -> TableDiff:
        """Compare two output tables key by key."""
        ...

    def content_hash(self, table: TableSpec) -> str:
        """Return the content hash of a table."""
        ...

    def hashes(self, job: str, branch: str) -> dict[str, str]:
        """Return the content hash of each table of a branch. Equal results have equal hashes (L2)."""
        ...


class LaterRefusals(Protocol):
    """The checks that a run makes before or after planning. Each check may refuse the run."""

    def check_ledgers(self, branch: str) -> None:
        """Check that no table has publications that the ledgers of the job and its feed lack. Raises `CheckpointError` (76)."""
        ...

    def check_published(self, branch: str) -> None:
        """Check a branch's published tables as a run does before and after planning. Raises as the run would."""
        ...

    def check_run(self, spec: RunSpec) -> None:
        """Check the tables, state and schedules of a planned run. Raises as the run would."""
        ...


def check_not_deleted(job: str, branch: Branch, version_of: Callable[[TableSpec], int | None]) -> None:
    """Raise `UsageError` (2) if `gc` has deleted an output of a dropped branch.

    Outputs without rows of the branch's runs are ignored.
    """
    if branch.standing is not Standing.DROPPED:
        return
    for target, table in branch.tables.items():
        own = (run.commit for run in branch.runs if run.spec.branch == branch.name)
        if target.startswith(OUTPUT) and any(commit.rows_in(target) for commit in own) and version_of(table) is None:
            raise UsageError(
                "branch-dropped",
                "branch {branch!r} was dropped, and `rewindow gc` has deleted its rows. To have them "
                "again, replay on a new branch: `rewindow backfill {job} --from LANDING --branch NAME`",
                branch=branch.name,
                job=job,
            )
