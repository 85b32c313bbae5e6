"""Decide rewinds, branches, promotions and drops. Each decision is a ledger row, or None if there is nothing to decide. Pure.

These rows copy and compute nothing. They only change the chains of runs. Each request names a state, not a change. If that
state already holds, the request needs no row (ADR-79), so a command that was killed can be repeated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rewindow.control.plan.compatibility import column_changes
from rewindow.control.plan.job_fold import ACCEPT, BRANCH, DROP, PROMOTE, REWIND
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState, LedgerRow, Standing, run_ids, shared_runs
from rewindow.control.plan.spec import BEGINNING, MAIN, OUTPUT, JobBinding, TableSpec
from rewindow.errors import CheckpointError, ConfigError, NotNowError, UsageError

if TYPE_CHECKING:
    from rewindow.control.ingest.landings import Feed

_NEAREST = 4
"""How many runs before and after a run a message names, if the state after that run was forgotten."""


def run_or_beginning(state: JobState, branch: Branch, text: str) -> CommittedRun | None:
    """Return what `find_run` returns; None for `BEGINNING`."""
    return None if text == BEGINNING else find_run(state, branch, text, f", or {BEGINNING} for the beginning")


def find_run(state: JobState, branch: Branch, text: str, or_else: str = "") -> CommittedRun:
    """Return the run of a branch's chain with this name (``branch/number``) or number.

    Raises `UsageError` (2) if several runs of the chain have the number, or if the chain has no such run. The latter message
    lists the last runs of the chain and then ``or_else``, which says what else the caller accepts.
    """
    matches = [run for run in branch.runs if text in (run.spec.name, str(run.spec.number))]
    if len(matches) > 1:
        names = [run.spec.name for run in matches]
        raise UsageError(
            "run-number-ambiguous",
            "{count} runs of branch {branch!r} have the number {number}, because a promotion has brought "
            "runs of another branch: {runs}. Name the run in full, such as {example}",
            count=len(matches),
            branch=branch.name,
            number=text,
            runs=", ".join(names),
            example=names[-1],
        )
    if matches:
        return matches[0]
    name = text.rpartition("/")[0]
    recent = ", ".join(run.spec.name for run in branch.runs[-8:])
    whole = text if name else f"{branch.name}/{text}"
    is_committed = any(run.spec.name == whole for run in state.committed)
    choices = (
        f"The last runs of branch {branch.name!r} are {recent}: choose one of them{or_else}"
        if recent
        else f"There is no run on branch {branch.name!r} {'any more' if state.committed else 'yet'}, so there is none to name"
    )
    if is_committed:
        raise UsageError(
            "run-not-on-branch",
            "run {run!r} was rewound, replaced by a promotion, or belongs to another branch. {choices}. To undo a promotion, "
            "restore the code, then backfill and promote again",
            run=text,
            choices=choices,
        )
    raise UsageError("run-unknown", "run {run!r} does not exist. {choices}", run=text, choices=choices)


def decide_rewind(state: JobState, name: str, to: str) -> LedgerRow | None:
    """Return the row that takes a branch back to an earlier run; None if that run is the last. The row fences a run in flight.

    Raises `UsageError` (2) for an unknown branch or run and for a run before the branch's own runs, `CheckpointError` (76) for a
    closed branch and for a run whose state was forgotten.
    """
    branch = state.branch(name)
    if name != MAIN and name not in state.branches:
        raise _unknown_branch(name, state.branches)
    check_open(branch, "cannot be rewound")
    target = run_or_beginning(state, branch, to)
    kept = branch.index_of(target.spec.run if target else None) or 0
    # A repeated request needs no row (ADR-79).
    if branch.head is None or kept == len(branch.runs):
        return None
    # Inherited runs belong to the parent branch, and their rows are in the parent's tables.
    if kept < branch.inherited:
        fork = branch.runs[branch.inherited - 1].spec.name
        raise UsageError(
            "rewind-before-branch",
            "branch {branch!r} starts after run {run}: rewind its parent {parent!r}, or create another branch",
            branch=name,
            run=fork,
            parent=branch.parent,
        )
    check_has_state(state, target.spec.run if target else None)
    body = {"branch": name, "to": target.spec.run if target else None, "head": branch.head.spec.run}
    return LedgerRow(state.rows + 1, REWIND, body)


def decide_branch(state: JobState, name: str, parent: str, base: CommittedRun | None) -> LedgerRow | None:
    """Return the row that creates a branch after run ``base`` of its parent. With None as ``base``, it starts at the beginning.

    Returns None if this branch is already open, with this parent and base. Raises `ConfigError` (78) for a name that another
    branch has or had (ADR-23), and for a name that `check_case` refuses.
    """
    existing = state.branches.get(name)
    if existing is not None and existing.is_open and (existing.parent, existing.base) == (parent, base):
        return None
    if existing is not None or name == MAIN:
        raise ConfigError(
            "branch-name-reused",
            "branch name {branch!r} was used before and cannot be reused: choose another name",
            branch=name,
        )
    check_case(state, name)
    check_has_state(state, base.spec.run if base else None)
    return LedgerRow(state.rows + 1, BRANCH, {"branch": name, "parent": parent, "at": base.spec.run if base else None})


def check_case(state: JobState, name: str) -> None:
    """Raise `ConfigError` (78) if the name of a new branch differs only in case from the name of an earlier branch.

    On a disk or in a catalog that ignores case, both branches would write the same tables.
    """
    if name == MAIN or name in state.branches:
        return
    if same := [other for other in (MAIN, *state.branches) if other.casefold() == name.casefold()]:
        raise ConfigError(
            "branch-name-differs-in-case",
            "branch name {branch!r} differs only in case from {other!r}, which was used before. Where case is "
            "ignored, both would write the same tables: choose another name",
            branch=name,
            other=same[0],
        )


def check_promotable(state: JobState, branch: str, into: str) -> None:
    """Raise `UsageError` (2) for an unknown branch, and `CheckpointError` (76) if one of the branches is closed.

    A branch that `was_promoted` passes.
    """
    if branch not in state.branches or branch == into:
        raise _unknown_branch(branch, [name for name in state.branches if name != into])
    if not was_promoted(state, branch, into):
        check_open(state.branch(branch), "cannot be promoted")
        check_open(state.branch(into), "takes no branch")


def decide_promote(state: JobState, branch: str, into: str, binding: JobBinding) -> LedgerRow | None:
    """Return the row that replaces the chain of ``into`` by the chain of ``branch``; None if `was_promoted`.

    ``binding``: the job, bound to the tables of ``into``.

    Raises `UsageError` (2) for an unknown branch, and `NotNowError` (75) if ``branch`` lacks epochs of ``into``. Raises
    `CheckpointError` (76) if a branch is closed, a run is on hold, the branches separated before the first own run of ``into``,
    or the columns of an output differ.
    """
    check_promotable(state, branch, into)
    if was_promoted(state, branch, into):
        return None
    source, target = state.branch(branch), state.branch(into)
    if held := state.holding(source.runs):
        spec, why = held[0].spec, held[0].commit.held_by[0].sentence
        raise CheckpointError(
            "promoted-run-on-hold",
            "run {run} is on hold, so branch {branch!r} cannot be promoted: {reason}. Accept it, `rewindow "
            "publish {job} --branch {branch} --accept --run {run}`; or rewind the branch to an earlier run",
            run=spec.name,
            branch=branch,
            reason=why,
            job=binding.job,
        )
    # Promoting a branch without the target's last epochs would remove the results of these epochs.
    if source.last_epoch < target.last_epoch:
        raise NotNowError(
            "branch-behind-target",
            "branch {branch!r} is at epoch {epoch}, but {into!r} is at {target_epoch}: let it catch up "
            "with `rewindow run {job} --branch {branch}`",
            branch=branch,
            epoch=source.last_epoch,
            into=into,
            target_epoch=target.last_epoch,
            job=binding.job,
        )
    # Only the own runs of the target can be replaced. The rows of its inherited runs are in the tables of its parent.
    if shared_runs(source.runs, target.runs) < target.inherited:
        raise CheckpointError(
            "branches-diverged-early",
            "branch {branch!r} diverged from {into!r} before {into!r} itself starts: promote it into {parent!r}",
            branch=branch,
            into=into,
            parent=target.parent,
        )
    tables = {name: table for name, table in binding.tables.items() if name in source.tables or not source.has_own_runs}
    for name, table in source.tables.items():
        if name.startswith(OUTPUT) and name in tables:
            tables[name] = _with_its_columns(tables[name], table, target.tables.get(name), name, binding.job)
        elif name in tables:
            # A store with other columns has another changelog table, to which the branch has already published.
            tables[name] = table
    heads = {"head": target.head, "branch_head": source.head}
    body = {
        "branch": branch,
        "into": into,
        **{key: head.spec.run if head else None for key, head in heads.items()},
        "tables": {name: table.as_json() for name, table in tables.items()},
    }
    return LedgerRow(state.rows + 1, PROMOTE, body)


def _with_its_columns(
    here: TableSpec, of_branch: TableSpec, before: TableSpec | None, target: str, job: str
) -> TableSpec:
    """Return an output table with the columns of a branch. Raises `CheckpointError` (76) if the table exists with other columns.

    ``here``: the table in the binding; ``before``: the present table of the branch that the other is promoted into, if it has
    one.
    """
    if before is not None and before.path == here.path and before.columns != of_branch.columns:
        output = target.removeprefix(OUTPUT)
        raise CheckpointError(
            "promoted-columns-differ",
            "{output}: the branch's table has other columns than {table}, whose readers know the present "
            "ones: {changes}. Name another table for {output} in conf/jobs/{job}.yaml, then promote",
            output=output,
            table=here.path,
            changes=column_changes(before.columns, of_branch.columns),
            job=job,
        )
    return replace(here, columns=of_branch.columns)


def was_promoted(state: JobState, branch: str, into: str) -> bool:
    """Return whether ``branch`` was promoted and ``into`` still has all its runs.

    After a rewind, ``into`` may lack some of them.
    """
    source, target = state.branch(branch), state.branch(into)
    return source.standing is Standing.PROMOTED and shared_runs(source.runs, target.runs) == len(source.runs)


def decide_drop(state: JobState, name: str) -> LedgerRow | None:
    """Return the row that drops a branch; None if it was dropped before.

    Raises `UsageError` (2) for `main` or an unknown branch.
    """
    if name == MAIN:
        raise UsageError(
            "main-not-droppable",
            "'main' is the published branch and cannot be dropped: `rewindow rewind JOB --to RUN` takes "
            "its later runs back, `rewindow reset JOB` starts the job over",
        )
    branch = state.branches.get(name)
    if branch is not None and not branch.is_kept:
        return None
    if branch is None:
        raise _unknown_branch(
            name, [other.name for other in state.branches.values() if other.name != MAIN and other.is_kept]
        )
    return LedgerRow(state.rows + 1, DROP, {"branch": name})


def check_can_publish(state: JobState, name: str) -> None:
    """Raise `UsageError` (2) for an unknown branch."""
    # `main` exists even before its first run, but is added to the state only by that run.
    if name != MAIN and name not in state.branches:
        raise _unknown_branch(name, state.branches)


def _unknown_branch(name: str, others: Iterable[str]) -> UsageError:
    """Return the error for a branch that a command does not accept. ``others``: the branches that it accepts."""
    return UsageError(
        "branch-unknown",
        "there is no branch {branch!r} to choose (branches: {branches})",
        branch=name,
        branches=", ".join(others) or "none",
    )


def decide_accept(state: JobState, name: str, text: str | None) -> LedgerRow | None:
    """Return the row that accepts a run on hold; None if the run is not on hold.

    ``text`` names the run; None means the only run on hold. Raises `UsageError` (2) for an unknown branch or run, and if
    several runs are on hold and ``text`` is None.
    """
    branch, held = state.branch(name), state.on_hold(name)
    check_can_publish(state, name)
    if text is None and len(held) > 1:
        raise UsageError(
            "held-runs-several",
            "{count} runs are on hold: accept one of them, --run {runs}",
            count=len(held),
            runs=" or --run ".join(run.spec.name for run in held),
        )
    named = find_run(state, branch, text) if text is not None else None
    chosen = next(iter(held if named is None else state.holding([named])), None)
    return None if chosen is None else LedgerRow(state.rows + 1, ACCEPT, {"run": chosen.spec.run})


def run_before(state: JobState, branch: Branch, epoch: int) -> CommittedRun | None:
    """Return the last run that ends before an epoch and whose state can still be restored, or None.

    A backfill that begins with this epoch starts after that run.
    """
    count = bisect_left(branch.runs, epoch, key=lambda run: run.spec.input.last)
    return next((run for run in reversed(branch.runs[:count]) if state.has_state(run.spec.run)), None)


def first_epoch_at(feed: Feed, time_ms: int) -> int:
    """Return the first epoch that may contain records at or after a time."""
    # An epoch contains no records above its watermark.
    return bisect_left(feed.landings, time_ms, key=lambda landing: landing.watermark_ms) + 1


def check_has_state(state: JobState, run: int | None) -> None:
    """Raise `CheckpointError` (76) if `gc` forgot the state after a run, `NotNowError` (75) if a reset removed the run.

    The message about a forgotten state lists the nearest runs of the branch whose states can be restored.
    """
    if run is not None and state.find_run(run) is None:
        raise NotNowError(
            "job-started-over",
            "`reset` has started the job over, so there is no state after its earlier run {run}: run again",
            run=run,
        )
    if state.has_state(run):
        return
    wanted = state.chain_to(run)[-1]
    near = ", ".join(run_nearby.spec.name for run_nearby in _nearest_with_state(state, wanted))
    choices = f"the beginning ({BEGINNING}), or one of {near}" if near else f"the beginning ({BEGINNING})"
    raise CheckpointError(
        "run-state-removed",
        "`rewindow gc` has removed the state after run {run}: choose {choices}",
        run=wanted.spec.name,
        choices=choices,
    )


def _nearest_with_state(state: JobState, wanted: CommittedRun) -> list[CommittedRun]:
    """Return the nearest runs before and after a run, in the order of its branch, whose states can still be restored."""
    own_first = sorted(state.branches.values(), key=lambda branch: branch.name != wanted.spec.branch)
    chain = next((branch.runs for branch in own_first if wanted.spec.run in run_ids(branch.runs)), None)
    if chain is None:
        return []
    index = list(run_ids(chain)).index(wanted.spec.run)
    before = islice((run for run in reversed(chain[:index]) if state.has_state(run.spec.run)), _NEAREST)
    after = islice((run for run in chain[index + 1 :] if state.has_state(run.spec.run)), _NEAREST)
    return [*reversed(list(before)), *after]


def check_open(branch: Branch, cannot: str = "takes no more runs") -> None:
    """Raise `CheckpointError` (76) for a branch that was promoted or dropped. ``cannot``: what such a branch cannot do."""
    if branch.standing is not Standing.OPEN:
        raise CheckpointError(
            "branch-closed",
            "branch {branch!r} was {standing} and {cannot}: use another branch",
            branch=branch.name,
            standing=branch.standing,
            cannot=cannot,
        )
