"""Open the tables of a target: Delta tables in its warehouse, or tables governed by its catalog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rewindow.app.uncollected import UncollectedTables
from rewindow.config.job import JobConfig
from rewindow.config.mistakes import nearest
from rewindow.config.target import TargetConfig
from rewindow.engine.worker.digest import digest_of
from rewindow.errors import ConfigError
from rewindow.storage.locations import is_uri, use
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.gc_feed import FeedGc
from rewindow.tables.delta.gc_job import JobGc
from rewindow.tables.delta.repair import Repair
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.governed.names import output_name
from rewindow.tables.shared.paths import output_path
from rewindow.tables.shared.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.control.plan.planner import Alive
    from rewindow.tables.governed.feeds import CatalogFeedTables
    from rewindow.tables.governed.gc_feed import CatalogFeedGc
    from rewindow.tables.governed.gc_job import CatalogJobGc
    from rewindow.tables.governed.repair import CatalogRepair
    from rewindow.tables.governed.warehouse import CatalogTables

UNSAFE = ("/Volumes/", "/dbfs/")
"""File system mounts of object stores. They do not support put-if-absent."""


def warehouse_location(root: Path, target: TargetConfig) -> str:
    """Return the warehouse as a path or URI. Raises `ConfigError` (78) for storage without safe commits."""
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
    return str((root / location).absolute())


def open_tables(target: TargetConfig, warehouse: str, spark: Callable[[], SparkSession]) -> Warehouse:
    """Return the tables of jobs: committed by delta-rs, or governed by a catalog and committed through Spark."""
    if target.catalog is None:
        return UncollectedTables(warehouse, reads_directly=target.source == "auto")
    from rewindow.tables.governed.warehouse import CatalogTables  # noqa: PLC0415 - Spark only where it is needed

    return CatalogTables(spark, target.catalog, warehouse)


def open_feed_tables(
    target: TargetConfig, warehouse: str, tables: Warehouse, spark: Callable[[], SparkSession]
) -> DeltaFeedTables | CatalogFeedTables:
    """Return the ledgers and logs of feeds."""
    if target.catalog is None:
        ledgers = tables.landing_ledgers if isinstance(tables, DeltaTables) else None
        return DeltaFeedTables(warehouse, ledgers, digest_of)
    from rewindow.tables.governed.feeds import CatalogFeedTables  # noqa: PLC0415 - Spark only where it is needed

    return CatalogFeedTables(spark, cast("CatalogTables", tables))


def output_location(config: JobConfig, branch: str, catalog: str | None, topic: str) -> str:
    """Return where a job's branch writes the output of a topic. Raises `ConfigError` (78) for an undeclared output."""
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
        return output_name(output.table, branch, catalog.partition(".")[0])
    return output_path(output.table, branch)


def direct(tables: Warehouse, instead: str) -> DeltaTables:
    """Return tables whose files may be opened.

    Raises `ConfigError` (78) if a catalog governs them, which says what to do ``instead``.
    """
    if not isinstance(tables, DeltaTables):
        raise ConfigError(
            "table-files-governed",
            "this command opens the files of tables, which belong to the catalog with `commit: spark`: {fix}",
            fix=instead,
        )
    return tables


def open_repair(tables: Warehouse) -> Repair | CatalogRepair:
    """Return what `republish` knows of tables."""
    if isinstance(tables, DeltaTables):
        return Repair(tables, digest_of)
    from rewindow.tables.governed.repair import CatalogRepair  # noqa: PLC0415 - Spark only where it is needed

    return CatalogRepair(cast("CatalogTables", tables))


def open_job_gc(tables: Warehouse, job: str, alive: Alive) -> JobGc | CatalogJobGc:
    """Return the garbage collection of a job. ``alive`` returns whether an attempt still runs."""
    if isinstance(tables, DeltaTables):
        return JobGc(tables, job, alive)
    from rewindow.tables.governed.gc_job import CatalogJobGc  # noqa: PLC0415 - Spark only where it is needed

    return CatalogJobGc(cast("CatalogTables", tables), job, alive)


def open_feed_gc(
    tables: DeltaFeedTables | CatalogFeedTables, feed: str, is_quiet: Callable[[], bool]
) -> FeedGc | CatalogFeedGc:
    """Return the garbage collection of a feed. ``is_quiet`` returns whether no run is in progress that reads it."""
    if isinstance(tables, DeltaFeedTables):
        return FeedGc(tables, feed, is_quiet)
    from rewindow.tables.governed.gc_feed import CatalogFeedGc  # noqa: PLC0415 - Spark only where it is needed

    return CatalogFeedGc(tables, feed)
