"""What both adapters say of a table that is not what was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN


@dataclass(frozen=True, slots=True)
class Drift:
    """A table of a branch that is not what was published, and a description of the difference."""

    target: str
    path: str
    what: str


def publish_again(job: str, branch: str) -> str:
    """Return the advice for a table of a branch that is not what was published."""
    return f"Publish it again: {_republish(job, branch)}"


def repeat_run(job: str, branch: str) -> str:
    """Return the advice for a file of a run that is gone before it is in its table."""
    return f"Repeat its run: {_republish(job, branch)}"


def _republish(job: str, branch: str) -> str:
    return f"`rewindow republish {job}{'' if branch == MAIN else f' --branch {branch}'}`"


def difference_of(wanted: Mapping[int, int], found: Mapping[int, int], state: JobState) -> str:
    """Describe the first run of which a table has another number of rows than were published."""
    names = {run.spec.run: f"run {run.spec.name}" for run in state.committed}
    for run in sorted({*wanted, *found}):
        if wanted.get(run, 0) != found.get(run, 0):
            name = names.get(run, f"run {run}")
            return f"has {found.get(run, 0)} rows of {name}, {wanted.get(run, 0)} were published"
    return "has other rows than were published"
