"""What of a catalog's tables goes through SQL and the DataFrame writer: make them, look whether they fit, add rows once.

Nothing that Spark returns or raises says whether a commit landed: who wants to know reads the table (or its history).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from pyspark.sql import DataFrame, SparkSession

from rewindow.control.plan.stored_format import check_layout
from rewindow.engine.spark.errors import mapped
from rewindow.errors import CheckpointError, ConfigError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.names import TableName

_TYPES: Mapping[str, str] = {"long": "bigint", "json": "string"}
OWNER = "rewindow.owner"
"""The table property that says which job and branch write the table."""
KEPT: Mapping[str, str] = {"delta.logRetentionDuration": "interval 3650 days"}


def make_table(
    spark: SparkSession,
    name: TableName,
    columns: Sequence[Column],
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    *,
    grows: bool = False,
) -> None:
    """Make a Delta table and its schema where they are missing. The catalog must be there.

    ``grows``: columns that a table lacks are added to it, those that it has beside stay.

    Raises `CheckpointError` (76) if the table is there with other columns, `ConfigError` (78) if another job writes it.
    """
    cut = f" PARTITIONED BY ({', '.join(f'`{column}`' for column in partition_by)})" if partition_by else ""
    wanted = {**KEPT, **(properties or {})}
    written = ", ".join(f"'{key}' = '{value}'" for key, value in wanted.items())
    with mapped():
        if not spark.catalog.tableExists(name.quoted):
            if not spark.catalog.databaseExists(name.quoted_schema):  # who may not make one need not
                spark.sql(f"CREATE SCHEMA IF NOT EXISTS {name.quoted_schema}")
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {name.quoted} ({ddl(columns)}) USING delta{cut} TBLPROPERTIES ({written})"
            )
        found = [(field.name, field.dataType.simpleString()) for field in spark.table(name.quoted).schema.fields]
        added = [column for column in columns if column.name not in dict(found)] if grows else []
        if added:
            spark.sql(f"ALTER TABLE {name.quoted} ADD COLUMNS ({ddl(added)})")
            found += [(column.name, _type(column)) for column in added]
        kept = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name.quoted}").collect()}
    due = [(column.name, _type(column)) for column in columns]
    check_layout(str(name), dict(found))
    if (not set(due) <= set(found)) if grows else sorted(found) != sorted(due):
        message = f"{name} has the columns {found}, wanted are {due}: name another table, or start a new branch"
        raise CheckpointError(message)
    for key, value in (properties or {}).items():
        if kept.get(key) != value:
            what = "is written by another job or branch" if key == OWNER else f"has not {key} = {value!r}"
            message = f"the table {name} {what}: name another table or branch"
            raise ConfigError(message)


def add_once(frame: DataFrame, name: TableName, app_id: str, version: int, *, replaces: str | None = None) -> None:
    """Append rows in one commit of ``(app_id, version)``, which Delta lands once; ``replaces``: what goes in the same."""
    writer = frame.write.format("delta").option("txnAppId", app_id).option("txnVersion", version)
    writer = writer.option("userMetadata", json.dumps({"app": app_id, "version": version}))
    if replaces is not None:
        writer.mode("overwrite").option("replaceWhere", replaces).saveAsTable(name.quoted)
    else:
        writer.mode("append").saveAsTable(name.quoted)


def owner(job: str, branch: str) -> str:
    """Return what `OWNER` is: a digest, as Spark shows no property that looks like a secret to it, ``hourly`` for its url."""
    return blake2b(f"{job}/{branch}".encode(), digest_size=16).hexdigest()


def last_version(spark: SparkSession, name: TableName, app_id: str) -> int:
    """Return the last version under an application id that the table's history has; 0 for none."""
    with mapped():
        rows = spark.sql(f"DESCRIBE HISTORY {name.quoted}").select("userMetadata").collect()
    told = [json.loads(row["userMetadata"]) for row in rows if (row["userMetadata"] or "").startswith('{"app"')]
    return max((one["version"] for one in told if one["app"] == app_id), default=0)


def table_version(spark: SparkSession, name: TableName) -> int | None:
    """Return a table's Delta version; None if it is not there."""
    with mapped():
        if not spark.catalog.tableExists(name.quoted):
            return None
        (last,) = spark.sql(f"DESCRIBE HISTORY {name.quoted} LIMIT 1").select("version").collect()
    return int(last["version"])


def ddl(columns: Sequence[Column]) -> str:
    """Return columns as SQL lists them."""
    return ", ".join(f"`{column.name}` {_type(column)}" for column in columns)


def _type(column: Column) -> str:
    return _TYPES.get(column.type, column.type).replace(" ", "")
