"""Another job's output as a source, in a table that a catalog governs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from rewindow.contracts.ingest import NEW_ROWS, Governed, LogSpec, Piece, SourceLook
from rewindow.engine.spark.open_table import named, open_delta
from rewindow.engine.spark.spark_job import mapped
from rewindow.tables.governed.drift import difference_from_runs
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.job_source import altered, new_epochs, output_gone


def look_at_output(
    spark: SparkSession, tables: CatalogTables, spec: LogSpec, position: Mapping[str, Any] | None
) -> SourceLook:
    """Return a job's output as it is now, compared with the landed position (None: nothing is landed).

    Raises `SourceError` (66) if the job never ran, has no such output, or was rewound behind the landed position, and
    `StorageError` (74) if rows that are not landed yet are not those that were published.
    """
    new = new_epochs(tables, spec, position)
    name, version = tables.name_of(new.table.path), tables.version_of(new.table)
    if version is None:
        raise output_gone(str(name))
    if (change := difference_from_runs(spark, new, name, tables.known_tables(new.job))) is not None:
        raise altered(new.job, str(name), change)
    with mapped():
        schema = open_delta(spark, named(name.quoted), version).schema.json()
    # The epoch of a row says whether it is new.
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
