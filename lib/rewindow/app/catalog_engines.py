"""Open what executes landings and runs of a target whose tables a catalog governs: this process for small work, else Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rewindow.app.open_engines import Setting
from rewindow.contracts.landing import LandingEngine
from rewindow.control.run import Engine
from rewindow.tables.governed.adapter import CatalogAdapter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CatalogEngines:
    """The engines of a target whose tables a catalog governs. Reading the ledgers has started Spark before any work."""

    needs: Sequence[str] = ("use the tables of the catalog",)

    def __init__(self, setting: Setting, adapter: CatalogAdapter) -> None:
        """Nothing is started."""
        self._of, self._adapter = setting, adapter

    def landing(self, spark: Callable[[], SparkSession], _slots: int) -> LandingEngine:
        """See `Engines.landing`."""
        from rewindow.tables.governed.landing_engine import CatalogArrowEngine, CatalogLandingEngine  # noqa: PLC0415

        of, feeds = self._of, self._adapter.feeds
        rows = CatalogLandingEngine(spark, feeds.journal, feeds.name_of, project_root=of.root, on_share=of.on_share)
        return CatalogArrowEngine(rows, feeds.journal, most_rows=of.target.most_landed_here, on_share=of.on_share)

    def inline(self, other: Callable[[], Engine]) -> Engine:
        """See `Engines.inline`."""
        from rewindow.tables.governed.inline import CatalogInlineEngine  # noqa: PLC0415 - loads the engine

        of, tables = self._of, self._adapter.tables
        return CatalogInlineEngine(
            other, tables, most=of.target.most_inline, execution=of.execution, on_task=of.on_task
        )

    def on_spark(self, session: SparkSession, slots: int) -> Engine:
        """See `Engines.on_spark`."""
        from rewindow.tables.governed.engine import RowsEngine  # noqa: PLC0415 - loads the engine

        of, journal_of = self._of, self._adapter.tables.journal
        return RowsEngine(session, journal_of, slots=slots, import_paths=[of.root], execution=of.execution)

    def begin(self, session: SparkSession) -> None:
        """Hold the tables' folder on a local disk, where only one JVM may commit. A Spark Connect server is one for all."""
        if not self._of.target.connect:
            from rewindow.tables.governed.commit import hold_local_disk  # noqa: PLC0415

            hold_local_disk(str(session.conf.get("spark.sql.warehouse.dir")))
