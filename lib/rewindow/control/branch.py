"""Rewind, branch, promote, drop, accept and reset. Each appends a ledger row and publishes it. Nothing is computed.

Each function is a generator like `run.steps` and yields the name of each step before the step. All but `drop` first publish
what earlier commands decided, so that the tables match the ledger even if the new request is refused.

If a process is killed at any point, call the same command again. If the requested state already holds, the command appends no
second row and only publishes that state (ADR-79). Each function returns the appended row, or None if it appended no row.

A reset starts a job over. One ledger row forgets all runs and branches of the job, and publishing this row empties the job's
tables. If a process is killed at any point, call `reset` again. If the ledger already has the row, the call appends no second
one and empties the tables that still have rows. Any other command on the job empties them, too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from rewindow.control.ledger_steps import Ledger, update
from rewindow.control.plan.branch_decisions import (
    decide_accept,
    decide_branch,
    decide_drop,
    decide_promote,
    decide_rewind,
    run_or_beginning,
)
from rewindow.control.plan.job_fold import decide_reset
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import Backfill, decide_backfill
from rewindow.control.plan.spec import MAIN, JobBinding
from rewindow.control.run import Tables
from rewindow.errors import StorageError

_Travel = Generator[str, None, LedgerRow | None]


def catch_up(job: str, tables: Tables, *branches: str) -> Generator[str, None, None]:
    """Bring the tables of some branches up to date with the ledger."""
    for name in branches:
        yield from tables.publish(job, tables.state(job), name)


def rewind(job: str, branch: str, to: str, tables: Tables) -> _Travel:
    """Go back to an earlier run of a branch (``branch/number``, a number, or ``0`` for the beginning).

    The rows of later runs are removed from each output table in one commit, and a run in flight is fenced. Rewound runs stay in
    the ledger and the changelogs. Raises what `decide_rewind` raises, `NotNowError` (75) if the ledger is too busy, and
    `StorageError` (74) if a table is not what was published.
    """
    yield "recover"
    yield from catch_up(job, tables, branch)
    # A rewind cannot remove rows in files that no run published.
    tables.check_published(job, tables.state(job), branch)
    row = yield from update(tables, job, "decide", lambda state: decide_rewind(state, branch, to))
    yield from catch_up(job, tables, branch)
    return row


def branch(job: str, name: str, tables: Tables, *, parent: str = MAIN, at: str | None = None) -> _Travel:
    """Create a branch with its own output tables. It starts after the run ``at`` of its parent (default: the last run)."""

    def decide(state: JobState) -> LedgerRow | None:
        chain = state.branch(parent)
        return decide_branch(state, name, parent, chain.head if at is None else run_or_beginning(state, chain, at))

    yield "recover"
    yield from catch_up(job, tables, parent)
    return (yield from update(tables, job, "decide", decide))


def begin_backfill(job: str, wanted: Backfill, tables: Tables) -> _Travel:
    """Create the branch of a backfill, or start it over if its code has changed since; see `decide_backfill`."""
    name = wanted.request.branch

    def decide(state: JobState) -> LedgerRow | None:
        return decide_backfill(wanted, state, tables.check_targets)

    yield "recover"
    yield from catch_up(job, tables, MAIN, name)
    row = yield from update(tables, job, "decide", decide)
    yield from catch_up(job, tables, name)
    return row


def promote(job: str, name: str, binding: JobBinding, tables: Tables, *, into: str = MAIN) -> _Travel:
    """Replace the chain of branch ``into`` by the chain of another branch, in one commit to each output table.

    Raises what `decide_promote` raises, and `StorageError` (74) if a table of ``into`` is not what was published.
    """
    yield "recover"
    yield from catch_up(job, tables, name, into)
    tables.check_published(job, tables.state(job), into)
    row = yield from update(tables, job, "decide", lambda state: decide_promote(state, name, into, binding))
    yield from catch_up(job, tables, into)
    return row


def drop(job: str, name: str, tables: Tables) -> _Travel:
    """Drop a branch. After that, no run continues it, and `gc` deletes its tables."""
    # Unlike the other functions, this one publishes nothing first. The branch's outputs may be broken, and a dropped branch
    # need not be published. But the row must not take the number of a row that the ledger has lost.
    tables.check_ledger(job, tables.state(job), name)
    row = yield from update(tables, job, "decide", lambda state: decide_drop(state, name))
    # If shared tables need files of this branch that are gone, publishing fails. The next command on another branch then says
    # how to repair these tables. The repair succeeds, because it does not need the files of a dropped branch.
    with suppress(StorageError):
        yield from catch_up(job, tables, name)
    return row


def accept(job: str, branch: str, run: str | None, tables: Tables) -> _Travel:
    """Publish a run that is on hold, and the later runs that wait for it. ``run`` may be None if no other run is on hold.

    Raises what `decide_accept` raises, and `StorageError` (74) if a table of the branch is not what was published.
    """
    yield "recover"
    yield from catch_up(job, tables, branch)
    tables.check_published(job, tables.state(job), branch)
    row = yield from update(tables, job, "accept", lambda state: decide_accept(state, branch, run))
    yield from catch_up(job, tables, branch, *(_owners(tables.state(job), row, branch) if row else ()))
    return row


def reset(job: str, outputs: Sequence[str], tables: _ResetTables) -> Generator[str, None, LedgerRow | None]:
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


def _owners(state: JobState, row: LedgerRow, branch: str) -> Iterator[str]:
    """Yield the other open branches that own the accepted run. ``branch`` may have inherited the run from its parent."""
    for other in state.branches.values():
        if other.name != branch and other.is_open and row.body["run"] in {run.spec.run for run in other.own_runs}:
            yield other.name


class _ResetTables(Ledger[JobState], Protocol):
    """The tables of a job that can start over; see `finish_reset` in `tables.delta.publish`."""

    def finish_reset(self, job: str, state: JobState) -> Iterator[str]:
        """Empty the tables that the last RESET names; yield the name of each commit before making it."""
        ...

    def unknown_tables(self, job: str, state: JobState, outputs: Sequence[str]) -> Sequence[str]:
        """Return the paths of the job's tables, ``outputs`` included, with rows of the job that its ledger did not publish."""
        ...
