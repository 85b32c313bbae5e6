"""Start a job over: the RESET row ends one ledger identity and begins another. Pure.

Nothing before the row counts any more: no run, no branch, no state. Its body names the tables that hold rows of the ended
identity, which publishing empties before it adds anything. The row's token is the new identity, so no publication of the
old one can be taken for one of the new (ADR-76).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from rewindow.control.plan.branches import JobState, LedgerRow, Reset
from rewindow.control.plan.ledger_rows import broken
from rewindow.control.plan.spec import TableSpec

RESET = "RESET"


def decide_reset(state: JobState, unknown: Collection[str]) -> LedgerRow | None:
    """Return the row that starts a job over; None if it is at its beginning.

    ``unknown`` are the paths of tables with rows of the job that no publication of this ledger added.
    """
    if not state.branches and not unknown:
        return None
    tables = {**{path: {} for path in unknown}, **_written(state)}
    was = state.ledger if state.rows else ""
    return LedgerRow(state.rows + 1, RESET, {"was": was, "tables": tables})


def _written(state: JobState) -> dict[str, dict[str, int]]:
    """Return the tables that the job wrote or may be writing, by path: their targets with the last publication epoch."""
    found: dict[str, dict[str, int]] = {}

    def add(branch: str, tables: Mapping[str, TableSpec]) -> None:
        for target, table in tables.items():
            epochs = found.setdefault(table.path, {})
            epochs[target] = max(epochs.get(target, 1), state.restart(branch, target, table.path).epoch)

    for run in state.committed:
        add(run.spec.branch, run.spec.binding.tables)
    for branch in state.branches.values():
        add(branch.name, branch.tables)
        if branch.pending is not None:
            add(branch.name, branch.pending.binding.tables)
    return found


def _fold_reset(state: JobState, row: LedgerRow) -> JobState:
    if row.body["was"] != (state.ledger if row.seq > 1 else ""):
        raise broken(row, "it was decided on another ledger")
    tables = {path: dict(targets) for path, targets in row.body["tables"].items()}
    return JobState(rows=row.seq, ledger=row.token, reset=Reset(row.body["was"], tables))


FOLDS: Mapping[str, Callable[[JobState, LedgerRow], JobState]] = {RESET: _fold_reset}
