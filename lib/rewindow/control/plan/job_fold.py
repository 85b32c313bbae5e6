"""Fold a job's ledger rows into branches, runs and publications, and check every row. Pure.

=========  =============================================================================================================== PLAN
plans a run; an earlier, uncommitted plan of the branch can no longer be committed COMMIT     makes a run true; allowed only for
the pending plan of its branch FENCE      ends the pending plan without a new plan NOTE       a note for people; has no effect
BRANCH     creates a branch that inherits the runs of another branch, up to a given run REWIND     removes the runs after a
given run from the chain of its branch PROMOTE    replaces the chain of a branch by the chain of another branch DROP       drops
a branch REPUBLISH  starts a new publication epoch of a table RESTAGE    names new files for a run whose files were lost
SNAPSHOT   names files with all stores after a run, which a restore reads instead of the files of all runs up to it FORGET
removes runs and snapshots that no branch needs from the changelogs ACCEPT     publishes a run that is on hold RESET      starts
the job over: earlier rows no longer count =========
===============================================================================================================

A row that does not fit is a broken invariant (exit code 70), because something other than rewindow wrote to the ledger.

A rewound run stays in the ledger, and its rows stay in the changelogs. The chain of each branch decides which runs count, and
each row that changes a chain is one publication to the branch's output tables. A REWIND or PROMOTE row names the last run of
the chain on which it was decided (``head``). If the chain has another last run, the row does not fit.

RESTAGE, SNAPSHOT and FORGET change neither which runs count nor what their rows are, only which files hold those rows.

A run that does not meet an expectation with ``on_fail: hold`` is committed, but its publication to the outputs waits. The
publications of later runs wait, too, because outputs are published in order. The COMMIT row itself says that the run is on
hold, so no process publishes it before an ACCEPT row. A later row can therefore remove a waiting publication as if it had
never been decided (ADR-105). Publications to tables that branches share (changelogs, metrics, the quarantine, the results of
expectations) do not wait.

A RESET row ends one ledger identity and begins another. Its body names the tables with rows of the ended identity; publishing
empties these tables before it adds rows. The row's token is the new identity, so no publication of the ended identity can be
mistaken for a publication of the new one (ADR-76).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import reduce

from rewindow.control.plan.job_state import (
    Branch,
    CommittedRun,
    JobState,
    LedgerRow,
    Publication,
    Reset,
    Restart,
    Standing,
    run_ids,
    shared_runs,
    with_shared,
)
from rewindow.control.plan.sequence import History
from rewindow.control.plan.spec import CHANGELOG, MAIN, Commit, JournalFile, RunSpec, TableSpec, TargetTotal, chain_hash
from rewindow.errors import InvariantError

PLAN, COMMIT, FENCE, NOTE = "PLAN", "COMMIT", "FENCE", "NOTE"
BRANCH, REWIND, PROMOTE, DROP, REPUBLISH = "BRANCH", "REWIND", "PROMOTE", "DROP", "REPUBLISH"
RESTAGE, SNAPSHOT, FORGET = "RESTAGE", "SNAPSHOT", "FORGET"
ACCEPT = "ACCEPT"
RESET = "RESET"


def fold(rows: Iterable[LedgerRow]) -> JobState:
    """Return the state that a job's ledger rows describe. Raises `InvariantError` (70) at the first row that does not fit."""
    state = JobState()
    for row in rows:
        state = fold_row(state, row)
    return state


def fold_row(state: JobState, row: LedgerRow) -> JobState:
    """Return the state after one more row. Raises `InvariantError` (70) if the row does not fit."""
    if row.seq != state.rows + 1:
        raise _broken(row, f"it follows row {state.rows}")
    state = replace(state, rows=row.seq, ledger=state.ledger or row.token)
    if row.kind not in _FOLDS:
        raise _broken(row, "this version of rewindow does not know its kind: update rewindow")
    after = _FOLDS[row.kind](state, row)
    return after if row.kind in (COMMIT, RESET) else _with_dead(state, after)


def decide_reset(state: JobState, unknown: Collection[str]) -> LedgerRow | None:
    """Return the row that starts a job over; None if the job is at its beginning.

    ``unknown``: the paths of tables that have rows of this job which no publication of this ledger added.
    """
    if not state.branches and not unknown:
        return None
    tables = {**{path: {} for path in unknown}, **_written(state)}
    was = state.ledger if state.rows else ""
    return LedgerRow(state.rows + 1, RESET, {"was": was, "tables": tables})


def _fold_branch(state: JobState, row: LedgerRow) -> JobState:
    name, parent = row.body["branch"], state.branch(row.body["parent"])
    kept = parent.index_of(row.body["at"])
    if name in state.branches:
        raise _broken(row, f"the branch {name!r} existed before, and a name is used once")
    if kept is None:
        raise _broken(row, f"run {row.body['at']} is not in the chain of {parent.name!r}")
    _check_state(state, row, row.body["at"])
    return _with_branch(state, Branch(name, parent.runs.until(kept), parent=parent.name, inherited=kept))


def _fold_drop(state: JobState, row: LedgerRow) -> JobState:
    branch = state.branches.get(row.body["branch"])
    if branch is None or branch.name == MAIN or branch.standing is Standing.DROPPED:
        raise _broken(row, f"there is no branch {row.body['branch']!r} to drop")
    return _with_branch(state, replace(branch, pending=None, standing=Standing.DROPPED))


def _fold_promote(state: JobState, row: LedgerRow) -> JobState:
    branch, into = _open(state, row, row.body["branch"]), _open(state, row, row.body["into"])
    _check_head(row, branch, row.body["branch_head"])
    _check_head(row, into, row.body["head"])
    common = shared_runs(branch.runs, into.runs)
    if branch.name == into.name or common < into.inherited:
        raise _broken(row, f"the chains of {branch.name!r} and {into.name!r} diverge before {into.name!r} begins")
    if branch.last_epoch < into.last_epoch:
        raise _broken(row, f"{branch.name!r} is at epoch {branch.last_epoch}, {into.name!r} at {into.last_epoch}")
    if held := state.holding(branch.runs):
        raise _broken(row, f"run {held[0].spec.name} is on hold")
    tables = {target: TableSpec.from_json(table) for target, table in row.body["tables"].items()}
    change = Publication(adds=branch.runs[common:], removes=into.runs[common:])
    promoted = replace(_with_change(into, branch.runs, change), pending=None, tables=tables)
    closed = replace(branch, pending=None, standing=Standing.PROMOTED)
    return _with_branch(_with_branch(state, closed), promoted)


def _fold_republish(state: JobState, row: LedgerRow) -> JobState:
    target, name = row.body["target"], row.body["branch"]
    if name is None:
        before, changes = state.restarts.get(target, Restart(1, 0)), state.changes
        if without := frozenset(row.body.get("without", ())):
            gone = tuple(run for run in state.naming(target) if run.spec.run in without)
            if len(gone) != len(without):
                raise _broken(row, f"it leaves out {sorted(without)}, some of which {target} does not have")
            changes = {**changes, target: state.shared(target).append(Publication(removes=gone))}
        restart = Restart(before.epoch + 1, len(changes.get(target, ())))
        return replace(state, changes=changes, restarts={**state.restarts, target: restart})
    branch = state.branch(name)
    if target not in branch.tables:
        raise _broken(row, f"{name!r} has no table for {target!r}")
    # There may be no publication yet, because the first run is on hold. Then the first publication will replace the whole
    # content.
    restart = Restart(branch.restarts.get(target, Restart(1, 0)).epoch + 1, max(1, len(branch.publications)))
    return _with_branch(state, replace(branch, restarts={**branch.restarts, target: restart}))


def _fold_rewind(state: JobState, row: LedgerRow) -> JobState:
    branch = _open(state, row, row.body["branch"])
    _check_head(row, branch, row.body["head"])
    kept = branch.index_of(row.body["to"])
    if kept is None or not branch.inherited <= kept < len(branch.runs):
        raise _broken(row, f"run {row.body['to']} is not an earlier run of {branch.name!r} itself")
    _check_state(state, row, row.body["to"])
    rewound = _with_change(branch, branch.runs.until(kept), Publication(removes=branch.runs[kept:]))
    return _with_branch(state, replace(rewound, pending=None))


def _fold_forget(state: JobState, row: LedgerRow) -> JobState:
    named = frozenset(row.body["runs"])
    snapshots = {snapshot.spec.run: snapshot for snapshot in state.snapshots.values()}
    runs = [snapshots.get(number) or state.find_run(number) for number in sorted(named - state.forgotten)]
    forgotten = [run for run in runs if run is not None]
    if len(forgotten) != len(named):
        raise _broken(row, f"it forgets {sorted(named)}, some of which do not exist")
    after = replace(
        state,
        forgotten=state.forgotten | named,
        snapshots={run: snapshot for run, snapshot in state.snapshots.items() if snapshot.spec.run not in named},
        changes=with_shared(state.changes, Publication(removes=tuple(forgotten))),
    )
    for branch in state.branches.values():
        if branch.is_open and branch.head is not None and not after.has_state(branch.head.spec.run):
            raise _broken(row, f"the branch {branch.name!r} needs what it forgets")
    return after


def _fold_restage(state: JobState, row: LedgerRow) -> JobState:
    before = state.find_run(row.body["run"])
    if before is None or before.commit.attempt != row.body["was"]:
        raise _broken(
            row, f"it replaces attempt {row.body['was']} of run {row.body['run']}, which committed another one"
        )
    commit = replace(before.commit, attempt=row.body["attempt"], journal=JournalFile(**row.body["journal"]))
    now = replace(before, commit=commit)

    def fixed(runs: Iterable[CommittedRun]) -> Iterator[CommittedRun]:
        return (now if run.spec.run == now.spec.run else run for run in runs)

    def changed(publications: Iterable[Publication]) -> History[Publication]:
        return History(
            Publication(tuple(fixed(publication.adds)), tuple(fixed(publication.removes)))
            for publication in publications
        )

    branches = {
        name: replace(
            branch,
            runs=History(fixed(branch.runs)),
            publications=changed(branch.publications),
            unpublished=changed(branch.unpublished),
        )
        for name, branch in state.branches.items()
    }
    changes = {path: changed(publications) for path, publications in state.changes.items()}
    return replace(state, branches=branches, committed=History(fixed(state.committed)), changes=changes)


def _fold_snapshot(state: JobState, row: LedgerRow) -> JobState:
    run = state.find_run(row.body["run"])
    if run is None or run.spec.run in state.snapshots:
        raise _broken(row, f"run {row.body['run']} does not exist, or has a snapshot")
    if not state.has_state(run.spec.run):
        raise _broken(row, f"the state after run {run.spec.name} was forgotten")
    spec = run.spec
    tables = {target: table for target, table in spec.binding.tables.items() if target.startswith(CHANGELOG)}
    binding = replace(spec.binding, tables=tables)
    attempt = replace(spec.attempt, id=row.body["attempt"])
    commit = Commit(
        run=row.seq,
        attempt=row.body["attempt"],
        journal=JournalFile(**row.body["journal"]),
        targets={target: TargetTotal(**total) for target, total in row.body["targets"].items()},
        consumed={},
        watermark_ms=run.commit.watermark_ms,
        chain=run.commit.chain,
    )
    snapshot = CommittedRun(
        replace(spec, run=row.seq, attempt=attempt, binding=binding), commit, row.seq, 0, row.recorded_at
    )
    return replace(
        state,
        snapshots={**state.snapshots, spec.run: snapshot},
        changes=with_shared(state.changes, Publication(adds=(snapshot,))),
    )


def _fold_accept(state: JobState, row: LedgerRow) -> JobState:
    run = row.body["run"]
    open_runs = [open_run for branch in state.branches.values() if branch.is_open for open_run in branch.runs]
    if run not in {open_run.spec.run for open_run in state.holding(open_runs)}:
        raise _broken(row, f"run {run} is not on hold")
    accepted = state.accepted | {run}
    branches = {name: _released(branch, accepted) for name, branch in state.branches.items()}
    return replace(state, accepted=accepted, branches=branches)


def _fold_reset(state: JobState, row: LedgerRow) -> JobState:
    if row.body["was"] != (state.ledger if row.seq > 1 else ""):
        raise _broken(row, "it was decided on another ledger")
    tables = {path: dict(targets) for path, targets in row.body["tables"].items()}
    return JobState(rows=row.seq, ledger=row.token, reset=Reset(row.body["was"], tables))


def _fold_commit(state: JobState, row: LedgerRow) -> JobState:
    commit = Commit.from_json(row.body)
    branch = _pending_in(state, commit.run)
    if branch is None or branch.pending is None or branch.pending.attempt.id != commit.attempt:
        raise _broken(row, f"it commits run {commit.run} of attempt {commit.attempt}, whose plan is not pending")
    spec = branch.pending
    if commit.chain != chain_hash(branch.chain, spec, commit.targets):
        raise _broken(row, f"the chain of run {spec.name} is not that of its plan, its parent and its digests")
    if commit.watermark_ms != spec.input.clock_to_ms:
        raise _broken(row, f"run {spec.name} ends at {commit.watermark_ms}, planned was {spec.input.clock_to_ms}")
    run = CommittedRun(spec, commit, row.seq, len(state.committed) + 1, row.recorded_at)
    last = max(branch.last_number, spec.number)
    added = _with_run(branch, run)
    grown = replace(added, runs=branch.runs.append(run), pending=None, tables=spec.binding.tables, last_number=last)
    changes = with_shared(state.changes, Publication(adds=(run,)))
    return _with_branch(replace(state, committed=state.committed.append(run), changes=changes), grown)


def _fold_fence(state: JobState, row: LedgerRow) -> JobState:
    branch = _pending_in(state, row.body["run"])
    if branch is None:
        raise _broken(row, f"it fences run {row.body['run']}, whose plan is not pending")
    return _with_branch(state, replace(branch, pending=None))


def _fold_note(state: JobState, row: LedgerRow) -> JobState:
    del row
    return state


def _fold_plan(state: JobState, row: LedgerRow) -> JobState:
    branch = state.branch(row.body["branch"])
    head = branch.head
    spec = RunSpec.from_json(row.body, head.spec if head else None)
    if spec.run != row.seq:
        raise _broken(row, f"its run is {spec.run}")
    if state.committed and spec.job != state.committed[0].spec.job:
        raise _broken(row, f"it plans the job {spec.job!r} in the ledger of {state.committed[0].spec.job!r}")
    if branch.is_sealed:
        raise _broken(row, f"the branch {spec.branch!r} is sealed")
    if branch.standing is not Standing.OPEN:
        raise _broken(row, f"the branch {spec.branch!r} is {branch.standing}")
    # Earlier versions chose the number in two other ways: by the length of the chain, later also by the branch's last number
    # (ADR-141).
    numbers = (branch.next_number, max(len(branch.runs), branch.last_number) + 1, len(branch.runs) + 1)
    if spec.parent != (head.spec.run if head else None) or spec.number not in numbers:
        raise _broken(
            row, f"run {spec.name} says its parent is {spec.parent}, the ledger's is {head and head.spec.run}"
        )
    if spec.input.first != branch.last_epoch + 1 or spec.input.last < spec.input.first - spec.final:
        epochs = f"{spec.input.first}..{spec.input.last}"
        raise _broken(row, f"run {spec.name} takes epochs {epochs} after epoch {branch.last_epoch}")
    if spec.input.clock_from_ms != branch.watermark_ms or spec.input.clock_to_ms < spec.input.clock_from_ms:
        clock = f"{spec.input.clock_from_ms} to {spec.input.clock_to_ms}"
        raise _broken(row, f"the clock of run {spec.name} goes from {clock} after {branch.watermark_ms}")
    if head and spec.input.generation < head.spec.input.generation:
        raise _broken(row, f"run {spec.name} goes back to generation {spec.input.generation} of the feed")
    return _with_branch(state, replace(branch, pending=spec))


def _with_dead(before: JobState, after: JobState) -> JobState:
    """Return the state ``after`` a row, with ``dead`` attempts added: those whose plan this row ended without a commit."""
    ended = _planned(before) - _planned(after)
    return replace(after, dead=after.dead | ended) if ended else after


def _planned(state: JobState) -> set[str]:
    return {branch.pending.attempt.id for branch in state.branches.values() if branch.pending is not None}


def _pending_in(state: JobState, run: int) -> Branch | None:
    for branch in state.branches.values():
        if branch.pending is not None and branch.pending.run == run:
            return branch
    return None


def _open(state: JobState, row: LedgerRow, name: str) -> Branch:
    branch = state.branch(name)
    if branch.standing is not Standing.OPEN:
        raise _broken(row, f"the branch {name!r} is {branch.standing}")
    return branch


def _check_state(state: JobState, row: LedgerRow, run: int | None) -> None:
    if not state.has_state(run):
        raise _broken(row, f"the state after run {run} was forgotten")


def _check_head(row: LedgerRow, branch: Branch, expected: int | None) -> None:
    head = branch.head.spec.run if branch.head else None
    if head != expected:
        raise _broken(row, f"it was decided when run {expected} was the last of {branch.name!r}, which is at {head}")


def _with_run(branch: Branch, run: CommittedRun) -> Branch:
    """Return the branch with a publication of one more run.

    The publication waits if the run is on hold or other publications already wait.
    """
    added = Publication(adds=(run,))
    if run.commit.holds or branch.unpublished:
        return replace(branch, unpublished=branch.unpublished.append(added))
    return replace(branch, publications=branch.publications.append(added))


def _with_change(branch: Branch, chain: History[CommittedRun], change: Publication) -> Branch:
    """Return the branch with another chain, and with the publication that changes its outputs to match this chain."""
    kept = {*run_ids(chain)} if branch.unpublished else frozenset[int]()
    # Runs that were never published have no rows in output tables, so no publication removes them.
    never = {run.spec.run for publication in branch.unpublished for run in publication.adds}
    return replace(
        branch,
        runs=chain,
        publications=branch.publications.append(
            replace(change, removes=tuple(run for run in change.removes if run.spec.run not in never))
        ),
        unpublished=History(
            publication for publication in branch.unpublished if all(run.spec.run in kept for run in publication.adds)
        ),
    )


def _released(branch: Branch, accepted: AbstractSet[int]) -> Branch:
    """Return the branch after runs were ``accepted``. Publications then wait only from the next run on hold onward."""
    count = 0
    for publication in branch.unpublished:
        if any(run.commit.holds and run.spec.run not in accepted for run in publication.adds):
            break
        count += 1
    released, waiting = branch.unpublished[:count], branch.unpublished[count:]
    publications = reduce(History.append, released, branch.publications)
    return replace(branch, publications=publications, unpublished=History(waiting))


def _written(state: JobState) -> dict[str, dict[str, int]]:
    """Return the tables that the job wrote or may be writing.

    Maps each path to its targets, and these to the last publication epoch.
    """
    epochs_of: dict[str, dict[str, int]] = {}

    def add(branch: str, tables: Mapping[str, TableSpec]) -> None:
        for target, table in tables.items():
            epochs = epochs_of.setdefault(table.path, {})
            epochs[target] = max(epochs.get(target, 1), state.restart(branch, target, table.path).epoch)

    for run in state.committed:
        add(run.spec.branch, run.spec.binding.tables)
    for branch in state.branches.values():
        add(branch.name, branch.tables)
        if branch.pending is not None:
            add(branch.name, branch.pending.binding.tables)
    return epochs_of


def _with_branch(state: JobState, branch: Branch) -> JobState:
    """Return the state with one branch replaced or added."""
    return replace(state, branches={**state.branches, branch.name: branch})


def _broken(row: LedgerRow, why: str) -> InvariantError:
    """Return the error for a row that does not fit."""
    return InvariantError(
        "ledger-row-broken",
        "the ledger is broken at row {row} ({kind}): {reason}. Nothing was done; restore the ledger table",
        row=row.seq,
        kind=row.kind,
        reason=why,
    )


_FOLDS: Mapping[str, Callable[[JobState, LedgerRow], JobState]] = {
    PLAN: _fold_plan,
    COMMIT: _fold_commit,
    FENCE: _fold_fence,
    NOTE: _fold_note,
    BRANCH: _fold_branch,
    REWIND: _fold_rewind,
    PROMOTE: _fold_promote,
    DROP: _fold_drop,
    REPUBLISH: _fold_republish,
    RESTAGE: _fold_restage,
    SNAPSHOT: _fold_snapshot,
    FORGET: _fold_forget,
    ACCEPT: _fold_accept,
    RESET: _fold_reset,
}
