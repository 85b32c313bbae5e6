"""Read CSV files whose columns are found by the header of each file. Spark itself takes them by position.

Files with equal headers are read together, each group with a schema in the order of its header. Columns that no row is made of
are read as texts and left out, so that their values do not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import LogSpec, Piece, SourceLook
from rewindow.engine.spark.exact_paths import exact_paths, inferable_paths
from rewindow.engine.spark.text_checks import as_texts, checked, is_dateless
from rewindow.engine.spark.text_times import has_date
from rewindow.engine.worker.csv_files import check_has, csv_columns, positions
from rewindow.engine.worker.double_texts import OF_JAVA
from rewindow.engine.worker.file_fields import directory_columns

Header = tuple[str, ...] | None
_NUMBERS = (T.IntegerType, T.LongType, T.DoubleType)
_TIMES = (T.DateType, T.TimestampNTZType, T.TimestampType)
_UNUSED = "_unused_"


def by_header(spec: LogSpec, pieces: Sequence[Piece]) -> list[tuple[Header, list[Piece]]]:
    """Return files by their headers, in the order of the first of each. None: without a header that Python can read."""
    groups: dict[Header, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(csv_columns(spec.source, piece.path), []).append(piece)
    return [*groups.items()]


def read_csv(
    spark: SparkSession,
    spec: LogSpec,
    look: SourceLook,
    options: Mapping[str, str],
    schema: T.StructType,
    needed: Collection[str],
    pieces: Sequence[Piece],
    corrupt: str,
) -> DataFrame:
    """Return the rows of files with one header, with the columns of a schema and ``corrupt``.

    Columns that are not ``needed`` are null. Raises `SourceError` (66) if the files lack one that is, unless it is optional.
    """
    header, path = csv_columns(spec.source, pieces[0].path), pieces[0].path
    reader = spark.read.format("csv").options(**options).option("columnNameOfCorruptRecord", corrupt)
    # A reader that leaves out columns does not notice that a line has too few values, and shifts them.
    reader = reader.option("mode", "PERMISSIVE").option("columnPruning", "false")
    paths = exact_paths(pieces)
    bad = T.StructField(corrupt, T.StringType())
    if header is None:  # Spark refuses files whose header has other names
        read = T.StructType([*as_texts(schema, spec.source.options), bad])
        frame = reader.option("enforceSchema", "false").schema(read).load(paths)
        return checked(frame, schema, spec, corrupt)
    outside = [field for field in schema if field.name in directory_columns(path, look.base)]
    check_has(spec, path, header, {*needed} - {field.name for field in outside})
    names = {at: name for name, at in positions(header, needed).items()}
    used = T.StructType([schema[names[at]] for at in sorted(names)] + outside)
    inside = [
        schema[names[at]] if at in names else T.StructField(f"{_UNUSED}{at}", T.StringType())
        for at in range(len(header))
    ]
    read = T.StructType([*as_texts(T.StructType(inside), spec.source.options), *outside, bad])
    frame = reader.option("enforceSchema", "true").schema(read).load(paths)
    frame = checked(frame, T.StructType([field for field in used if field not in outside]), spec, corrupt)
    has = set(used.names)
    columns = [
        F.col(_quoted(field.name)) if field.name in has else F.lit(None).cast(field.dataType).alias(field.name)
        for field in schema
    ]
    return frame.select(*columns, corrupt)


def inferred(spark: SparkSession, spec: LogSpec, options: Mapping[str, str], pieces: Sequence[Piece]) -> T.StructType:
    """Return the columns of all files, each with the type that Spark infers for its values in all of them."""
    groups = [inferable_paths(alike, options) for _, alike in by_header(spec, pieces)]
    frames = [spark.read.format("csv").options(**options).load(paths) for paths in groups]
    schemas = [_as_meant(spark, frame, options, paths) for frame, paths in zip(frames, groups, strict=True)]
    if len(frames) == 1:
        return schemas[0]
    found: dict[str, tuple[str, list[T.DataType]]] = {}
    for frame, schema in zip(frames, schemas, strict=True):
        filled = _filled(frame)
        for field in schema:
            _, kinds = found.setdefault(field.name.lower(), (field.name, []))
            kinds += [field.dataType] if field.name in filled else []
    return T.StructType(
        [T.StructField(name, reduce(_common, kinds) if kinds else T.StringType()) for name, kinds in found.values()]
    )


def _as_meant(spark: SparkSession, frame: DataFrame, options: Mapping[str, str], paths: Sequence[str]) -> T.StructType:
    """Return the schema of a frame, with texts as the type of a column that has what only Spark takes for its type.

    Such are times without a date, to which Spark adds the day on which it reads them, and numbers for Java alone, like ``7D``.
    """
    found = {field.name: F.max(~has_date(_text(field))) for field in frame.schema if is_dateless(field, options)}
    found |= {
        field.name: F.max(_text(field).rlike(OF_JAVA))
        for field in frame.schema
        if isinstance(field.dataType, T.DoubleType)
    }
    if not found:
        return frame.schema
    texts = spark.read.format("csv").options(**{**options, "inferSchema": "false"}).load(list(paths))
    has_some = texts.agg(*(has.alias(name) for name, has in found.items())).first()
    as_text = {name for name, has in zip(found, has_some or (), strict=True) if has}
    return T.StructType(
        [T.StructField(field.name, T.StringType()) if field.name in as_text else field for field in frame.schema]
    )


def _text(field: T.StructField) -> Expression:
    return F.col(_quoted(field.name))


def _filled(frame: DataFrame) -> set[str]:
    """Return the columns that have a value: without one, Spark infers a text."""
    texts = [field.name for field in frame.schema if isinstance(field.dataType, T.StringType)]
    counts = frame.agg(*(F.count(F.col(_quoted(name))) for name in texts)).first() if texts else None
    empty = {name for name, count in zip(texts, counts or (), strict=True) if not count}
    return {*frame.columns} - empty


def _common(one: T.DataType, other: T.DataType) -> T.DataType:
    """Return the type that Spark infers for values of two types."""
    for ordered in (_NUMBERS, _TIMES):
        if isinstance(one, ordered) and isinstance(other, ordered):
            return max(one, other, key=lambda kind: ordered.index(type(kind)))
    decimals = [kind for kind in (one, other) if isinstance(kind, T.DecimalType)]
    if decimals and all(isinstance(kind, (*_NUMBERS, T.DecimalType)) for kind in (one, other)):
        is_double = any(isinstance(kind, T.DoubleType) for kind in (one, other))
        return T.DoubleType() if is_double else T.DecimalType(max(20, *(kind.precision for kind in decimals), 0), 0)
    return one if one == other else T.StringType()


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
