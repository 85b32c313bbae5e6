"""The situation after a branch's last run: the next run, an unfinished attempt, results that wait.

The ledger does not say how an attempt ended, but the attempt's heartbeat file shows whether it was killed. A process that ends
by itself removes this file, with or without an error. A killed process leaves it. For tables in a catalog, some errors are
raised only by `run`, after it has planned.
"""

from __future__ import annotations

import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewindow.app.feed_rules import rules_of
from rewindow.app.removed_runs import replayed_removed
from rewindow.config.load import load_feed
from rewindow.control.health.findings import Unfinished
from rewindow.control.health.inputs import Inputs, Unknown, known
from rewindow.control.health.phrases import command_words
from rewindow.control.health.waiting_results import stalled
from rewindow.control.heartbeat import this_attempt, was_killed
from rewindow.control.plan.compatibility import check_landings_now, is_accepted_code
from rewindow.control.plan.job_diff import changes_since
from rewindow.control.plan.planner import Alive, UpToDate, UpToDateButChanged, plan_run
from rewindow.errors import RewindowError, naming

if TYPE_CHECKING:
    from rewindow.control.ingest.landings import Feed
    from rewindow.control.plan.job_state import Branch, JobState
    from rewindow.control.plan.spec import Attempt, RunRequest, RunSpec
    from rewindow.control.run import Job
    from rewindow.tables.shared.warehouse import Warehouse


def next_run(tables: Warehouse, job: Job, state: JobState, request: RunRequest, alive: Alive) -> RunSpec | UpToDate:
    """Return the next run. Changes nothing. Raises every error that `run` would raise before it executes."""
    later = tables.later_refusals(job, state)
    with naming(JOB=command_words(job.name, request.branch), FEED=job.feed.definition.feed):
        later.check_published(request.branch)
        if request.through_landing is None:
            check_landings_now(state.branch(request.branch), job.feed, tables.feed)
    decision = plan_run(state, job.feed, request, job.binding, this_attempt(), alive)
    if not isinstance(decision, UpToDate):
        tables.check_targets(decision)
        later.check_run(decision)
    return decision


def with_all_reasons(root: Path, tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Add to the reason of ``done`` what else the user should know about the branch and the feed. Return the result.

    ``done`` is the result of a run for which there is nothing to do.
    """
    return _with_refused_landing(
        root, job, _with_removed(root, tables, job, request, _with_changes(tables, job, request, done))
    )


def _with_changes(tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return ``done``.

    If the code has changed since the checkpoint and another run is possible, the result lists the changes.
    """
    branch = tables.state(job.name).branch(request.branch)
    changed = changes_since(branch, job.binding)
    if not changed or branch.head is None or branch.is_sealed:
        return done
    needs_option = not is_accepted_code(branch, job.binding, changed, request)
    return UpToDateButChanged(done.reason, branch.head.spec.name, tuple(changed), needs_option)


def _with_removed(root: Path, tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return ``done``, with a note in its reason if the branch replayed rows of another job's runs that were since removed."""
    feed = job.feed.definition.feed
    of = replayed_removed(root, tables, feed, tables.state(job.name).branch(request.branch).last_epoch)
    if not of:
        return done
    replayed = f"The branch has replayed rows of runs that {of} no longer has: `rewindow land {feed}` says how to land them again"
    return replace(done, reason=done.reason.followed(f". {replayed}"))


def _with_refused_landing(root: Path, job: Job, done: UpToDate) -> UpToDate:
    """Return ``done``, with a note in its reason if the feed's file is invalid, because the next landing would be refused."""
    feed = job.feed.definition.feed
    try:
        load_feed(root, feed)
    except RewindowError as error:
        return replace(done, reason=done.reason.followed(f". The next landing of {feed} is refused: {error}"))
    return done


def unfinished(
    warehouse: str, attempt: Attempt, *, in_catalog: bool = False, planned_ms: int | None = None
) -> Unfinished:
    """Return what is known about an attempt without a recent heartbeat.

    ``in_catalog`` says whether a catalog governs the tables. In that case, hosts usually do not share the folder of heartbeats,
    so an attempt on another host may be alive. ``planned_ms`` says when the attempt planned its run (epoch ms).
    """
    is_killed = was_killed(warehouse, attempt)
    has_ended = not in_catalog or _is_here(attempt) or is_killed
    return Unfinished(process_of(attempt), is_killed, has_ended=has_ended, planned_ms=planned_ms)


def process_of(attempt: Attempt) -> str:
    """Return the process id and host of an attempt, in words."""
    return f"process {attempt.pid} on {'this host' if _is_here(attempt) else attempt.host}"


def _is_here(attempt: Attempt) -> bool:
    return attempt.host in {"", socket.gethostname()}


def killed_hint(warehouse: str, planned: RunSpec) -> str | None:
    """Return advice for `run` about a planned run whose process was killed; None if its attempt is alive or ended by itself."""
    attempt = unfinished(warehouse, planned.attempt)
    return attempt.hint("This command takes its place") if attempt.was_killed else None


def after_last_run(root: Path, tables: Warehouse, branch: Branch, feed: Feed, again: str) -> dict[str, Any]:
    """Return what is left to do after a branch's last run, as JSON values.

    ``ended`` says how an unfinished attempt ended, and names the command ``again``, which completes the attempt's run.
    ``silent`` has the results that wait for partitions without new records. If these results are unknown, ``unknown`` says why.
    """
    pending = branch.pending
    ended = unfinished(tables.warehouse, pending.attempt).hint(f"Run it again: `{again}`") if pending else None
    waiting = stalled(_after_head(root, tables, branch, feed))
    if isinstance(waiting, Unknown):
        return {"ended": ended, "silent": [], "unknown": [{"about": "silent", "reason": waiting.reason}]}
    return {"ended": ended, "silent": [result.as_json() for result in waiting], "unknown": []}


def _after_head(root: Path, tables: Warehouse, branch: Branch, feed: Feed) -> Inputs:
    """Return inputs with the reports of a branch's last run.

    In a catalog, reading them would need Spark, so they stay unknown.
    """
    head = branch.head
    if head is None:
        return Inputs(branch, feed, ())
    reports_of_head = known(lambda: tables.known_reports(head))
    if reports_of_head is None:
        reports_of_head = Unknown("in a catalog only `report` and `status` read task reports")
    reports = reports_of_head if isinstance(reports_of_head, Unknown) else {head.spec.run: reports_of_head}
    return Inputs(branch, feed, [head], partial(rules_of, root, feed.definition.feed), reports)
