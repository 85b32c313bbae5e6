"""Open the tables of a target: Delta tables in its warehouse, or tables governed by its catalog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.app.open_engines import Engines, FileEngines, Setting
from rewindow.app.uncollected import UncollectedTables
from rewindow.config.job import JobConfig
from rewindow.config.target import TargetConfig
from rewindow.config.yaml_text import nearest
from rewindow.engine.worker.digest import digest_of
from rewindow.errors import ConfigError
from rewindow.storage.locations import is_uri, use
from rewindow.tables.delta.adapter import FileAdapter
from rewindow.tables.governed.names import output_name
from rewindow.tables.shared.paths import output_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.tables.governed.adapter import CatalogAdapter

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


def open_adapter(
    setting: Setting, warehouse: str, spark: Callable[[], SparkSession]
) -> tuple[FileAdapter | CatalogAdapter, Engines]:
    """Return the adapter of a target's tables and its engines.

    Tables are committed by delta-rs, or governed by a catalog and committed through Spark. Nothing else asks which.
    """
    target = setting.target
    if target.catalog is None:
        tables = UncollectedTables(warehouse, reads_directly=target.source == "auto", digest=digest_of)
        return FileAdapter(tables), FileEngines(setting, warehouse)
    from rewindow.app.catalog_engines import CatalogEngines  # noqa: PLC0415 - Spark only where it is needed
    from rewindow.tables.governed.adapter import CatalogAdapter  # noqa: PLC0415
    from rewindow.tables.governed.warehouse import CatalogTables  # noqa: PLC0415

    adapter = CatalogAdapter(spark, CatalogTables(spark, target.catalog, warehouse))
    return adapter, CatalogEngines(setting, adapter)


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
