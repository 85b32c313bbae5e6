"""The adapter of a catalog's tables. It gives access to the tables of jobs and feeds, to repair and to garbage collection."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from rewindow.tables.governed.feeds import CatalogFeedTables
from rewindow.tables.governed.warehouse import CatalogTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.control.plan.planner import Alive
    from rewindow.tables.governed.gc import CatalogFeedGc, CatalogJobGc
    from rewindow.tables.governed.repair import CatalogRepair


class CatalogAdapter:
    """The adapter of the tables of a catalog."""

    def __init__(self, spark: Callable[[], SparkSession], tables: CatalogTables) -> None:
        """Bind to the tables of jobs. Reads nothing."""
        self.tables, self._spark_of = tables, spark

    @cached_property
    def feeds(self) -> CatalogFeedTables:
        """The ledgers and logs of the feeds."""
        return CatalogFeedTables(self._spark_of, self.tables)

    def repair(self) -> CatalogRepair:
        """Return the operations on tables that `republish` needs."""
        from rewindow.tables.governed.repair import CatalogRepair  # noqa: PLC0415 - only some commands repair

        return CatalogRepair(self.tables)

    def job_gc(self, job: str, alive: Alive) -> CatalogJobGc:
        """Return the garbage collection of a job. ``alive`` returns whether an attempt still runs."""
        from rewindow.tables.governed.gc import CatalogJobGc  # noqa: PLC0415 - only `gc` collects

        return CatalogJobGc(self.tables, job, alive)

    def feed_gc(self, feed: str, _is_quiet: Callable[[], bool]) -> CatalogFeedGc:
        """Return the garbage collection of a feed, which deletes nothing that a run reads."""
        from rewindow.tables.governed.gc import CatalogFeedGc  # noqa: PLC0415 - only `gc` collects

        return CatalogFeedGc(self.feeds, feed)
