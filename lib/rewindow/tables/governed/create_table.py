"""Create a catalog's Delta table through SQL, or check that an existing table has the expected columns and owner."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from pyspark.sql import SparkSession

from rewindow.control.plan.compatibility import other_columns
from rewindow.control.plan.stored_rows import check_layout
from rewindow.engine.spark.spark_calls import mapped
from rewindow.errors import ConfigError, RewindowError, StorageError, one_line
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.names import TableName, ddl, sql_type
from rewindow.tables.governed.table_history import exists, has_files, is_emptied, table_version

_LOOKS, _LOOK_SECONDS = 5, 1.0
"""Two numbers for a table that another process seems to be creating: how many times to try, and how many seconds to wait each
time."""
_FILES_FOUND = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
OWNER = "rewindow.owner"
"""The table property with the job and branch that write the table."""
KEPT: Mapping[str, str] = {"delta.logRetentionDuration": "interval 3650 days"}


def create_table(
    spark: SparkSession,
    name: TableName,
    columns: Sequence[Column],
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    *,
    grows: bool = False,
) -> None:
    """Create a Delta table and its schema if they do not exist. The catalog must exist.

    ``grows``: whether to add missing columns to an existing table, which may also have further columns.

    Raises `CheckpointError` (76) if the table exists with other columns, `ConfigError` (78) if another job writes it.
    """
    partitioned = f" PARTITIONED BY ({', '.join(f'`{column}`' for column in partition_by)})" if partition_by else ""
    wanted = {**KEPT, **(properties or {})}
    written = ", ".join(f"'{key}' = '{value}'" for key, value in wanted.items())
    with mapped():
        if not exists(spark, name):
            # CREATE SCHEMA may need rights that this user lacks, even with IF NOT EXISTS.
            if not spark.catalog.databaseExists(name.quoted_schema):
                spark.sql(f"CREATE SCHEMA IF NOT EXISTS {name.quoted_schema}")
            definition = f"({ddl(columns)}) USING delta{partitioned} TBLPROPERTIES ({written})"
            _create_unless_created(spark, name, definition)
        actual = [(field.name, field.dataType.simpleString()) for field in spark.table(name.quoted).schema.fields]
        added = [column for column in columns if column.name not in dict(actual)] if grows else []
        if added:
            spark.sql(f"ALTER TABLE {name.quoted} ADD COLUMNS ({ddl(added)})")
            actual += [(column.name, sql_type(column)) for column in added]
    due = [(column.name, sql_type(column)) for column in columns]
    if not grows and sorted(actual) != sorted(due) and (table_version(spark, name) == 0 or is_emptied(spark, name)):
        # A failed attempt has created the table, or a reset has emptied it. So it may be replaced, unless it belongs to another
        # job or has rows. Version 0 has rows if CREATE TABLE ... AS SELECT made it.
        check_properties(spark, name, properties or {})
        if has_files(spark, name):
            raise other_columns(str(name), actual, due)
        with mapped():
            spark.sql(
                f"CREATE OR REPLACE TABLE {name.quoted} ({ddl(columns)}) USING delta{partitioned} TBLPROPERTIES ({written})"
            )
        actual = due
    check_layout(str(name), dict(actual))
    if (not set(due) <= set(actual)) if grows else sorted(actual) != sorted(due):
        raise other_columns(str(name), actual, due)
    check_properties(spark, name, properties or {})


def check_owners(spark: SparkSession, names: Iterable[TableName], owner: str) -> None:
    """Raise `ConfigError` (78) if one of these tables exists and has another `OWNER`."""
    for name in names:
        if table_version(spark, name) is not None:
            check_properties(spark, name, {OWNER: owner})


def check_properties(spark: SparkSession, name: TableName, properties: Mapping[str, str]) -> None:
    """Raise `ConfigError` (78) if a table lacks one of these properties. Tables of other jobs and branches do."""
    if not properties:
        return
    kept = properties_of(spark, name)
    for key, value in properties.items():
        if kept.get(key) != value:
            reason = "is written by another job or branch" if key == OWNER else f"lacks the property {key} = {value!r}"
            raise ConfigError(
                "catalog-table-taken",
                "the table {table} {reason}: name another table or branch",
                table=name,
                reason=reason,
            )


def properties_of(spark: SparkSession, name: TableName) -> dict[str, str]:
    """Return the properties of a table."""
    with mapped():
        return {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name.quoted}").collect()}


def _create_unless_created(spark: SparkSession, name: TableName, definition: str) -> None:
    """Create a table. While another process creates it (or if that process died), Delta may refuse. This then tries again."""
    for attempts_left in reversed(range(_LOOKS)):
        try:
            with mapped():
                spark.sql(f"CREATE TABLE IF NOT EXISTS {name.quoted} {definition}")
        except RewindowError as error:
            if _FILES_FOUND not in str(error.__cause__):
                raise
            time.sleep(_LOOK_SECONDS)
            if not attempts_left:
                raise StorageError(
                    "catalog-table-not-created",
                    "the table {table} cannot be created: {error}. If the catalog does not have it and its "
                    "folder has files, a statement died there: delete the folder, then run again",
                    table=name,
                    error=one_line(error),
                ) from error
        else:
            return


def owner(job: str, branch: str) -> str:
    """Return the value of `OWNER`. It is a digest, because Spark redacts values that look like secrets (``hourly`` has "url")."""
    return blake2b(f"{job}/{branch}".encode(), digest_size=16).hexdigest()
