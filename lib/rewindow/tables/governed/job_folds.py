"""What the ledger of a job gives, as it is stored so that later commands do not read all its rows (ADR-138)."""

from __future__ import annotations

from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN
from rewindow.control.plan.stored_rows import StoredRows
from rewindow.control.plan.stored_state import state_lines
from rewindow.tables.governed.folds import Given
from rewindow.tables.shared.warehouse import JobStates

_SLACK_MS = 24 * 3_600_000
"""Reports are recorded before the COMMIT of their run, by the clocks of other machines."""


def give_state(rows: StoredRows) -> Given:
    """Return what the rows of a job's ledger give."""
    state = JobStates().fold("this job", rows)
    return Given(state_lines(state), _oldest_report(state))


def _oldest_report(state: JobState) -> int:
    """Return since when (epoch ms) the runs were committed from which the next one resumes; 0 if that is unknown."""
    head = state.branches[MAIN].head if MAIN in state.branches else None
    needed = (head, *state.basis(head.spec.run)) if head else ()
    return max(min((run.recorded_at for run in needed), default=0) - _SLACK_MS, 0)
