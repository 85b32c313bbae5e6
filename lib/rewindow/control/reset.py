"""Start a job over: one ledger row forgets all its runs and branches, then publishing empties its tables.

If a process is killed anywhere, call again: a job that is at its beginning gets no second row, and tables that are not
empty yet are emptied. Any other command on the job does that, too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from rewindow.control.ledger import Ledger, update
from rewindow.control.plan.branches import JobState, LedgerRow
from rewindow.control.plan.reset import decide_reset


class ResetTables(Ledger[JobState], Protocol):
    """The tables of a job that can start over; see `tables.delta.reset`."""

    def finish_reset(self, job: str, state: JobState) -> Iterator[str]:
        """Empty the tables that the last RESET names; yield the name of each commit before it."""
        ...

    def unknown_tables(self, job: str, state: JobState, outputs: Sequence[str]) -> Sequence[str]:
        """Return the tables with rows of the job that its ledger did not publish: of these outputs and the job's own."""
        ...


def reset(job: str, outputs: Sequence[str], tables: ResetTables) -> Generator[str, None, LedgerRow | None]:
    """Start a job over; return the RESET row, or None if the job is at its beginning and its tables are empty.

    ``outputs`` are the paths of the output tables that the job declares. A run in flight is fenced. Raises `ConfigError`
    (78) for an output of another job, `StorageError` (74) for a table that cannot be read or changed.
    """
    yield "recover"
    yield from tables.finish_reset(job, tables.state(job))

    def decide(state: JobState) -> LedgerRow | None:
        return decide_reset(state, tables.unknown_tables(job, state, outputs))

    row = yield from update(tables, job, "reset", decide)
    yield from tables.finish_reset(job, tables.state(job))
    return row
