"""The adapter of a warehouse of files. It gives access to the tables of jobs and feeds, to repair and to garbage collection."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewindow.control.plan.planner import Alive
    from rewindow.tables.delta.feeds import DeltaFeedTables
    from rewindow.tables.delta.gc import FeedGc, JobGc
    from rewindow.tables.delta.repair import Repair
    from rewindow.tables.delta.warehouse import DeltaTables


class FileAdapter:
    """The adapter of a warehouse of files."""

    def __init__(self, tables: DeltaTables) -> None:
        """Create the adapter for the tables of jobs. Reads nothing."""
        self.tables = tables

    @cached_property
    def feeds(self) -> DeltaFeedTables:
        """The ledgers and logs of the feeds."""
        from rewindow.tables.delta.feeds import DeltaFeedTables

        return DeltaFeedTables(self.tables.warehouse, self.tables.landing_ledgers, self.tables.digest)

    def repair(self) -> Repair:
        """Return the operations on tables that `republish` needs."""
        from rewindow.tables.delta.repair import Repair

        return Repair(self.tables, self.tables.digest)

    def job_gc(self, job: str, alive: Alive) -> JobGc:
        """Return the garbage collection of a job. ``alive`` returns whether an attempt still runs."""
        from rewindow.tables.delta.gc import JobGc

        return JobGc(self.tables, job, alive)

    def feed_gc(self, feed: str, is_quiet: Callable[[], bool]) -> FeedGc:
        """Return the garbage collection of a feed. ``is_quiet`` returns whether no run that reads the feed is in progress."""
        from rewindow.tables.delta.gc import FeedGc

        return FeedGc(self.feeds, feed, is_quiet)
