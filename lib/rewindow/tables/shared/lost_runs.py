"""Find the runs that must be repeated because what they staged is gone or altered."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rewindow.control.plan.branches import CommittedRun, JobState
from rewindow.control.plan.repair_decisions import needed
from rewindow.control.plan.spec import CHANGELOG
from rewindow.tables.shared.publications import due_tables, net

IsWhole = Callable[[CommittedRun, str, str], bool]
"""Returns whether what a run staged for a target, whose table has a path, is intact."""


def lost_runs(
    state: JobState, branch: str, targets: Collection[str], is_whole: IsWhole
) -> tuple[list[CommittedRun], list[int]]:
    """Return the runs whose rows for these targets are gone or altered, in ledger order.

    First those that are needed, with all runs that their state depends on; then the numbers of the others.
    """
    counts = needed(state)
    lost: dict[int, CommittedRun] = {}
    for due in due_tables(state, branch):
        if due.target in targets:
            for run in net(due.publications).adds:
                if not is_whole(run, due.target, due.table.path):
                    lost[run.spec.run] = run
    snapshots = {one.spec.run for one in state.snapshots.values()}
    given_up = [number for number in lost if number not in counts or number in snapshots]
    wanted = {number: run for number, run in lost.items() if number not in given_up}
    waiting = list(wanted.values())
    while waiting:
        for one in state.basis(waiting.pop().spec.parent):
            number = one.spec.run
            if number not in wanted and number not in snapshots and not _has_state(one, is_whole):
                wanted[number] = one
                waiting.append(one)
    return sorted(wanted.values(), key=lambda run: run.spec.run), given_up


def _has_state(run: CommittedRun, is_whole: IsWhole) -> bool:
    tables = run.spec.binding.tables.items()
    return all(is_whole(run, target, table.path) for target, table in tables if target.startswith(CHANGELOG))
