"""Store what the ledger of a job gives, so that later commands do not read all its rows (ADR-138)."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import MAIN
from rewindow.control.plan.stored_rows import StoredRows
from rewindow.control.plan.stored_state import state_lines
from rewindow.tables.governed.own_rows import OwnRows
from rewindow.tables.shared.warehouse import JobStates

_SLACK_MS = 24 * 3_600_000
"""Reports are recorded before the COMMIT of their run, by the clocks of other machines."""


def keep_fold(own: OwnRows, job: str, attempts: Sequence[str]) -> None:
    """Store what the rows of a job's ledger give if it is time, in a command that is to commit attempts."""
    if not (attempts and own.is_in_command):
        return
    states: list[JobState] = []

    def give(rows: StoredRows) -> tuple[list[str], dict[str, object]]:
        states.append(JobStates().fold(job, rows))
        return state_lines(states[0]), {}

    if (kept := own.ledger(job).due_fold(give)) is not None:
        own.folds.write(job, kept, _oldest_report(states[0]))


def _oldest_report(state: JobState) -> int:
    """Return since when (epoch ms) the runs were committed from which the next one resumes; 0 if that is unknown."""
    head = state.branches[MAIN].head if MAIN in state.branches else None
    needed = (head, *state.basis(head.spec.run)) if head else ()
    return max(min((run.recorded_at for run in needed), default=0) - _SLACK_MS, 0)
