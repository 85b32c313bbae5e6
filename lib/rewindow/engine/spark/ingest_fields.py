"""Which fields a source and its new files have (`contracts.source_fields`)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

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
    # A line with a lone value is no row: `unreadable` decides on it, and the file's other lines have fields. The objects of a
    # list are rows, too, and beside lines with lone objects they have a type of their own.
    kind = F.regexp_extract(F.schema_of_variant("row"), "^(OBJECT|ARRAY)", 1)
    by_file = parsed.where(kind != "").groupBy(path_of_row().alias("path"), kind.alias("kind"))
    found: dict[str, list[str]] = {}
    for row in sorted(by_file.agg(F.expr("schema_of_variant_agg(row)").alias("schema")).collect()):
        found.setdefault(row["path"], []).append(row["schema"])
    files = [_file_fields(spec, look, path, schemas, known) for path, schemas in found.items()]
    return SourceFields(known, structs, tuple(files))


def _file_fields(
    spec: LogSpec, look: SourceLook, path: str, schemas: Sequence[str], known: frozenset[str]
) -> FileFields:
    """Return the fields of a file. One that has nothing but empty objects is none to Spark, as long as no file has more."""
    present, filled = frozenset[str](), frozenset[str]()
    for schema in schemas:
        ddl = _OBJECT.sub(lambda found: "STRUCT<" if found[0] == "OBJECT<" else found[0], schema)
        fields, _, empty = fields_of_schema(json.loads(T.DataType.fromDDL(f"row {ddl}").json())["fields"][0]["type"])
        present, filled = present | fields, filled | (fields - empty)
    directories = directory_columns(path, look.base)
    empty = present - filled
    return FileFields(shown(spec.source, path), (present - (empty - known)) | directories, empty & known)
