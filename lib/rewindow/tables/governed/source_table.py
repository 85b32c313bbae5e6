"""A catalog's table, or another job's output in a catalog, as a source.

Only Spark may open the table, so new rows are found by the table's history and by row tracking. Row tracking records, for
each row, the version that added it, even after OPTIMIZE. A source with its own offsets does not need row tracking, because
new rows have higher offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import ARRIVAL, NEW_ROWS, OLD_ROWS, Governed, LogSpec, Piece, ReadWindow, SourceLook
from rewindow.engine.spark.spark_calls import mapped, named, open_delta
from rewindow.errors import ConfigError, SourceError
from rewindow.tables.governed.drift import difference_from_runs
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.table_history import exists, is_quiet
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.landed_outputs import DELTA, altered, missing_source, new_epochs, output_gone, rows_changed

_TRACKING = "delta.enableRowTracking"
_TAKE = ("DELETE", "UPDATE", "TRUNCATE", "RESTORE", "REPLACE", "CREATE OR REPLACE", "CLONE")
"""The names of operations that remove rows begin with one of these."""
_TAKEN = ("numTargetRowsUpdated", "numTargetRowsDeleted", "numDeletedRows", "numUpdatedRows")
"""The metrics of an operation that state the number of removed rows."""


class _Version(NamedTuple):
    """A version in a table's history.

    ``time_ms``: the latest time of its commit and all earlier commits. ``takes_rows``: whether it removes or replaces rows.
    """

    number: int
    time_ms: int
    operation: str
    takes_rows: bool

    @property
    def is_quiet(self) -> bool:
        """Whether the version certainly added no rows."""
        return is_quiet(self.operation)


def look_at_table(
    spark: SparkSession, name: TableName, spec: LogSpec, position: Mapping[str, Any] | None, window: ReadWindow
) -> SourceLook:
    """Return the present state of a catalog's table, compared with the landed position (None: nothing is landed).

    Raises `SourceError` (66) if there is no table, or if the table that was landed was replaced; `DataError` (65) if a version
    removed rows; `ConfigError` (78) if the new rows cannot be determined.
    """
    if not exists(spark, name):
        raise missing_source(str(name))
    with mapped():
        (detail,) = spark.sql(f"DESCRIBE DETAIL {name.quoted}").select("id", "properties").collect()
    if spec.source_offsets is None and dict(detail["properties"]).get(_TRACKING) != "true":
        raise ConfigError(
            "row-tracking-off",
            "log {topic}: row tracking of {table} is off, but it must show which rows are new. Switch it on, ALTER "
            "TABLE {table} SET TBLPROPERTIES ('{property}' = 'true'), or name the table's own `partition:` and "
            "`offset:`",
            topic=spec.topic,
            table=name,
            property=_TRACKING,
        )
    versions = list(_history(spark, name))
    _check_same_table(name, detail["id"], versions, position)
    landed = position["version"] if position else -1
    later = [version for version in versions if version.number > landed]
    if position is not None:
        _check_only_adds(name, later)
    last = versions[-1].number
    has_new = position is None or any(not version.is_quiet for version in later)
    with mapped():
        schema = open_delta(spark, named(name.quoted), last).schema.json()
    return SourceLook(
        {"kind": DELTA, "id": detail["id"], "version": last, "arrival": versions[-1].time_ms},
        (Piece(NEW_ROWS),) if has_new else (),
        (Piece(OLD_ROWS),) if position is not None and window.until_ms is not None else (),
        schema=schema,
        version=last,
        governed=_governed(name, spec, versions, position, window),
    )


def _governed(
    name: TableName,
    spec: LogSpec,
    versions: Sequence[_Version],
    position: Mapping[str, Any] | None,
    window: ReadWindow,
) -> Governed:
    if spec.source_offsets:
        return Governed(name.quoted)
    after = position["version"] if position else None
    if spec.arrived_at is not None:
        return Governed(name.quoted, after)
    if position is None and versions[0].number > 0:
        if window.until_ms is None and spec.timestamp != ARRIVAL:
            return Governed(name.quoted)
        raise ConfigError(
            "catalog-arrival-unknown",
            "log {topic}: the history of {table} no longer shows when its first rows were added (old versions were "
            "cleaned up): name a column with the arrival, `arrived_at: COLUMN`",
            topic=spec.topic,
            table=name,
        )
    arrivals = tuple((version.number, version.time_ms) for version in versions)
    return Governed(name.quoted, -1 if after is None else after, arrivals)


def _history(spark: SparkSession, name: TableName) -> Iterator[_Version]:
    with mapped():
        columns = ("version", "operation", "operationParameters", "operationMetrics")
        history = spark.sql(f"DESCRIBE HISTORY {name.quoted}").withColumn("time", F.unix_millis("timestamp"))
        rows = history.select(*columns, "time").orderBy("version").collect()
    before = 0
    for row in rows:
        before = max(before, row["time"])
        takes = _takes_rows(row["operation"], row["operationParameters"] or {}, row["operationMetrics"] or {})
        yield _Version(row["version"], before, row["operation"], takes)


def _takes_rows(operation: str, parameters: Mapping[str, str], metrics: Mapping[str, str]) -> bool:
    if (
        operation.startswith(_TAKE)
        or parameters.get("mode") == "Overwrite"
        or parameters.get("outputMode") == "Complete"
    ):
        return True
    return any(int(metrics.get(name) or 0) > 0 for name in _TAKEN)


def _check_same_table(
    name: TableName, table_id: str, versions: Sequence[_Version], position: Mapping[str, Any] | None
) -> None:
    if position is None:
        return
    again = "Put the table back, or land it again: `rewindow land FEED --new-generation`"
    if position.get("kind") != DELTA or position["id"] != table_id:
        raise SourceError(
            "catalog-source-replaced",
            "{table} was dropped and created again since it was landed. {fix}",
            table=name,
            fix=again,
        )
    if position["version"] > versions[-1].number:
        raise SourceError(
            "catalog-source-restored",
            "{table} went back from version {landed_version} to {version}. {fix}",
            table=name,
            landed_version=position["version"],
            version=versions[-1].number,
            fix=again,
        )
    if versions[0].number > position["version"] + 1:
        raise SourceError(
            "catalog-version-cleaned",
            "{table}: version {version} was cleaned out of its history before it was landed. Land more "
            "often than delta.logRetentionDuration, or land everything again: `rewindow land FEED "
            "--new-generation`",
            table=name,
            version=position["version"] + 1,
        )


def _check_only_adds(name: TableName, versions: Iterable[_Version]) -> None:
    for version in versions:
        if version.takes_rows:
            raise rows_changed(str(name), version.number, version.operation)


def look_at_output(
    spark: SparkSession, tables: CatalogTables, spec: LogSpec, position: Mapping[str, Any] | None
) -> SourceLook:
    """Return the present state of a job's output, compared with the landed position (None: nothing is landed).

    Raises `SourceError` (66) if the job never ran, has no such output, or was rewound to before the landed position, and
    `StorageError` (74) if rows that are not landed yet differ from the published rows.
    """
    new = new_epochs(tables, spec, position)
    name, version = tables.name_of(new.table.path), tables.version_of(new.table)
    if version is None:
        raise output_gone(str(name))
    if (change := difference_from_runs(spark, new, name, tables.known_tables(new.job))) is not None:
        if not new.is_newest(tables):
            return look_at_output(spark, tables, spec, position)
        raise altered(new.job, str(name), change)
    with mapped():
        schema = open_delta(spark, named(name.quoted), version).schema.json()
    # The epoch of a row shows whether the row is new. So neither versions nor arrivals are needed.
    governed = Governed(name.quoted)
    return SourceLook(
        {},
        (Piece(NEW_ROWS),),
        schema=new.marked(schema),
        version=version,
        epochs=new.epochs,
        on_hold=new.on_hold,
        governed=governed,
        keys=new.keys,
    )
