"""Rewind, branch, promote, drop: append one ledger row each, then publish. Nothing is computed, and Spark is not needed.

Each is a generator like `run.steps` and yields the name of each step before it. If a process is killed anywhere, the next
command on the job publishes what the row decided.
"""

from __future__ import annotations

from collections.abc import Generator

from rewindow.control.ledger import update
from rewindow.control.plan.branch_decisions import decide_branch, decide_drop, decide_promote, decide_rewind, find_run
from rewindow.control.plan.branches import JobState, LedgerRow
from rewindow.control.plan.spec import MAIN, JobBinding
from rewindow.control.run import Tables

Travel = Generator[str, None, LedgerRow]


def rewind(job: str, branch: str, to: str, tables: Tables) -> Travel:
    """Go back to an earlier run of a branch (``branch/number``, a number, or ``0`` for the beginning).

    The rows of later runs leave each output table in one commit, and a run in flight is fenced. Rewound runs stay in the
    ledger and the changelogs. Raises what `decide_rewind` raises, and `NotNowError` (75) if the ledger is too busy.
    """
    row = yield from update(tables, job, "decide", lambda state: decide_rewind(state, branch, to))
    yield from tables.publish(job, tables.state(job), branch)
    return row


def branch(job: str, name: str, tables: Tables, *, parent: str = MAIN, at: str | None = None) -> Travel:
    """Create a branch after a run of its parent (default: the last one). It has its own output tables."""

    def decide(state: JobState) -> LedgerRow:
        chain = state.branch(parent)
        return decide_branch(state, name, parent, chain.head if at is None else find_run(state, chain, at))

    return (yield from update(tables, job, "decide", decide))


def promote(job: str, name: str, binding: JobBinding, tables: Tables, *, into: str = MAIN) -> Travel:
    """Replace the chain of branch ``into`` by that of another branch, in one commit to each output table."""
    yield from tables.publish(job, tables.state(job), name)
    row = yield from update(tables, job, "decide", lambda state: decide_promote(state, name, into, binding))
    yield from tables.publish(job, tables.state(job), into)
    return row


def drop(job: str, name: str, tables: Tables) -> Travel:
    """Drop a branch: no run continues it, and `gc` deletes its tables."""
    return (yield from update(tables, job, "decide", lambda state: decide_drop(state, name)))
