"""What folding any ledger row needs: change a state, or reject a row."""

from __future__ import annotations

from dataclasses import replace

from rewindow.control.plan.branches import Branch, JobState, LedgerRow
from rewindow.errors import InvariantError


def with_branch(state: JobState, branch: Branch) -> JobState:
    """Return the state with one branch replaced or added."""
    return replace(state, branches={**state.branches, branch.name: branch})


def broken(row: LedgerRow, why: str) -> InvariantError:
    """Return the error of a row that does not fit."""
    message = f"the ledger is broken at row {row.seq} ({row.kind}): {why}. Nothing was done; restore the ledger table"
    return InvariantError(message)
