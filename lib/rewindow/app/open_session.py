"""Open the Spark session of a target: local, on a cluster, or through Spark Connect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.config.target import PLATFORM, TargetConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
