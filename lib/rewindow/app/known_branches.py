"""Refuse a branch that a job does not have, where its rows are read: the name is a slip, and nothing would look like no rows."""

from __future__ import annotations

from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import MAIN
from rewindow.errors import UsageError


def check_has_branch(job: str, state: JobState, branch: str) -> None:
    """Raise `UsageError` (2) if no command has created a branch. A job has its main branch before its first run."""
    if branch != MAIN and branch not in state.branches:
        raise no_runs(job, state, branch)


def no_runs(job: str, state: JobState, branch: str) -> UsageError:
    """Return the error of a branch without runs."""
    others = sorted(name for name, one in state.branches.items() if one.runs)
    more = f" (branches with runs: {', '.join(others)})" if others else f": run `rewindow run {job}` first"
    return UsageError(f"job {job!r} has no runs on branch {branch!r} yet{more}")
