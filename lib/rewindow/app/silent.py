"""What is left after a branch's last run: an attempt that ended without a commit, and results that wait for silent partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewindow.app.unfinished import ended_hint
from rewindow.config.load import load_feed
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branches import Branch
from rewindow.errors import RewindowError
from rewindow.report.material import FeedRules, Material
from rewindow.report.silent import silent_partitions
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.warehouse import Warehouse


def rules_of(root: Path, feed: str) -> FeedRules:
    """Return what a feed's file says of its watermark and logs; nothing if the file cannot be read."""
    try:
        spec = load_feed(root, feed)
    except RewindowError:  # the next command that needs the file says what is wrong with it
        return FeedRules()
    return FeedRules(spec.lag_ms, frozenset(spec.logs))


def after_last_run(root: Path, tables: Warehouse, branch: Branch, feed: Feed, again: str) -> dict[str, Any]:
    """Return how an unfinished attempt ended (``again``: the command that goes on), and what waits for silent partitions."""
    ended = ended_hint(tables.warehouse, branch.pending, again) if branch.pending else None
    return {"ended": ended, "silent": _silent_after(root, tables, branch, feed)}


def _silent_after(root: Path, tables: Warehouse, branch: Branch, feed: Feed) -> list[dict[str, Any]]:
    """Return the results that wait for silent partitions, as JSON values.

    None for a warehouse that a catalog governs, where reading reports needs Spark, and if they cannot be read.
    """
    if branch.head is None or not isinstance(tables, DeltaTables):
        return []
    rules = rules_of(root, feed.definition.feed)
    found = Material.of_reports(branch, feed, [branch.head], tables.reports, rules=rules)
    try:
        return [one.as_json() for one in silent_partitions(found)]
    except RewindowError:
        return []
