"""The protocol of a warehouse, which both adapters implement, and what they do alike."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from rewindow.control.ingest.landings import Feed, fold_feed
from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.ledger_state import fold_row
from rewindow.control.plan.spec import RunSpec, TableSpec
from rewindow.control.verify import Scratch
from rewindow.errors import InvariantError, SourceError
from rewindow.tables.shared.diff import TableDiff


class Warehouse(Scratch, Protocol):
    """The tables of one warehouse: what runs and verifications need, and what people ask about them."""

    warehouse: str
    """The folder or URI of heartbeats and, unless a catalog governs them, of all tables."""

    @property
    def home(self) -> str:
        """Where the ledgers are, for people."""
        ...

    def command(self, *, feed: str, job: str | None = None) -> AbstractContextManager[None]:
        """Return the context of one landing or run. In it, what was read of the ledgers may be used again."""
        ...

    def ledger_rows(self, job: str) -> list[LedgerRow]:
        """Return the rows of a job's ledger from a fresh look."""
        ...

    def feed(self, feed: str) -> Feed:
        """Return a feed as its landing ledger defines it. Raises `SourceError` (66) if it was never landed."""
        ...

    def feed_rows(self, feed: str) -> list[LedgerRow]:
        """Return the rows of a feed's landing ledger from a fresh look."""
        ...

    def check_targets(self, spec: RunSpec) -> None:
        """Raise what `roots` would raise for a planned run's existing tables; change nothing."""
        ...

    def location_of(self, table: TableSpec) -> str:
        """Return where a table is, for people."""
        ...

    def measures(self, runs: Sequence[CommittedRun]) -> list[dict[str, Any]]:
        """Return the metrics of a chain of runs, added up by task; see `add_up_runs`."""
        ...

    def count_rows(self, table: TableSpec) -> int:
        """Return how many rows a table has."""
        ...

    def version_of(self, table: TableSpec) -> int | None:
        """Return a table's Delta version; None if there is no table."""
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


class JobStates:
    """The states of jobs, folded from their ledgers. Only rows that were not seen before are folded."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[list[LedgerRow], JobState]] = {}

    def fold(self, job: str, rows: list[LedgerRow]) -> JobState:
        """Return the state that a job's ledger describes. Raises `InvariantError` (70) if a row does not fit."""
        known, state = self._known.get(job, ([], JobState()))
        if rows is known:
            return state
        if rows[: len(known)] != known:
            known, state = [], JobState()
        for row in rows[len(known) :]:
            state = fold_row(state, row)
        self._known[job] = (rows, state)
        return state


class Feeds:
    """The feeds, folded from their landing ledgers. Only rows that were not seen before are folded."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[list[LedgerRow], Feed | None]] = {}

    def find(self, name: str, rows: list[LedgerRow], home: str) -> Feed:
        """Return a feed as the rows of its landing ledger define it. Raises as `find_feed` does."""
        known, feed = self._known.get(name, ([], None))
        if rows is known:
            return _landed(name, feed, home)
        if rows[: len(known)] != known:
            known, feed = [], None
        feed = _with_rows(feed, rows[len(known) :])
        self._known[name] = rows, feed
        return _landed(name, feed, home)


def find_feed(name: str, rows: Sequence[LedgerRow], home: str) -> Feed:
    """Return a feed as the rows of its landing ledger define it. Raises `SourceError` (66) if it was never landed."""
    return _landed(name, _with_rows(None, rows), home)


def _with_rows(before: Feed | None, rows: Sequence[LedgerRow]) -> Feed | None:
    found = fold_feed(((row.kind, row.body) for row in rows), before)
    return replace(found, ledger=before.ledger if before else rows[0].token) if found else None


def _landed(name: str, feed: Feed | None, home: str) -> Feed:
    if feed is None:
        message = f"feed {name!r} was never landed in {home}: `rewindow land {name}` first"
        raise SourceError(message)
    return feed


def not_deterministic(spec: RunSpec, target: str, different: str) -> InvariantError:
    """Return the error of an attempt that made other rows than the attempt that it repeats."""
    message = (
        f"run {spec.name} is not deterministic: {target} differs from what the previous attempt staged, {different}. "
        "Nothing was committed: find the clock, the random number or the set order in the job's code "
        "(`rewindow verify`); if you changed the code on purpose, run with --replan"
    )
    return InvariantError(message)
