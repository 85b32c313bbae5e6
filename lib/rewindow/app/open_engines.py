"""Open what executes landings and runs on a target: Spark behind Arrow, or Spark alone where a catalog governs the tables.

The Spark session is local, on a cluster, or behind Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rewindow.config.target import PLATFORM, TargetConfig
from rewindow.contracts.landing import LandingEngine
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import Execution
from rewindow.control.run import Engine
from rewindow.tables.delta.commit import takes_shared_files
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.shared.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.contracts.ingest import LogWrite
    from rewindow.contracts.landing import Block
    from rewindow.engine.spark.spark_landing import SparkPasses
    from rewindow.engine.worker.landing.source import ArrowSource
    from rewindow.engine.worker.text.blocks import Part
    from rewindow.engine.worker.text.reading import PartRead, TextRead
    from rewindow.tables.governed.feeds import CatalogFeedTables
    from rewindow.tables.governed.warehouse import CatalogTables


EXCHANGE = "rewindow/_text"
"""The folder of tokenized text that workers of other machines share, below the warehouse."""


def open_landing_engine(
    tables: DeltaFeedTables | CatalogFeedTables,
    spark: Callable[[], SparkSession],
    *,
    root: str,
    slots: int,
    most_rows: int,
    on_share: Callable[[float], None],
    on_other: Callable[[str], None],
    is_remote: bool = False,
) -> LandingEngine:
    """Return the engine. Spark starts when it reads the first row.

    ``most_rows`` is the number of rows of a source that this process lands without Spark, ``slots`` that of Spark's tasks.
    ``on_other`` gets what Spark does, and why. ``is_remote``: its workers are on other machines.
    """
    if isinstance(tables, DeltaFeedTables):
        from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine  # noqa: PLC0415 - loads pyarrow

        # Loading pyspark takes a third of a small landing, which needs neither.
        def other() -> LandingEngine:
            from rewindow.engine.spark.spark_landing import SparkLandingEngine  # noqa: PLC0415

            return SparkLandingEngine(spark, project_root=root, on_share=on_share)

        def passes() -> SparkPasses:
            from rewindow.engine.spark.spark_landing import SparkPasses  # noqa: PLC0415

            return SparkPasses(spark, slots=slots, project_root=root, on_share=on_share)

        def schedule(write: LogWrite, source: ArrowSource) -> list[Block]:
            return passes()(write, source)

        def on_workers(read: TextRead, parts: Sequence[Part], folder: str) -> list[PartRead]:
            return passes().read(read, parts, folder)

        return ArrowLandingEngine(
            other,
            schedule,
            project_root=root,
            most_rows=most_rows,
            on_share=on_share,
            on_other=on_other,
            on_workers=on_workers,
            shared_folder=f"{tables.warehouse}/{EXCHANGE}" if is_remote else None,
        )
    from rewindow.tables.governed.landing_engine import CatalogArrowEngine, CatalogLandingEngine  # noqa: PLC0415

    governed = CatalogLandingEngine(spark, tables.journal, tables.name_of, project_root=root, on_share=on_share)
    return CatalogArrowEngine(governed, tables.journal, most_rows=most_rows, on_share=on_share)


def open_inline_engine(
    target: TargetConfig,
    tables: Warehouse,
    spark: Callable[[], Engine],
    *,
    on_share: Callable[[float], None],
    on_task: Callable[[TaskReport], None],
    on_other: Callable[[str], None],
) -> Engine:
    """Return the engine that executes small sub-topologies in this process and leaves the others to ``spark``.

    ``on_other`` gets what it leaves to Spark, and why.
    """
    execution = Execution(target.execution)
    if target.commit == "spark":
        from rewindow.tables.governed.inline import CatalogInlineEngine  # noqa: PLC0415 - loads pyspark

        governed = cast("CatalogTables", tables)
        # Spark is already running: reading the ledgers started it. So `on_other` has nothing to say.
        return CatalogInlineEngine(spark, governed, most=target.most_inline, execution=execution, on_task=on_task)
    from rewindow.engine.worker.local import InlineEngine  # noqa: PLC0415 - loads pyarrow

    return InlineEngine(
        spark,
        most=target.most_inline,
        execution=execution,
        on_task=on_task,
        on_share=on_share,
        on_other=on_other,
        is_shareable=takes_shared_files,
    )


def open_spark_engine(
    target: TargetConfig,
    tables: Warehouse,
    spark: SparkSession,
    *,
    root: str,
    slots: int,
    on_share: Callable[[float], None],
    on_task: Callable[[TaskReport], None],
) -> Engine:
    """Return an engine that executes everything on Spark, with tasks in ``slots`` groups."""
    from rewindow.engine.spark.spark_engine import SparkEngine  # noqa: PLC0415 - Spark only where it is needed

    execution = Execution(target.execution)
    if target.commit == "spark":
        from rewindow.tables.governed.engine import RowsEngine  # noqa: PLC0415

        journal_of = cast("CatalogTables", tables).journal
        return RowsEngine(spark, journal_of, slots=slots, import_paths=[root], execution=execution)
    return SparkEngine(spark, slots=slots, import_paths=[root], execution=execution, on_share=on_share, on_task=on_task)


def open_session(root: Path, target: TargetConfig, cores: int, *, debug: bool = False) -> SparkSession:
    """Start or join the Spark session of a target. Raises `ConfigError` (78) if that fails.

    Raises `NotNowError` (75) if Spark commits on a local disk and another process is doing so now.
    """
    session = _session(root, target, cores, debug=debug)
    if target.commit == "spark" and not target.connect:
        from rewindow.tables.governed.lock import hold_local_disk  # noqa: PLC0415

        hold_local_disk(str(session.conf.get("spark.sql.warehouse.dir")))
    return session


def starting_spark(target: TargetConfig, reasons: Sequence[str]) -> str:
    """Return a line that says that Spark starts now, and why, as far as that is known: for the last of some reasons."""
    if reasons:
        return f"starting Spark to {reasons[-1]}"
    if target.commit == "spark":
        return "starting Spark to use the tables of the catalog"
    if target.is_remote:
        return f"starting Spark: the target {target.target!r} leaves all work to a cluster"
    if target.most_inline:
        return "starting Spark"
    default = "" if target.inline == 0 else ", the default for a warehouse in a bucket"
    return f"starting Spark: the target {target.target!r} says `inline: 0`{default}"


def _session(root: Path, target: TargetConfig, cores: int, *, debug: bool) -> SparkSession:
    from rewindow.engine.spark.session import cluster_session, local_session  # noqa: PLC0415 - Spark only where it is needed
    from rewindow.engine.spark.shipping import shipped  # noqa: PLC0415

    conf = dict(target.spark)
    if target.connect:
        from rewindow.engine.spark.connect import connect_session  # noqa: PLC0415

        ships = shipped(root, target.ships, itself=target.connect == PLATFORM)
        return connect_session(target.connect, cores=cores, conf=conf, ships=ships)
    if target.master:
        ships = shipped(root, target.ships)
        return cluster_session(target.master, cores=cores, conf=conf, ships=ships, debug=debug)
    return local_session(cores=cores, conf=conf, python_path=[root], debug=debug)
