"""The ledger rows of time travel: BRANCH, REWIND, PROMOTE, DROP and REPUBLISH, folded. Pure.

Nothing is taken away: a run that was rewound stays in the ledger, its rows stay in the changelogs. What counts is the
chain of each lineage; what its output tables get follows from it, one publication for each row that changed it.

Each row names what its writer saw (``head``): one that was decided on another state does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rewindow.control.plan.branches import JobState, LedgerRow, Lineage, Publication, Restart, Standing, shared_runs
from rewindow.control.plan.ledger_rows import broken, with_lineage
from rewindow.control.plan.spec import MAIN, TableSpec

BRANCH, REWIND, PROMOTE, DROP, REPUBLISH = "BRANCH", "REWIND", "PROMOTE", "DROP", "REPUBLISH"


def _fold_branch(state: JobState, row: LedgerRow) -> JobState:
    name, parent = row.body["lineage"], state.lineage(row.body["parent"])
    kept = parent.index_of(row.body["at"])
    if name in state.lineages:
        raise broken(row, f"the lineage {name!r} was there before, and a name is used once")
    if kept is None:
        raise broken(row, f"run {row.body['at']} is not in the chain of {parent.name!r}")
    _check_state(state, row, row.body["at"])
    return with_lineage(state, Lineage(name, parent.runs[:kept], parent=parent.name, inherited=kept))


def _fold_rewind(state: JobState, row: LedgerRow) -> JobState:
    lineage = _open(state, row, row.body["lineage"])
    _check_head(row, lineage, row.body["head"])
    kept = lineage.index_of(row.body["to"])
    if kept is None or not lineage.inherited <= kept < len(lineage.runs):
        raise broken(row, f"run {row.body['to']} is no earlier run of {lineage.name!r}'s own")
    _check_state(state, row, row.body["to"])
    rewound = replace(
        lineage,
        runs=lineage.runs[:kept],
        pending=None,
        publications=(*lineage.publications, Publication(removes=lineage.runs[kept:])),
    )
    return with_lineage(state, rewound)


def _fold_promote(state: JobState, row: LedgerRow) -> JobState:
    branch, into = _open(state, row, row.body["branch"]), _open(state, row, row.body["into"])
    _check_head(row, branch, row.body["branch_head"])
    _check_head(row, into, row.body["head"])
    common = shared_runs(branch.runs, into.runs)
    if branch.name == into.name or common < into.inherited:
        raise broken(row, f"the chains of {branch.name!r} and {into.name!r} part before {into.name!r} begins")
    if branch.last_epoch < into.last_epoch:
        raise broken(row, f"{branch.name!r} is at epoch {branch.last_epoch}, {into.name!r} at {into.last_epoch}")
    tables = {target: TableSpec.from_json(table) for target, table in row.body["tables"].items()}
    promoted = replace(
        into,
        runs=branch.runs,
        pending=None,
        publications=(*into.publications, Publication(adds=branch.runs[common:], removes=into.runs[common:])),
        tables=tables,
    )
    closed = replace(branch, pending=None, standing=Standing.PROMOTED)
    return with_lineage(with_lineage(state, closed), promoted)


def _fold_drop(state: JobState, row: LedgerRow) -> JobState:
    lineage = state.lineages.get(row.body["lineage"])
    if lineage is None or lineage.name == MAIN or lineage.standing is Standing.DROPPED:
        raise broken(row, f"there is no branch {row.body['lineage']!r} to drop")
    return with_lineage(state, replace(lineage, pending=None, standing=Standing.DROPPED))


def _fold_republish(state: JobState, row: LedgerRow) -> JobState:
    target, name = row.body["target"], row.body["lineage"]
    if name is None:
        before = state.restarts.get(target, Restart(1, 0))
        restart = Restart(before.epoch + 1, len(state.shared(target)))
        return replace(state, restarts={**state.restarts, target: restart})
    lineage = state.lineage(name)
    if target not in lineage.tables:
        raise broken(row, f"{name!r} has no table for {target!r}")
    restart = Restart(lineage.restarts.get(target, Restart(1, 0)).epoch + 1, len(lineage.publications))
    return with_lineage(state, replace(lineage, restarts={**lineage.restarts, target: restart}))


def _open(state: JobState, row: LedgerRow, name: str) -> Lineage:
    lineage = state.lineage(name)
    if lineage.standing is not Standing.OPEN:
        raise broken(row, f"the branch {name!r} is {lineage.standing}")
    return lineage


def _check_state(state: JobState, row: LedgerRow, run: int | None) -> None:
    if not state.has_state(run):
        raise broken(row, f"the state after run {run} was forgotten")


def _check_head(row: LedgerRow, lineage: Lineage, seen: int | None) -> None:
    head = lineage.head.spec.run if lineage.head else None
    if head != seen:
        raise broken(row, f"it was decided when run {seen} was the last of {lineage.name!r}, which is at {head}")


FOLDS: Mapping[str, Callable[[JobState, LedgerRow], JobState]] = {
    BRANCH: _fold_branch,
    REWIND: _fold_rewind,
    PROMOTE: _fold_promote,
    DROP: _fold_drop,
    REPUBLISH: _fold_republish,
}
