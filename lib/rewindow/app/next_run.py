"""Decide the next run of a branch as `run` would, without running it. Refuses what `run` would refuse only after it has begun.

For governed tables, only `run` makes those later refusals.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.app.readers import replayed_removed
from rewindow.config.load import load_feed
from rewindow.control.heartbeat import this_attempt
from rewindow.control.plan.job_diff import changes_since
from rewindow.control.plan.planner import Alive, UpToDate, UpToDateButChanged, is_accepted_code, plan_run
from rewindow.errors import RewindowError, naming

if TYPE_CHECKING:
    from rewindow.control.plan.job_state import JobState
    from rewindow.control.plan.spec import RunRequest, RunSpec
    from rewindow.control.run import Job
    from rewindow.tables.shared.warehouse import Warehouse


def next_run(tables: Warehouse, job: Job, state: JobState, request: RunRequest, alive: Alive) -> RunSpec | UpToDate:
    """Return the next run. Changes nothing. Raises what `run` would raise before it executes."""
    later = tables.later_refusals(job, state)
    with naming(JOB=job.name, FEED=job.feed.definition.feed):
        later.check_published(request.branch)
    decision = plan_run(state, job.feed, request, job.binding, this_attempt(), alive)
    if not isinstance(decision, UpToDate):
        tables.check_targets(decision)
        later.check_run(decision)
    return decision


def with_all_reasons(root: Path, tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, with what else the user should know of the branch and the feed."""
    return _with_refused_landing(
        root, job, _with_removed(root, tables, job, request, _with_changes(tables, job, request, done))
    )


def _with_changes(tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, with the changes since the checkpoint that the next run will accept."""
    branch = tables.state(job.name).branch(request.branch)
    changed = changes_since(branch, job.binding)
    if not changed or branch.head is None or branch.is_sealed:
        return done
    needs_option = not is_accepted_code(branch, job.binding, changed, request)
    return UpToDateButChanged(done.reason, branch.head.spec.name, tuple(changed), needs_option)


def _with_removed(root: Path, tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, and whether the branch has replayed rows of runs that another job no longer has."""
    feed = job.feed.definition.feed
    of = replayed_removed(root, tables, feed, tables.state(job.name).branch(request.branch).last_epoch)
    if not of:
        return done
    replayed = f"The branch has replayed rows of runs that {of} no longer has: `rewindow land {feed}` says how to land them again"
    return replace(done, reason=done.reason.followed(f". {replayed}"))


def _with_refused_landing(root: Path, job: Job, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, and what is wrong with the feed's file: nothing more is landed until it is repaired."""
    feed = job.feed.definition.feed
    try:
        load_feed(root, feed)
    except RewindowError as error:
        return replace(done, reason=done.reason.followed(f". The next landing of {feed} is refused: {error}"))
    return done
