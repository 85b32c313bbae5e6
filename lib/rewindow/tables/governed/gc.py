"""The garbage collection of jobs and feeds in a catalog. It deletes blocks and reports from the journal. Ledger rows stay.

Rows are deleted with DELETE statements, which can be repeated. The platform's VACUUM deletes the files that had the rows, after
its own retention.

Landed blocks of feeds stay, because small runs read them, and logs are published from them. The files of logs are merged by the
platform's OPTIMIZE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from rewindow.control.garbage_collection import UNKNOWN_MS, Garbage
from rewindow.control.ingest.feed_progress import fold_progress
from rewindow.control.ingest.landings import LANDING, PLAN
from rewindow.control.plan.job_fold import fold_row
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import Alive
from rewindow.control.plan.retention import WHY, Needed, dead_attempts, is_state
from rewindow.tables.governed.feeds import CatalogFeedTables
from rewindow.tables.governed.journal import JournalRows, is_report
from rewindow.tables.governed.own_rows import feed_name
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.ledger import check_stored, now_ms
from rewindow.tables.shared.stored_feeds import check_stored_feed


class CatalogJobGc:
    """The rows of one job in the journal."""

    def __init__(self, tables: CatalogTables, job: str, alive: Alive) -> None:
        """Create the garbage collection of a job. ``alive`` returns whether an attempt still runs."""
        self._tables, self._job, self._alive = tables, job, alive
        self._rows = JournalRows(tables.own.table, job)

    def drop_reports(self) -> int:
        """Delete the reports and metrics of dead attempts in one commit; return the number of these attempts."""
        reports = self._dead_reports()
        if reports:
            self._rows.delete([f"{attempt}/{part}" for attempt, part in reports])
        return len({attempt for attempt, _ in reports})

    def dead_reports(self) -> int:
        """Return the number of attempts whose reports `drop_reports` would delete."""
        return len({attempt for attempt, _ in self._dead_reports()})

    def _dead_reports(self) -> list[tuple[str, str]]:
        # The journal is listed before the ledger is read. So an attempt that the ledger does not name cannot be new.
        listed = self._rows.listed()
        dead = dead_attempts(self._tables.state(self._job))
        return [(item.attempt, item.part) for item in listed if item.attempt in dead and is_report(item.part)]

    def due(self, _least: int) -> int:
        """Return 0, because the platform merges the files of outputs (OPTIMIZE)."""
        return 0

    def merge(self, _least: int) -> Iterator[str | tuple[int, int]]:
        """Merge nothing; see `due`."""
        yield from ()

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield the rows that can be deleted now. All are found before the first is yielded."""
        yield from self.freed((), keep_ms)

    def freed(self, ahead: Sequence[LedgerRow], keep_ms: int) -> Iterator[Garbage]:
        """Yield the rows that could be deleted if the rows ``ahead`` were in the ledger, too."""
        listed = self._rows.listed()
        rows = self._tables.ledger_rows(self._job)
        check_stored(self._job, rows)
        state, now = reduce(fold_row, ahead, self._tables.state(self._job)), now_ms()
        rows = [*rows, *(replace(row, recorded_at=now - 1) for row in ahead)]
        dead, needed = dead_attempts(state), Needed(rows, state, now - keep_ms)
        is_quiet, oldest = self._is_quiet(state), now - max(keep_ms, UNKNOWN_MS)
        garbage = [
            (item, "of an attempt that did not finish")
            for item in listed
            if item.attempt in dead and not is_report(item.part)
        ]
        others = [item for item in listed if item.attempt not in dead]
        garbage += [
            (item, "of an unknown attempt")
            for item in others
            if not needed.is_known(item.attempt) and item.recorded_at < oldest
        ]
        left = [
            item
            for item in others
            if needed.is_known(item.attempt)
            and not needed.has(item.attempt, item.part)
            and (is_quiet or not is_state(item.part))
        ]
        due = self._tables.unpublished(self._job, state, {item.attempt for item in left})
        garbage += [(item, WHY[item.part]) for item in left if item.attempt not in due]
        yield from list(self._rows.garbage(sorted(garbage)))

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete rows of the journal, if they are still there."""
        self._rows.delete([item.path for item in garbage])

    def compact_ledger(self) -> None:
        """Merge the files with the job's rows."""
        self._rows.merge_files()

    def _is_quiet(self, state: JobState) -> bool:
        """Return whether no run with a plan in the ledger is in progress. Such a run may read state that `gc` would delete.

        A plan that another process holds in memory is not known here. Its run fails when it appends the plan (75), because
        `gc` has appended to the ledger in the meantime.
        """
        plans = [branch.pending for branch in state.branches.values() if branch.pending]
        return not any(self._alive(plan.attempt) for plan in plans)


class CatalogFeedGc:
    """The rows of one feed in the journal."""

    def __init__(self, tables: CatalogFeedTables, feed: str) -> None:
        """Bind to a feed. Nothing is read."""
        self._tables, self._feed = tables, feed
        self._rows = JournalRows(tables.journal_table, feed_name(feed))

    def topics(self) -> list[str]:
        """Return no topics, because the platform takes care of the files of logs."""
        return []

    def drop_replaced(self, keep_ms: int) -> Iterator[str]:  # noqa: ARG002 - nothing is dropped
        """Drop nothing, because landed rows stay."""
        return iter(())

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:  # noqa: ARG002 - no topic is named
        """Merge nothing."""
        return iter(())

    def due(self) -> int:
        """Return 0, because `compact` merges nothing."""
        return 0

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield the rows that can be deleted now. All are found before the first is yielded."""
        # The journal is listed before the ledger is read. The ledger names a landing before the landing's workers append rows.
        # So an attempt that the ledger does not name cannot be new.
        listed = self._rows.listed()
        rows, oldest = self._tables.state(self._feed), now_ms() - max(keep_ms, UNKNOWN_MS)
        check_stored_feed(self._feed, rows)
        dead = fold_progress(rows).dead
        attempts = {row.body["attempt"]["id"] for row in rows if row.kind == PLAN}
        attempts |= {row.body["attempt"] for row in rows if row.kind == LANDING}
        garbage = [(item, "of a landing that did not finish") for item in listed if item.attempt in dead]
        garbage += [
            (item, "of an unknown attempt")
            for item in listed
            if item.attempt not in attempts and item.recorded_at < oldest
        ]
        yield from list(self._rows.garbage(garbage))

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete rows of the journal, if they are still there."""
        self._rows.delete([item.path for item in garbage])

    def compact_ledger(self) -> None:
        """Merge the files with the feed's rows."""
        self._rows.merge_files()
