"""Describe how a table differs from what was published, and find the runs that must be repeated to restore the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.repair_decisions import needed
from rewindow.control.plan.spec import CHANGELOG, MAIN
from rewindow.tables.shared.publications import due_tables, net

IsWhole = Callable[[CommittedRun, str, str], bool]
"""A function that gets a run, a target and the path of the target's table. It returns whether the files that the run staged
for the target are intact."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A table of a branch that differs from what was published. ``change`` describes how."""

    target: str
    path: str
    change: str


def publish_again(job: str, branch: str) -> str:
    """Return the advice for a table of a branch that differs from what was published."""
    return f"Publish it again: {_republish(job, branch)}"


def repeat_run(job: str, branch: str) -> str:
    """Return the advice for a staged file that was lost before its run was published."""
    return f"Repeat its run: {_republish(job, branch)}"


def _republish(job: str, branch: str) -> str:
    return f"`rewindow republish {job}{'' if branch == MAIN else f' --branch {branch}'}`"


def difference_of(wanted: Mapping[int, int], actual: Mapping[int, int], state: JobState) -> str:
    """Describe the first run whose number of rows in a table differs from the published number.

    ``wanted``: how many rows of each run id were published. ``actual``: how many rows of each run id the table has.
    """
    names = {run.spec.run: f"run {run.spec.name}" for run in state.committed}
    for run in sorted({*wanted, *actual}):
        if wanted.get(run, 0) != actual.get(run, 0):
            name = names.get(run, f"run {run}")
            return f"has {actual.get(run, 0)} rows of {name}, {wanted.get(run, 0)} were published"
    return "has other rows than were published"


def lost_runs(
    state: JobState, branch: str, targets: Collection[str], is_whole: IsWhole
) -> tuple[list[CommittedRun], list[int]]:
    """Find the runs whose rows for these targets are gone or altered, among all committed runs, published or not.

    Return the runs to repeat, in ledger order. These are the lost runs that are `repeatable`, and the runs whose state they
    need if that state is lost, too. Also return the numbers of the lost runs that are not repeatable.
    """
    snapshots, repeated = _snapshots(state), repeatable(state)
    lost: dict[int, CommittedRun] = {}
    for due in due_tables(state, branch):
        if due.target in targets:
            for run in net(due.publications).adds:
                if not is_whole(run, due.target, due.table.path):
                    lost[run.spec.run] = run
    for run in (run for run_of_basis in state.branch(branch).unpublished for run in run_of_basis.adds):
        tables = run.spec.binding.tables.items()
        if any(target in targets and not is_whole(run, target, table.path) for target, table in tables):
            lost[run.spec.run] = run
    lost_for_good = [number for number in lost if number not in repeated]
    wanted = {number: run for number, run in lost.items() if number in repeated}
    waiting = list(wanted.values())
    while waiting:
        for run_of_basis in state.basis(waiting.pop().spec.parent):
            number = run_of_basis.spec.run
            if number not in wanted and number not in snapshots and not _has_state(run_of_basis, is_whole):
                wanted[number] = run_of_basis
                waiting.append(run_of_basis)
    return sorted(wanted.values(), key=lambda run: run.spec.run), lost_for_good


def repeatable(state: JobState) -> frozenset[int]:
    """Return the numbers of the runs that `republish` repeats if their files are gone.

    Other runs and snapshots are never repeated.
    """
    return needed(state) - _snapshots(state)


def _snapshots(state: JobState) -> frozenset[int]:
    return frozenset(run.spec.run for run in state.snapshots.values())


def _has_state(run: CommittedRun, is_whole: IsWhole) -> bool:
    tables = run.spec.binding.tables.items()
    return all(is_whole(run, target, table.path) for target, table in tables if target.startswith(CHANGELOG))
