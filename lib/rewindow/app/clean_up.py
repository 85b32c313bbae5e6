"""The clean-up after a run. It does the part of `gc` that keeps every run to which a user can rewind.

For some seconds, it merges small files in the tables of the run's job and feed, and deletes files that nothing needs. The next
clean-up continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.app.failures import as_rewindow_error
from rewindow.config.load import names_of
from rewindow.control.garbage_collection import Tidied, tidy, tidy_feed
from rewindow.control.heartbeat import remove_abandoned
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.planner import Alive
from rewindow.control.run import CleanUp, RunReport
from rewindow.errors import HintMessage
from rewindow.tables.shared.warehouse import Warehouse

if TYPE_CHECKING:
    from rewindow.tables.delta.table_access import FileAdapter
    from rewindow.tables.governed.table_access import CatalogAdapter

_MOST_S = 10
"""For how many seconds a run may clean up. The last commit or the last deletion of a group of files may end later."""


def clean_up(
    adapter: FileAdapter | CatalogAdapter, root: Path, warehouse: str, report: RunReport, keep_ms: int, is_alive: Alive
) -> RunReport:
    """Clean up after a run, and return the run's report with what was cleaned up.

    An error becomes a hint of the report, because the run is already committed.
    """
    job, feed, began = report.spec.job, report.spec.binding.feed, time.monotonic()
    parts, hints = list[Tidied](), report.hints

    def is_over() -> bool:
        return time.monotonic() - began > _MOST_S

    try:
        remove_abandoned(warehouse, keep_ms)
        parts.append(drive(tidy(adapter.job_gc(job, is_alive), keep_ms=keep_ms, is_over=is_over)))
        of_feed = adapter.feed_gc(feed, no_run_reads(feed, root, adapter.tables, is_alive))
        parts.append(drive(tidy_feed(of_feed, keep_ms=keep_ms, is_over=is_over)))
    except Exception as error:  # noqa: BLE001 - the run has its result, whatever happens now
        hints = (
            *hints,
            HintMessage(
                "clean-up-failed",
                "The run is complete, but the clean-up after it failed: {why}. Files that nothing needs stay until a later run "
                "or `rewindow gc` deletes them",
                why=str(as_rewindow_error(error)),
            ),
        )
    deleted = [garbage for part in parts for garbage in part.deleted]
    cleaned = CleanUp(
        seconds=round(time.monotonic() - began, 3),
        merged=sum(part.merged for part in parts),
        into=sum(part.into for part in parts),
        deleted_files=len(deleted),
        deleted_bytes=sum(garbage.bytes for garbage in deleted),
    )
    return replace(report, cleaned=cleaned, hints=hints)


def no_run_reads(feed: str, root: Path, tables: Warehouse, is_alive: Alive) -> Callable[[], bool]:
    """Return a function that returns whether a feed is not read by any live run of the project."""

    def is_quiet() -> bool:
        states = [tables.state(job) for job in names_of(root, "jobs")]
        plans = [branch.pending for state in states for branch in state.branches.values() if branch.pending]
        return not any(plan.binding.feed == feed and is_alive(plan.attempt) for plan in plans)

    return is_quiet
