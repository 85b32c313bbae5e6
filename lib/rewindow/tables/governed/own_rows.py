"""The ledgers and journals of a catalog's jobs and feeds, which share one table, and the rows that a command has read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredRows
from rewindow.engine.spark.spark_calls import planned_once
from rewindow.tables.governed.journal import SparkJournal
from rewindow.tables.governed.ledger import Found, Given, RecordedVersion, SparkLedger, StoredFolds
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_table import REPORT, OwnTable

FEEDS = "feed:"
"""The stored name of a feed begins with this (see `feed_name`)."""


def feed_name(feed: str) -> str:
    """Return the name under which a feed's rows are stored. No job has such a name, because names of jobs have no colon."""
    return f"{FEEDS}{feed}"


class OwnRows:
    """The ledgers and journals in one table. In this class, a name is the name of a job or the `feed_name` of a feed."""

    def __init__(self, spark: Callable[[], SparkSession], home: TableName) -> None:
        """``home``: a name in the schema of the table. Nothing is read or created."""
        self.table = OwnTable(spark, home)
        self.folds = StoredFolds(self.table)
        self._ledgers: dict[str, SparkLedger] = {}
        self._journals: dict[str, SparkJournal] = {}
        self._found: dict[str, Found] | None = None
        self._steps: dict[str, Callable[[], None]] = {}
        self.is_in_command = self.only_reads = False

    @contextmanager
    def command(self, names: Sequence[str], *, only_reads: bool = False) -> Iterator[None]:
        """Return the context manager of a command. Inside it, rows that were read or held stay in memory.

        ``names``: one query reads the ledgers and reports of these names together, when they are first needed.
        ``only_reads``: whether the command appends no rows.
        """
        with planned_once(self.table.spark_of()):
            self._begin(names, is_in_command=True, only_reads=only_reads)
            try:
                yield
            finally:
                self._begin((), is_in_command=False)

    def ledger(self, name: str) -> SparkLedger:
        """Return the ledger of a job or feed, by its name."""
        if name not in self._ledgers:
            self._ledgers[name] = SparkLedger(self.table, name, self._stored)
            self._ledgers[name].keep(keeps=self.is_in_command)
        return self._ledgers[name]

    def journal(self, name: str) -> SparkJournal:
        """Return the journal of a name. Before workers append to the journal, the plan that the ledger holds is appended."""
        if name not in self._journals:
            self._journals[name] = SparkJournal(
                self.table, name, lambda: self._before_workers(name), self.ledger(name).is_overtaken
            )
        return self._journals[name]

    def before_workers(self, name: str, step: Callable[[], None]) -> None:
        """Make sure that ``step`` is called before workers append rows in this command.

        An earlier step of the same name is no longer called.
        """
        self._steps[name] = step

    def append(
        self,
        name: str,
        rows: Sequence[LedgerRow],
        give: Callable[[StoredRows], Given],
        attempts: Sequence[str],
        recorded: Sequence[RecordedVersion] = (),
    ) -> bool:
        """Append rows to a ledger, in one commit. Return False if another writer has used their numbers.

        ``attempts``: the attempts that the rows make valid. The same commit contains the rows of these attempts that the
        journal holds. ``recorded``: table versions that the commit records. ``give``: the function that folds rows. It is
        needed because a new fold of the ledger may be due, which is then stored before the rows of attempts.
        """
        if attempts:
            self.keep_fold(name, give)
        journal = self.journal(name)
        held = [some for attempt in dict.fromkeys(attempts) if (some := journal.held(attempt)) is not None]
        landed = self.ledger(name).append(rows, pa.concat_tables(held) if held else None, recorded)
        if landed:
            for attempt in attempts:
                journal.landed(attempt)
        return landed

    def keep_fold(self, name: str, give: Callable[[StoredRows], Given]) -> None:
        """During a command, store the fold of a ledger (the state after its rows), if a new fold is due.

        ``give``: the function that folds rows.
        """
        if self.is_in_command and (due := self.ledger(name).due_fold(give)) is not None:
            self.folds.write(name, *due)

    def _begin(self, names: Sequence[str], *, is_in_command: bool, only_reads: bool = False) -> None:
        self.is_in_command, self.only_reads = is_in_command, only_reads
        self.table.names, self._found = tuple(names), None
        self._steps.clear()
        for ledger in self._ledgers.values():
            ledger.keep(keeps=is_in_command)
        for journal in self._journals.values():
            journal.forget()

    def _before_workers(self, name: str) -> None:
        steps, self._steps = self._steps, {}
        for step in steps.values():
            step()
        self.ledger(name).flush()

    def _stored(self, name: str) -> Found:
        """Return the stored fold of a ledger, and the stored rows after it.

        If ``name`` is one of the names that `command` was given, one query reads the ledgers and reports of all these names.
        """
        if name not in self.table.names:
            return self.folds.read([name], with_reports=False)[name]
        if self._found is None:
            self._found = self.folds.read(self.table.names, with_reports=True)
            for of_command, stored in self._found.items():
                reports = [row for row in stored.rows if row["kind"] == REPORT and row["seq"] is None]
                self.journal(of_command).know((row["attempt"], row["sub_topology"], row["body"]) for row in reports)
        return self._found[name]
