"""Open what executes landings and runs of a target whose tables are files: Arrow in this process, and Spark behind it.

`catalog_engines` has the same for tables of a catalog. The Spark session is local, on a cluster, or behind Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rewindow.config.target import PLATFORM, TargetConfig
from rewindow.contracts.tasks import Execution
from rewindow.tables.delta.commit import takes_shared_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.contracts.ingest import LogWrite
    from rewindow.contracts.landing import Block, LandingEngine
    from rewindow.contracts.staged_files import TaskReport
    from rewindow.control.run import Engine
    from rewindow.engine.spark.spark_landing import SparkPasses
    from rewindow.engine.worker.landing.source import ArrowSource
    from rewindow.engine.worker.text.blocks import Part
    from rewindow.engine.worker.text.reading import PartRead, TextRead


EXCHANGE = "rewindow/_text"
"""The folder of tokenized text that workers of other machines share, below the warehouse."""


@dataclass(frozen=True)
class Setting:
    """Where a target's work is executed, and who is told of it.

    ``root``: the project's folder. ``on_share`` gets the share of a landing or run that is done, ``on_task`` each task's report,
    ``on_other`` what is left to Spark, and why.
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


class Engines(Protocol):
    """What executes the landings and runs of a target. ``spark`` returns the session, ``slots`` is the number of its tasks."""

    def landing(self, spark: Callable[[], SparkSession], slots: int) -> LandingEngine:
        """Return the engine of `land`. Spark starts when it reads the first row."""
        ...

    def inline(self, other: Callable[[], Engine]) -> Engine:
        """Return the engine that executes small sub-topologies in this process and leaves the others to ``other``."""
        ...

    def on_spark(self, session: SparkSession, slots: int) -> Engine:
        """Return an engine that executes everything on Spark."""
        ...

    def begin(self, session: SparkSession) -> None:
        """Make sure that this process may commit through a new session. Raises `NotNowError` (75) if another one does."""
        ...

    @property
    def needs(self) -> Sequence[str]:
        """What any command of the target starts Spark for; nothing if small work does without."""
        ...


class FileEngines:
    """The engines of a target whose tables are files."""

    needs: Sequence[str] = ()

    def __init__(self, setting: Setting, warehouse: str) -> None:
        """Nothing is started."""
        self._of, self._warehouse = setting, warehouse

    def landing(self, spark: Callable[[], SparkSession], slots: int) -> LandingEngine:
        """See `Engines.landing`."""
        from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine  # noqa: PLC0415 - loads pyarrow

        of = self._of

        # Loading pyspark takes a third of a small landing, which needs neither.
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
        """See `Engines.inline`."""
        from rewindow.engine.worker.local import InlineEngine  # noqa: PLC0415 - loads pyarrow

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
        """See `Engines.on_spark`."""
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
        """Do nothing: delta-rs commits."""


def starting_spark(target: TargetConfig, reasons: Sequence[str]) -> str:
    """Return a line that says that Spark starts now, and why, as far as that is known: for the last of some reasons."""
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
    """Start or join the Spark session of a target, and ``begin`` to use it. Raises `ConfigError` (78) if that fails."""
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
