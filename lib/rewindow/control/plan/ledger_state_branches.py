"""Fold the ledger rows that change branches: BRANCH, REWIND, PROMOTE, DROP and REPUBLISH. Pure.

A rewound run stays in the ledger, and its rows stay in the changelogs. The chain of each branch decides which runs count,
and each row that changes it is one publication to the branch's output tables.

Each row names the head that its writer saw (``head``): a row that was decided on another state does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rewindow.control.plan.branches import Branch, JobState, LedgerRow, Publication, Restart, Standing, shared_runs
from rewindow.control.plan.ledger_rows import broken, with_branch
from rewindow.control.plan.ledger_state_holds import with_change
from rewindow.control.plan.spec import MAIN, TableSpec

BRANCH, REWIND, PROMOTE, DROP, REPUBLISH = "BRANCH", "REWIND", "PROMOTE", "DROP", "REPUBLISH"


def _fold_branch(state: JobState, row: LedgerRow) -> JobState:
    name, parent = row.body["branch"], state.branch(row.body["parent"])
    kept = parent.index_of(row.body["at"])
    if name in state.branches:
        raise broken(row, f"the branch {name!r} existed before, and a name is used once")
    if kept is None:
        raise broken(row, f"run {row.body['at']} is not in the chain of {parent.name!r}")
    _check_state(state, row, row.body["at"])
    return with_branch(state, Branch(name, parent.runs.until(kept), parent=parent.name, inherited=kept))


def _fold_rewind(state: JobState, row: LedgerRow) -> JobState:
    branch = _open(state, row, row.body["branch"])
    _check_head(row, branch, row.body["head"])
    kept = branch.index_of(row.body["to"])
    if kept is None or not branch.inherited <= kept < len(branch.runs):
        raise broken(row, f"run {row.body['to']} is not an earlier run of {branch.name!r} itself")
    _check_state(state, row, row.body["to"])
    rewound = with_change(branch, branch.runs.until(kept), Publication(removes=branch.runs[kept:]))
    return with_branch(state, replace(rewound, pending=None))


def _fold_promote(state: JobState, row: LedgerRow) -> JobState:
    branch, into = _open(state, row, row.body["branch"]), _open(state, row, row.body["into"])
    _check_head(row, branch, row.body["branch_head"])
    _check_head(row, into, row.body["head"])
    common = shared_runs(branch.runs, into.runs)
    if branch.name == into.name or common < into.inherited:
        raise broken(row, f"the chains of {branch.name!r} and {into.name!r} diverge before {into.name!r} begins")
    if branch.last_epoch < into.last_epoch:
        raise broken(row, f"{branch.name!r} is at epoch {branch.last_epoch}, {into.name!r} at {into.last_epoch}")
    if held := state.holding(branch.runs):
        raise broken(row, f"run {held[0].spec.name} is on hold")
    tables = {target: TableSpec.from_json(table) for target, table in row.body["tables"].items()}
    change = Publication(adds=branch.runs[common:], removes=into.runs[common:])
    promoted = replace(with_change(into, branch.runs, change), pending=None, tables=tables)
    closed = replace(branch, pending=None, standing=Standing.PROMOTED)
    return with_branch(with_branch(state, closed), promoted)


def _fold_drop(state: JobState, row: LedgerRow) -> JobState:
    branch = state.branches.get(row.body["branch"])
    if branch is None or branch.name == MAIN or branch.standing is Standing.DROPPED:
        raise broken(row, f"there is no branch {row.body['branch']!r} to drop")
    return with_branch(state, replace(branch, pending=None, standing=Standing.DROPPED))


def _fold_republish(state: JobState, row: LedgerRow) -> JobState:
    target, name = row.body["target"], row.body["branch"]
    if name is None:
        before, changes = state.restarts.get(target, Restart(1, 0)), state.changes
        if without := frozenset(row.body.get("without", ())):
            gone = tuple(run for run in state.naming(target) if run.spec.run in without)
            if len(gone) != len(without):
                raise broken(row, f"it leaves out {sorted(without)}, some of which {target} does not have")
            changes = {**changes, target: state.shared(target).append(Publication(removes=gone))}
        restart = Restart(before.epoch + 1, len(changes.get(target, ())))
        return replace(state, changes=changes, restarts={**state.restarts, target: restart})
    branch = state.branch(name)
    if target not in branch.tables:
        raise broken(row, f"{name!r} has no table for {target!r}")
    # Without a publication, as while the first run is on hold, the next one replaces the whole content.
    restart = Restart(branch.restarts.get(target, Restart(1, 0)).epoch + 1, max(1, len(branch.publications)))
    return with_branch(state, replace(branch, restarts={**branch.restarts, target: restart}))


def _open(state: JobState, row: LedgerRow, name: str) -> Branch:
    branch = state.branch(name)
    if branch.standing is not Standing.OPEN:
        raise broken(row, f"the branch {name!r} is {branch.standing}")
    return branch


def _check_state(state: JobState, row: LedgerRow, run: int | None) -> None:
    if not state.has_state(run):
        raise broken(row, f"the state after run {run} was forgotten")


def _check_head(row: LedgerRow, branch: Branch, seen: int | None) -> None:
    head = branch.head.spec.run if branch.head else None
    if head != seen:
        raise broken(row, f"it was decided when run {seen} was the last of {branch.name!r}, which is at {head}")


FOLDS: Mapping[str, Callable[[JobState, LedgerRow], JobState]] = {
    BRANCH: _fold_branch,
    REWIND: _fold_rewind,
    PROMOTE: _fold_promote,
    DROP: _fold_drop,
    REPUBLISH: _fold_republish,
}
