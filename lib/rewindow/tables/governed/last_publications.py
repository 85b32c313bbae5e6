"""The last publication to each table of a job, and whether the table has exactly the published rows.

A commit through Spark has only one application id. So it cannot close the ids of earlier publication epochs, as a commit to
files does. Instead, all epochs share one id, and a publication's version is its ordinal plus the number of republications
before it. The commit that begins an epoch has a version above all versions of the previous epoch. So if a writer still
publishes in the previous epoch, Delta skips its commits.

Reading the last version from a table's history takes a Spark job. The job is saved if an earlier run recorded the version
(`RecordedVersion`, in the same commit as its COMMIT) and the table is still as that run left it. The table certainly is so if
three conditions hold. The ledger has at most one publication since. The table has this publication. The table has no other
commit since. The last two are checked without a Spark job. The publication is looked up under its application id, whose state
the next publication needs anyway (`is_there`). A version is the newest if Delta refuses to read the version after it
(`is_newest`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from rewindow.tables.governed.commit import is_there
from rewindow.tables.governed.ledger import RecordedVersion
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_rows import OwnRows
from rewindow.tables.governed.table_history import TableLook, is_newest, look_at
from rewindow.tables.shared.publications import Due, changes_rows, missing


def version_of(due: Due, ordinal: int) -> int:
    """Return the version that a publication of the current publication epoch has under the table's application id."""
    return ordinal + due.restart.epoch - 1


def ordinal_at(due: Due, version: int) -> int:
    """Return the ordinal of a table's last publication, given its ``version`` under the application id.

    Returns 0 if the current publication epoch has not begun in this table.
    """
    ordinal = version - due.restart.epoch + 1
    return max(ordinal, 0) if due.restart.epoch == 1 or ordinal >= due.restart.ordinal else 0


def is_on_its_way(due: Due, version: int) -> bool:
    """Return whether a table must be republished, and this has not been done. ``version``: the table's last version."""
    return due.restart.epoch > 1 and ordinal_at(due, version) < due.restart.ordinal


def begins_epoch(due: Due, ordinal: int) -> bool:
    """Return whether a publication begins a publication epoch, and so replaces all rows."""
    return due.restart.epoch > 1 and ordinal == due.restart.ordinal


def lacking(due: Due, reached: int) -> list[int]:
    """Return the ordinals after ``reached`` that a table lacks. A publication that changes no rows needs no commit."""
    return [
        ordinal
        for ordinal in missing(due, reached)
        if begins_epoch(due, ordinal) or changes_rows(due.publications[ordinal - 1], due.target)
    ]


class KnownTables:
    """The last publication to each table of one job. During a command, the history of a table is read once."""

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        is_kept: Callable[[], bool],
        recorded: Callable[[], Iterable[RecordedVersion]],
    ) -> None:
        """Bind to a session. Nothing is read.

        ``is_kept`` returns whether results are reused, as during a command. ``recorded`` returns what earlier runs recorded.
        """
        self._spark_of, self._is_kept, self._recorded_of = spark, is_kept, recorded
        self._known: dict[tuple[TableName, str], TableLook] = {}
        self._new: list[RecordedVersion] = []

    def __call__(self, name: TableName, app_id: str, due: Due | None = None) -> TableLook:
        """Return what a table's history states about an application id.

        ``due``: the table, if the caller is about to publish to it. An append may then save reading the history (`is_there`).
        Commands that only read pass None, because they may lack the right to append.
        """
        if not self._is_kept():
            return look_at(self._spark_of(), name, app_id)
        if (name, app_id) not in self._known:
            look = self._as_it_was_left(name, app_id, due) if due else None
            self._known[name, app_id] = look or look_at(self._spark_of(), name, app_id)
        return self._known[name, app_id]

    def forget(self, name: TableName) -> None:
        """Forget what was read of a table's history."""
        self._known = {key: look for key, look in self._known.items() if key[0] != name}

    def know_new(self, name: TableName, app_id: str) -> None:
        """Note a table that has no commit since its creation, so that the COMMIT records its version."""
        # The table is not added to `_known`, because another process may publish to it before this command does.
        if self._is_kept() and is_newest(self._spark_of(), name, 0):
            self._new.append(RecordedVersion(str(name), app_id, version=0, reached=0))

    def to_record(self) -> list[RecordedVersion]:
        """Return the table versions that a COMMIT records. Tables that another writer has changed are left out."""
        untouched = [(name, app, look) for (name, app), look in self._known.items() if look.is_untouched]
        return [
            *self._new,
            *(RecordedVersion(str(name), app, look.version, look.reached) for name, app, look in untouched),
        ]

    def _as_it_was_left(self, name: TableName, app_id: str, due: Due) -> TableLook | None:
        """Return what the history would state if the table certainly is as the last run left it; otherwise None."""
        recorded = next((mark for mark in self._recorded_of() if (mark.table, mark.app) == (str(name), app_id)), None)
        if recorded is None or is_on_its_way(due, recorded.reached):
            return None
        since = lacking(due, ordinal_at(due, recorded.reached))
        if len(since) > 1:
            return None
        spark, version = self._spark_of(), recorded.version + len(since)
        reached = version_of(due, since[0]) if since else recorded.reached
        # The version is checked again, because another process may have published after the first check.
        if (
            is_newest(spark, name, version)
            and is_there(spark, name, app_id, reached, due.table.columns[0])
            and is_newest(spark, name, version)
        ):
            return TableLook(reached, is_untouched=True, version=version)
        return None


class KnownTablesOfJobs:
    """The `KnownTables` of each job."""

    def __init__(self, spark: Callable[[], SparkSession], own: OwnRows) -> None:
        """Bind to a catalog. Nothing is read."""
        self._spark_of, self._own = spark, own
        self._of_job: dict[str, KnownTables] = {}

    def __call__(self, job: str) -> KnownTables:
        """Return the `KnownTables` of a job."""
        if job not in self._of_job:
            self._of_job[job] = KnownTables(
                self._spark_of, lambda: self._own.is_in_command, lambda: self._recorded(job)
            )
        return self._of_job[job]

    def clear(self) -> None:
        """Forget all results."""
        self._of_job.clear()

    def _recorded(self, job: str) -> Iterable[RecordedVersion]:
        """Return the versions that earlier runs recorded; none in a command that only reads, as using them takes an append."""
        return () if self._own.only_reads else self._own.ledger(job).recorded()
