"""Which fields a source and its new files have (`contracts.source_fields`)."""

from __future__ import annotations

import json
import re

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import LogColumns, LogSpec, SourceLook
from rewindow.contracts.source_fields import FileFields, SourceFields, fields_of_schema
from rewindow.engine.spark.exact_paths import exact_paths
from rewindow.engine.spark.ingest_frames import path_of_row, read_options
from rewindow.engine.worker.file_fields import directory_columns, shown

_OBJECT = re.compile(r"`(?:[^`]|``)*`|OBJECT<")


def json_fields(spark: SparkSession, spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
    """Return the fields of a log's schema, and those that occur in each JSON file to land.

    One job parses all of the files, with the options of the source.
    """
    known, structs, _ = fields_of_schema(json.loads(columns.source_schema or "{}"))
    options = {**read_options(spec, look), "mode": "PERMISSIVE", "singleVariantColumn": "row"}
    parsed = spark.read.format("json").options(**options).load(exact_paths(look.fresh or look.rest))
    # A line with a lone value is no row: `unreadable` decides on it, and the file's other lines have fields.
    by_file = parsed.where("schema_of_variant(row) rlike '^(OBJECT|ARRAY)'").groupBy(path_of_row().alias("path"))
    found = by_file.agg(F.expr("schema_of_variant_agg(row)").alias("schema")).collect()
    files = [_file_fields(spec, look, row["path"], row["schema"]) for row in sorted(found)]
    return SourceFields(known, structs, tuple(files))


def _file_fields(spec: LogSpec, look: SourceLook, path: str, schema: str) -> FileFields:
    ddl = _OBJECT.sub(lambda found: "STRUCT<" if found[0] == "OBJECT<" else found[0], schema)
    present, _, empty = fields_of_schema(json.loads(T.DataType.fromDDL(f"row {ddl}").json())["fields"][0]["type"])
    return FileFields(shown(spec.source, path), present | directory_columns(path, look.base), empty)
