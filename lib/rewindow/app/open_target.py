"""Open the tables and the engines of a target: files that delta-rs commits, or tables that a catalog governs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.config.job import JobConfig
from rewindow.config.target import PLATFORM, TargetConfig
from rewindow.config.yaml_text import nearest
from rewindow.contracts.tasks import Execution
from rewindow.engine.worker.digest import digest_of
from rewindow.errors import ConfigError
from rewindow.storage.locations import is_uri, use
from rewindow.tables.delta.open_table import takes_shared_files
from rewindow.tables.delta.table_access import FileAdapter
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import output_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.contracts.ingest import LogWrite
    from rewindow.contracts.landing_protocol import Block, LandingEngine
    from rewindow.contracts.staged_files import TaskReport
    from rewindow.control.run import Engine
    from rewindow.engine.spark.spark_landing import SparkPasses
    from rewindow.engine.worker.landing.source_rows import ArrowSource
    from rewindow.engine.worker.text.file_text import Part
    from rewindow.engine.worker.text.reading import PartRead, TextRead
    from rewindow.tables.governed.table_access import CatalogAdapter

EXCHANGE = "rewindow/_text"
"""The folder below the warehouse in which workers on several machines share tokenized text."""


@dataclass(frozen=True)
class Setting:
    """Where a target's work is executed, and functions that observe the progress.

    ``root`` is the project's folder. ``on_share`` gets the fraction of a landing or run that is done. ``on_task`` gets the
    report of each task. ``on_other`` gets a text that says which work Spark does, and why.
    """

    target: TargetConfig
    root: str
    on_share: Callable[[float], None]
    on_task: Callable[[TaskReport], None]
    on_other: Callable[[str], None]

    @property
    def execution(self) -> Execution:
        """The execution mode of sub-topologies."""
        return Execution(self.target.execution)


class FileEngines:
    """The engines of a target whose tables are files."""

    needs: Sequence[str] = ()
    """The reasons, in words, why every command of the target starts Spark. There are none, because small work needs no
    Spark."""

    def __init__(self, setting: Setting, warehouse: str) -> None:
        """Keep the setting and the warehouse. Nothing is started."""
        self._of, self._warehouse = setting, warehouse

    def landing(self, spark: Callable[[], SparkSession], slots: int) -> LandingEngine:
        """Return the engine of `land`. It calls ``spark`` for the session only when Spark has to read rows."""
        from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine  # noqa: PLC0415 - loads pyarrow

        of = self._of

        # Only these functions import pyspark. A small landing does not need pyspark, whose import would take a third of its
        # time.
        def other() -> LandingEngine:
            from rewindow.engine.spark.spark_landing import SparkLandingEngine  # noqa: PLC0415

            return SparkLandingEngine(spark, project_root=of.root, on_share=of.on_share)

        def passes() -> SparkPasses:
            from rewindow.engine.spark.spark_landing import SparkPasses  # noqa: PLC0415

            return SparkPasses(spark, slots=slots, project_root=of.root, on_share=of.on_share)

        def schedule(write: LogWrite, source: ArrowSource) -> list[Block]:
            return passes()(write, source)

        def on_workers(read: TextRead, parts: Sequence[Part], folder: str) -> list[PartRead]:
            return passes().read(read, parts, folder)

        return ArrowLandingEngine(
            other,
            schedule,
            project_root=of.root,
            most_rows=of.target.most_landed_here,
            on_share=of.on_share,
            on_other=of.on_other,
            on_workers=on_workers,
            shared_folder=f"{self._warehouse}/{EXCHANGE}" if of.target.is_remote else None,
        )

    def inline(self, other: Callable[[], Engine]) -> Engine:
        """Return the engine that executes small sub-topologies in this process and leaves the others to ``other``."""
        from rewindow.engine.worker.local_engine import InlineEngine  # noqa: PLC0415 - loads pyarrow

        return InlineEngine(
            other,
            most=self._of.target.most_inline,
            execution=self._of.execution,
            on_task=self._of.on_task,
            on_share=self._of.on_share,
            on_other=self._of.on_other,
            is_shareable=takes_shared_files,
        )

    def on_spark(self, session: SparkSession, slots: int) -> Engine:
        """Return an engine that executes everything on Spark, as ``slots`` tasks at a time."""
        from rewindow.engine.spark.spark_engine import SparkEngine  # noqa: PLC0415 - Spark only where it is needed

        of = self._of
        return SparkEngine(
            session,
            slots=slots,
            import_paths=[of.root],
            execution=of.execution,
            on_share=of.on_share,
            on_task=of.on_task,
        )

    def begin(self, session: SparkSession) -> None:
        """Do nothing, because delta-rs commits, not Spark."""


def starting_spark(target: TargetConfig, reasons: Sequence[str]) -> str:
    """Return a line that says that Spark starts now. If there are ``reasons``, the line states the last one."""
    if reasons:
        return f"starting Spark to {reasons[-1]}"
    if target.is_remote:
        return f"starting Spark: the target {target.target!r} leaves all work to a cluster"
    if target.most_inline:
        return "starting Spark"
    default = "" if target.inline == 0 else ", the default for a warehouse in a bucket"
    return f"starting Spark: the target {target.target!r} says `inline: 0`{default}"


def open_session(
    root: Path, target: TargetConfig, cores: int, *, begin: Callable[[SparkSession], None], debug: bool = False
) -> SparkSession:
    """Start or join the Spark session for the engines of a target, and call ``begin`` with it.

    Raises `ConfigError` (78) if that fails.
    """
    session = _session(root, target, cores, debug=debug)
    begin(session)
    return session


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


class CatalogEngines:
    """The engines of a target whose tables a catalog governs.

    Spark is already running when they are used, because reading the ledgers has started it.
    """

    needs: Sequence[str] = ("use the tables of the catalog",)

    def __init__(self, setting: Setting, adapter: CatalogAdapter) -> None:
        """Keep the setting and the adapter. Nothing is started."""
        self._of, self._adapter = setting, adapter

    def landing(self, spark: Callable[[], SparkSession], _slots: int) -> LandingEngine:
        """Return the engine of `land`; see `FileEngines.landing`."""
        from rewindow.tables.governed.landing_engine import CatalogArrowEngine, CatalogLandingEngine  # noqa: PLC0415

        of, feeds = self._of, self._adapter.feeds
        rows = CatalogLandingEngine(spark, feeds.journal, feeds.name_of, project_root=of.root, on_share=of.on_share)
        return CatalogArrowEngine(rows, feeds.journal, most_rows=of.target.most_landed_here, on_share=of.on_share)

    def inline(self, other: Callable[[], Engine]) -> Engine:
        """Return the engine of runs; see `FileEngines.inline`."""
        from rewindow.tables.governed.inline_engine import CatalogInlineEngine  # noqa: PLC0415 - loads the engine

        of, tables = self._of, self._adapter.tables
        return CatalogInlineEngine(
            other, tables, most=of.target.most_inline, execution=of.execution, on_task=of.on_task
        )

    def on_spark(self, session: SparkSession, slots: int) -> Engine:
        """Return an engine that executes everything on Spark; see `FileEngines.on_spark`."""
        from rewindow.tables.governed.rows_engine import RowsEngine  # noqa: PLC0415 - loads the engine

        of, journal_of = self._of, self._adapter.tables.journal
        return RowsEngine(session, journal_of, slots=slots, import_paths=[of.root], execution=of.execution)

    def begin(self, session: SparkSession) -> None:
        """If the folder of the tables is on a local disk, lock it, because only one JVM may commit there."""
        # All clients of a Spark Connect server share its JVM.
        if not self._of.target.connect:
            from rewindow.tables.governed.commit import hold_local_disk  # noqa: PLC0415

            hold_local_disk(str(session.conf.get("spark.sql.warehouse.dir")))


UNSAFE = ("/Volumes/", "/dbfs/")
"""Where object stores are mounted as file systems. These mounts do not support put-if-absent."""


def warehouse_location(root: Path, target: TargetConfig) -> str:
    """Return the warehouse as a path or URI.

    Raises `ConfigError` (78) for storage without safe commits, and for a root folder.
    """
    location = target.warehouse.removeprefix("file://")
    if is_uri(location):
        use(location, target.storage_options)
        return location.rstrip("/")
    if location.startswith(UNSAFE):
        raise ConfigError(
            "warehouse-is-mounted-bucket",
            "warehouse: {warehouse} is an object store mounted as a file system, which does not support "
            "put-if-absent. Use the bucket's URI (s3://...), a folder on a shared disk, or governed tables "
            "(`commit: spark`)",
            warehouse=target.warehouse,
        )
    folder = (root / location).absolute()
    if folder == Path(folder.anchor):
        raise ConfigError(
            "warehouse-is-root",
            "warehouse: {warehouse} is the root of the file system: name a folder of its own, such as /data/warehouse",
            warehouse=target.warehouse,
        )
    return str(folder)


def open_adapter(
    setting: Setting, warehouse: str, spark: Callable[[], SparkSession]
) -> tuple[FileAdapter | CatalogAdapter, FileEngines | CatalogEngines]:
    """Return the adapter for a target's tables, and its engines.

    Tables are either files that delta-rs commits, or tables that a catalog governs and Spark commits. Only this function
    decides which.
    """
    target = setting.target
    if target.catalog is None:
        tables = DeltaTables(warehouse, reads_directly=target.source == "auto", digest=digest_of)
        return FileAdapter(tables), FileEngines(setting, warehouse)
    from rewindow.tables.governed.table_access import CatalogAdapter  # noqa: PLC0415 - Spark only where it is needed
    from rewindow.tables.governed.warehouse import CatalogTables  # noqa: PLC0415

    adapter = CatalogAdapter(spark, CatalogTables(spark, target.catalog, warehouse))
    return adapter, CatalogEngines(setting, adapter)


def output_location(config: JobConfig, branch: str, catalog: str | None, topic: str) -> str:
    """Return the location of the table to which a job's branch writes an output.

    Raises `ConfigError` (78) for an undeclared output.
    """
    output = config.outputs.get(topic)
    if output is None:
        near = nearest(topic, list(config.outputs))
        rename = f"rename `{near}`, or " if near else ""
        raise ConfigError(
            "output-not-declared",
            "the topology writes to {topic!r}: {hint}add it to `outputs:`",
            topic=topic,
            hint=rename,
        )
    if catalog is not None:
        from rewindow.tables.governed.names import output_name  # noqa: PLC0415 - few targets have a catalog

        return output_name(output.table, branch, catalog.partition(".")[0])
    return output_path(output.table, branch)
