"""Fold the ledger row that accepts a run on hold (ACCEPT), and decide what is published while a run is on hold. Pure.

A run that does not meet an expectation with ``on_fail: hold`` is committed, but its publication to the outputs waits, and so
do those of the runs behind it: outputs are published in order. No process publishes what waits, because the row that commits the
run says that it holds. So a publication that waits can still be taken back as if it had never been decided (ADR-105).

Tables that branches share (changelogs, metrics, the quarantine, the results of expectations) do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import reduce

from rewindow.control.plan.branches import Branch, CommittedRun, JobState, LedgerRow, Publication, run_ids
from rewindow.control.plan.history import History
from rewindow.control.plan.ledger_rows import broken

ACCEPT = "ACCEPT"


def with_run(branch: Branch, run: CommittedRun) -> Branch:
    """Return the branch with one more publication, which waits if the run holds or another one waits."""
    added = Publication(adds=(run,))
    if run.commit.holds or branch.unpublished:
        return replace(branch, unpublished=branch.unpublished.append(added))
    return replace(branch, publications=branch.publications.append(added))


def with_change(branch: Branch, chain: History[CommittedRun], change: Publication) -> Branch:
    """Return the branch with another chain, and the publication that makes its outputs those of the chain.

    Runs that were not published yet need not be taken out of a table.
    """
    kept = {*run_ids(chain)} if branch.unpublished else frozenset[int]()
    never = {run.spec.run for one in branch.unpublished for run in one.adds}
    return replace(
        branch,
        runs=chain,
        publications=branch.publications.append(
            replace(change, removes=tuple(run for run in change.removes if run.spec.run not in never))
        ),
        unpublished=History(one for one in branch.unpublished if all(run.spec.run in kept for run in one.adds)),
    )


def _fold_accept(state: JobState, row: LedgerRow) -> JobState:
    run = row.body["run"]
    open_runs = [one for branch in state.branches.values() if branch.is_open for one in branch.runs]
    if run not in {one.spec.run for one in state.holding(open_runs)}:
        raise broken(row, f"run {run} is not on hold")
    accepted = state.accepted | {run}
    branches = {name: _released(branch, accepted) for name, branch in state.branches.items()}
    return replace(state, accepted=accepted, branches=branches)


def _released(branch: Branch, accepted: AbstractSet[int]) -> Branch:
    """Return the branch with the publications that nothing holds back any more."""
    count = 0
    for one in branch.unpublished:
        if any(run.commit.holds and run.spec.run not in accepted for run in one.adds):
            break
        count += 1
    released, waiting = branch.unpublished[:count], branch.unpublished[count:]
    publications = reduce(History.append, released, branch.publications)
    return replace(branch, publications=publications, unpublished=History(waiting))


FOLDS: Mapping[str, Callable[[JobState, LedgerRow], JobState]] = {ACCEPT: _fold_accept}
