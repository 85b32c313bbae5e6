"""Decide the next run of a branch as `run` would, without running it."""

from __future__ import annotations

from rewindow.control.heartbeat import this_attempt
from rewindow.control.plan.branches import JobState
from rewindow.control.plan.planner import Alive, UpToDate, plan_run
from rewindow.control.plan.spec import RunRequest, RunSpec
from rewindow.control.run import Job
from rewindow.errors import naming
from rewindow.tables.shared.warehouse import Warehouse


def next_run(tables: Warehouse, job: Job, state: JobState, request: RunRequest, alive: Alive) -> RunSpec | UpToDate:
    """Return the next run. Changes nothing. Raises what `run` would raise before it executes."""
    with naming(JOB=job.name):
        tables.check_published(job.name, state, request.branch)
    decision = plan_run(state, job.feed, request, job.binding, this_attempt(), alive)
    if not isinstance(decision, UpToDate):
        tables.check_targets(decision)
    return decision
