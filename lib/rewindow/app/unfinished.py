"""What is left after a branch's last run: an attempt that did not commit, and results that wait. The same for every command.

The ledger does not say how an attempt ended. Its heartbeat does: a process that ends by itself removes it, whatever its error,
and one that was killed leaves it.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewindow.config.load import load_feed
from rewindow.control.health.findings import Unfinished
from rewindow.control.health.inputs import FeedRules, Inputs, Unknown, known
from rewindow.control.health.waiting_results import stalled
from rewindow.control.heartbeat import was_killed

if TYPE_CHECKING:
    from rewindow.control.ingest.landings import Feed
    from rewindow.control.plan.job_state import Branch
    from rewindow.control.plan.spec import Attempt, RunSpec
    from rewindow.tables.shared.warehouse import Warehouse


def unfinished(
    warehouse: str, attempt: Attempt, *, in_catalog: bool = False, planned_ms: int | None = None
) -> Unfinished:
    """Return what is known of an attempt that shows no life.

    With tables ``in_catalog``, hosts usually do not share the folder of heartbeats: one on another host may be alive.
    """
    is_killed = was_killed(warehouse, attempt)
    has_ended = not in_catalog or _is_here(attempt) or is_killed
    return Unfinished(process_of(attempt), is_killed, has_ended=has_ended, planned_ms=planned_ms)


def process_of(attempt: Attempt) -> str:
    """Return the process of an attempt as people read it."""
    return f"process {attempt.pid} on {'this host' if _is_here(attempt) else attempt.host}"


def _is_here(attempt: Attempt) -> bool:
    return attempt.host in {"", socket.gethostname()}


def killed_hint(warehouse: str, planned: RunSpec | None, again: str) -> str | None:
    """Return what to do about a planned run whose process was killed; None if its attempt is alive or ended by itself."""
    attempt = unfinished(warehouse, planned.attempt) if planned else None
    return attempt.hint(again) if attempt and attempt.was_killed else None


def rules_of(root: Path, feed: str) -> FeedRules | Unknown:
    """Return what a feed's file says of its watermark and logs."""
    spec = known(lambda: load_feed(root, feed))
    return spec if isinstance(spec, Unknown) else FeedRules(spec.lag_ms, frozenset(spec.logs))


def after_last_run(root: Path, tables: Warehouse, branch: Branch, feed: Feed, again: str) -> dict[str, Any]:
    """Return what is left after a branch's last run, as JSON values.

    ``ended``: how an unfinished attempt ended; ``again`` is the command that goes on. ``silent``: the results that wait for
    partitions without records; ``unknown`` says why these are not known.
    """
    pending = branch.pending
    ended = unfinished(tables.warehouse, pending.attempt).hint(f"Run it again: `{again}`") if pending else None
    waiting = stalled(_after_head(root, tables, branch, feed))
    if isinstance(waiting, Unknown):
        return {"ended": ended, "silent": [], "unknown": [{"about": "silent", "reason": waiting.reason}]}
    return {"ended": ended, "silent": [result.as_json() for result in waiting], "unknown": []}


def _after_head(root: Path, tables: Warehouse, branch: Branch, feed: Feed) -> Inputs:
    """Read what the tasks of a branch's last run reported. In a catalog that needs Spark, so it is not read."""
    head = branch.head
    if head is None:
        return Inputs(branch, feed, ())
    reports_of_head = known(lambda: tables.known_reports(head))
    if reports_of_head is None:
        reports_of_head = Unknown("in a catalog only `report` and `status` read task reports")
    reports = reports_of_head if isinstance(reports_of_head, Unknown) else {head.spec.run: reports_of_head}
    return Inputs(branch, feed, [head], rules=rules_of(root, feed.definition.feed), reports=reports)
