"""Rewind, branch, promote, drop: one ledger row each, then the tables follow. No Spark, and nothing is computed.

Each is a machine like `runner.steps`: it yields the name of a step before it does it. Killed anywhere, the next command
on the job publishes what the row says.
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

    The rows of the later runs leave the output tables, in one commit each; a run in flight is fenced. What was rewound
    stays in the ledger and in the changelogs. Raises as `decide_rewind` does, and `NotNowError` (75) among many writers.
    """
    row = yield from update(tables, job, "decide", lambda state: decide_rewind(state, branch, to))
    yield from tables.publish(job, tables.state(job), branch)
    return row


def branch(job: str, name: str, tables: Tables, *, parent: str = MAIN, at: str | None = None) -> Travel:
    """Begin a branch after a run of its parent (default: its last one). It has output tables of its own."""

    def decide(state: JobState) -> LedgerRow:
        chain = state.branch(parent)
        return decide_branch(state, name, parent, chain.head if at is None else find_run(state, chain, at))

    return (yield from update(tables, job, "decide", decide))


def promote(job: str, name: str, binding: JobBinding, tables: Tables, *, into: str = MAIN) -> Travel:
    """Make a branch's chain that of another branch, whose output tables get the branch's rows in one commit each."""
    yield from tables.publish(job, tables.state(job), name)
    row = yield from update(tables, job, "decide", lambda state: decide_promote(state, name, into, binding))
    yield from tables.publish(job, tables.state(job), into)
    return row


def drop(job: str, name: str, tables: Tables) -> Travel:
    """Give a branch up: no run goes on from it, and `gc` removes its tables."""
    return (yield from update(tables, job, "decide", lambda state: decide_drop(state, name)))
