"""Fold the ledger rows of repair and gc: RESTAGE, SNAPSHOT and FORGET. Pure.

They do not change which runs count or what their rows are, only which files hold those rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow, Publication, with_shared
from rewindow.control.plan.commit import Commit, JournalFile, TargetTotal
from rewindow.control.plan.history import History
from rewindow.control.plan.ledger_rows import broken
from rewindow.control.plan.spec import CHANGELOG

RESTAGE, SNAPSHOT, FORGET = "RESTAGE", "SNAPSHOT", "FORGET"


def _fold_restage(state: JobState, row: LedgerRow) -> JobState:
    before = state.find_run(row.body["run"])
    if before is None or before.commit.attempt != row.body["was"]:
        raise broken(row, f"it replaces attempt {row.body['was']} of run {row.body['run']}, which has other files")
    commit = replace(before.commit, attempt=row.body["attempt"], journal=JournalFile(**row.body["journal"]))
    now = replace(before, commit=commit)

    def fixed(runs: Iterable[CommittedRun]) -> Iterator[CommittedRun]:
        return (now if run.spec.run == now.spec.run else run for run in runs)

    def changed(publications: Iterable[Publication]) -> History[Publication]:
        return History(Publication(tuple(fixed(one.adds)), tuple(fixed(one.removes))) for one in publications)

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
        raise broken(row, f"run {row.body['run']} does not exist, or has a snapshot")
    if not state.has_state(run.spec.run):
        raise broken(row, f"the state after run {run.spec.name} was forgotten")
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


def _fold_forget(state: JobState, row: LedgerRow) -> JobState:
    named = frozenset(row.body["runs"])
    snapshots = {one.spec.run: one for one in state.snapshots.values()}
    known = [snapshots.get(number) or state.find_run(number) for number in sorted(named - state.forgotten)]
    forgotten = [run for run in known if run is not None]
    if len(forgotten) != len(named):
        raise broken(row, f"it forgets {sorted(named)}, some of which do not exist")
    after = replace(
        state,
        forgotten=state.forgotten | named,
        snapshots={run: one for run, one in state.snapshots.items() if one.spec.run not in named},
        changes=with_shared(state.changes, Publication(removes=tuple(forgotten))),
    )
    for branch in state.branches.values():
        if branch.is_open and branch.head is not None and not after.has_state(branch.head.spec.run):
            raise broken(row, f"the branch {branch.name!r} needs what it forgets")
    return after


FOLDS: Mapping[str, Callable[[JobState, LedgerRow], JobState]] = {
    RESTAGE: _fold_restage,
    SNAPSHOT: _fold_snapshot,
    FORGET: _fold_forget,
}
