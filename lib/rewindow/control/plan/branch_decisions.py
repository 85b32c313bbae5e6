"""Decide a rewind, a branch, a promotion: from what the ledger says and what is asked, to the row that makes it true. Pure.

Nothing is computed and nothing is copied by these rows. What they ask for that cannot be is an error that says what can.
"""

from __future__ import annotations

from bisect import bisect_left

from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branches import Branch, CommittedRun, JobState, LedgerRow, Standing, shared_runs
from rewindow.control.plan.ledger_state_branches import BRANCH, DROP, PROMOTE, REWIND
from rewindow.control.plan.spec import MAIN, JobBinding
from rewindow.errors import CheckpointError, ConfigError, NotNowError, UsageError

BEGINNING = "0"
"""What a person says for "before the first run"."""


def find_run(state: JobState, branch: Branch, said: str) -> CommittedRun | None:
    """Return the run that a person means by ``branch/number``, a number in the branch, or `BEGINNING` (None).

    Raises `UsageError` (2) for a run that is not in the branch's chain, listing those that are.
    """
    name, _, number = said.rpartition("/")
    if said == BEGINNING:
        return None
    for run in branch.runs:
        if run.spec.name == said or (not name and str(run.spec.number) == number):
            return run
    known = ", ".join(run.spec.name for run in branch.runs[-8:]) or "none"
    gone = any(run.spec.name == said for run in state.committed)
    why = "was rewound or belongs to another branch" if gone else "is not known"
    message = (
        f"run {said!r} {why}; the last runs of {branch.name!r} are {known}: name one, or {BEGINNING} for the beginning"
    )
    raise UsageError(message)


def decide_rewind(state: JobState, name: str, to: str) -> LedgerRow:
    """Return the row that goes back to a run of a branch: the later ones count no more, a run in flight is fenced.

    Raises `UsageError` (2) for a run that is not an earlier one of its own, `CheckpointError` (76) for a closed branch.
    """
    branch = state.branch(name)
    check_open(branch)
    target = find_run(state, branch, to)
    kept = branch.index_of(target.spec.run if target else None) or 0
    if branch.head is None or kept == len(branch.runs):
        where = branch.head.spec.name if branch.head else "none"
        message = f"branch {name!r} is at run {where}: there is nothing to take back"
        raise UsageError(message)
    if kept < branch.inherited:
        fork = branch.runs[branch.inherited - 1].spec.name
        message = (
            f"branch {name!r} begins after run {fork}: rewind its parent {branch.parent!r}, or begin another branch"
        )
        raise UsageError(message)
    check_has_state(state, target.spec.run if target else None)
    body = {"branch": name, "to": target.spec.run if target else None, "head": branch.head.spec.run}
    return LedgerRow(state.rows + 1, REWIND, body)


def decide_branch(state: JobState, name: str, parent: str, at: CommittedRun | None) -> LedgerRow:
    """Return the row with which a branch begins after a run of another branch (None: at the beginning).

    Raises `ConfigError` (78) for a name that was used: a name is used once.
    """
    if name in state.branches or name == MAIN:
        message = f"the branch {name!r} was there before, and a name is used once: name another branch"
        raise ConfigError(message)
    check_has_state(state, at.spec.run if at else None)
    return LedgerRow(state.rows + 1, BRANCH, {"branch": name, "parent": parent, "at": at.spec.run if at else None})


def decide_promote(state: JobState, branch: str, into: str, binding: JobBinding) -> LedgerRow:
    """Return the row that makes a branch's chain another branch's. ``binding`` is the job's as ``into`` binds it.

    Raises `UsageError` (2) for a branch that is not there, `NotNowError` (75) for one that is behind, `CheckpointError`
    (76) for one that is closed or whose outputs have other columns.
    """
    source, target = state.branch(branch), state.branch(into)
    if branch not in state.branches or branch == into:
        known = ", ".join(name for name in state.branches if name != into) or "none"
        message = f"there is no branch {branch!r} to promote (branches: {known})"
        raise UsageError(message)
    check_open(source)
    check_open(target)
    if source.last_epoch < target.last_epoch:
        message = (
            f"branch {branch!r} is at epoch {source.last_epoch}, {into!r} at {target.last_epoch}: "
            f"let it catch up, `rewindow run {binding.job} --branch {branch}`"
        )
        raise NotNowError(message)
    if shared_runs(source.runs, target.runs) < target.inherited:
        message = (
            f"branch {branch!r} parts from {into!r} before {into!r} itself begins: promote it into {target.parent!r}"
        )
        raise CheckpointError(message)
    tables = {name: table for name, table in binding.tables.items() if name in source.tables or not source.own_runs}
    for name, table in source.tables.items():
        here = target.tables.get(name) or tables.get(name)
        if here is not None and here.columns != table.columns:
            message = (
                f"{name.removeprefix('output/')}: the branch's table has other columns than {here.path}. "
                "Name another output table in the job, and promote into it"
            )
            raise CheckpointError(message)
    heads = {"head": target.head, "branch_head": source.head}
    body = {
        "branch": branch,
        "into": into,
        **{key: head.spec.run if head else None for key, head in heads.items()},
        "tables": {name: table.as_json() for name, table in tables.items()},
    }
    return LedgerRow(state.rows + 1, PROMOTE, body)


def decide_drop(state: JobState, name: str) -> LedgerRow:
    """Return the row that gives a branch up. Raises `UsageError` (2) if there is none of that name."""
    branch = state.branches.get(name)
    if branch is None or name == MAIN or branch.standing is Standing.DROPPED:
        known = ", ".join(one.name for one in state.branches.values() if one.name != MAIN and _is_there(one)) or "none"
        message = f"there is no branch {name!r} to drop (branches: {known})"
        raise UsageError(message)
    return LedgerRow(state.rows + 1, DROP, {"branch": name})


def run_before(state: JobState, branch: Branch, epoch: int) -> CommittedRun | None:
    """Return the last run that ends before an epoch and still has its state; None if there is none.

    A backfill from that epoch begins there.
    """
    place = bisect_left(branch.runs, epoch, key=lambda run: run.spec.last_epoch)
    return next((run for run in reversed(branch.runs[:place]) if state.has_state(run.spec.run)), None)


def first_epoch_at(feed: Feed, time_ms: int) -> int:
    """Return the first epoch that may have records at or after a time: all before it are complete below the time."""
    return bisect_left(feed.landings, time_ms, key=lambda landing: landing.watermark_ms) + 1


def check_has_state(state: JobState, run: int | None) -> None:
    """Raise `CheckpointError` (76) if the state after a run was forgotten, naming the runs that still have theirs."""
    if state.has_state(run):
        return
    known = [one.spec.name for one in state.chain_to(run)]
    later = [one.spec.name for one in state.committed if state.has_state(one.spec.run)]
    message = (
        f"`rewindow gc` has removed the state after run {known[-1]}: go back to the beginning ({BEGINNING}), or to one of "
        f"{', '.join(later[-8:]) or 'none'}"
    )
    raise CheckpointError(message)


def check_open(branch: Branch) -> None:
    """Raise `CheckpointError` (76) for a branch that was promoted or dropped."""
    if branch.standing is not Standing.OPEN:
        message = f"the branch {branch.name!r} was {branch.standing}: nothing comes after that; begin another branch"
        raise CheckpointError(message)


def _is_there(branch: Branch) -> bool:
    return branch.standing is not Standing.DROPPED
