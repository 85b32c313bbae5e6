"""A job as of one of its runs: the stores and the output tables that people read."""

from __future__ import annotations

from typing import NamedTuple

from rewindow.app.open_project import OpenProject
from rewindow.app.run_references import no_runs
from rewindow.control.plan.branch_decisions import BEGINNING, find_run
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState
from rewindow.errors import UsageError
from rewindow.tables.shared.paths import safe_name
from rewindow.tables.shared.state_query import Stores


class AsOf(NamedTuple):
    """A job's ledger, one of its branches, and a run of that branch."""

    state: JobState
    branch: Branch
    run: CommittedRun

    @property
    def runs(self) -> tuple[CommittedRun, ...]:
        """The runs of the branch up to this one."""
        return self.branch.runs[: self.branch.index_of(self.run.spec.run)]


def as_of(project: OpenProject, job: str, branch: str, at: str | None) -> AsOf:
    """Return a job as of a run, by default the branch's last one. Publishes first what an interrupted command has left.

    Raises `UsageError` (2) for a branch without runs, or a run that is not on the branch.
    """
    project.job_config(job)
    name = safe_name(branch, "branch")
    state = project.tables.state(job)
    for _step in project.tables.publish(job, state, name):
        pass
    known = state.branch(name)
    run = known.head if at is None else None if at == BEGINNING else find_run(state, known, at)
    if not known.runs:
        raise no_runs(job, state, name)
    if run is None:
        raise UsageError(
            "beginning-has-nothing",
            "job {job!r} has nothing before its first run on branch {branch!r}: name a run that `rewindow show {job}` lists",
            job=job,
            branch=name,
        )
    return AsOf(state, known, run)


def stores_of(project: OpenProject, found: AsOf) -> Stores:
    """Return the stores as of a run. Raises `CheckpointError` (76) if `gc` forgot them."""
    return Stores(project.tables, found.state, found.run)
