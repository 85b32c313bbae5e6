"""What every fold of a ledger row needs: how a state is changed, and how a row is refused."""

from __future__ import annotations

from dataclasses import replace

from rewindow.control.plan.branches import JobState, LedgerRow, Lineage
from rewindow.errors import InvariantError


def with_lineage(state: JobState, lineage: Lineage) -> JobState:
    """Return the state with one lineage changed or new."""
    return replace(state, lineages={**state.lineages, lineage.name: lineage})


def broken(row: LedgerRow, why: str) -> InvariantError:
    """Return the error of a row that does not fit."""
    message = f"the ledger is broken at row {row.seq} ({row.kind}): {why}. Nothing was done; restore the ledger table"
    return InvariantError(message)
