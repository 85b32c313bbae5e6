"""Build the DataFrame of a source's due rows, with the columns that the log writer expects. Building it reads no rows.

Spark treats each path as a pattern, so ``x[1].csv`` would match ``x1.csv``. Therefore, wildcards in paths are escaped.
Spark's option to switch patterns off, ``__globPaths__``, has no effect over Spark Connect.

Integers become longs, floats doubles, dates ISO text, timestamps epoch milliseconds, nested values JSON text. Times without a
zone are in the feed's zone. -0.0 becomes 0.0, so that equal numbers have equal bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, cast

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import ARRIVAL, NEW_ROWS, Governed, LogColumns, LogSpec, Piece, ReadWindow, SourceLook
from rewindow.contracts.instants import MILLISECONDS, RANGES
from rewindow.contracts.reserved_names import other_name
from rewindow.contracts.row_faults import ARRIVED_AT, NEVER_ARRIVED, other_unit
from rewindow.contracts.source_fields import read_schema
from rewindow.engine.spark.spark_calls import named, open_delta
from rewindow.engine.spark.spark_partitions import partition_column
from rewindow.engine.worker.file_fields import check_not_empty
from rewindow.engine.worker.landing.directories import text_directories
from rewindow.engine.worker.landing.log_columns import (
    landed_type,
    log_columns,
    not_a_time,
    source_types,
    unknown_column,
)
from rewindow.engine.worker.landing.sorted_runs import (
    ARRIVED,
    FAULT,
    FILE,
    NO_TIME,
    PARTITION,
    ROW,
    TIMESTAMP,
    order_name,
)
from rewindow.engine.worker.landing.source_rows import no_position
from rewindow.errors import SourceError
from rewindow.streams.serde.schema import Column

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_SHOWN_ALIKE = (*_INTEGERS, T.StringType, T.BooleanType, T.DecimalType, T.DoubleType, T.FloatType)
"""The types whose values JSON and Java write as the same text."""
_ZONED = r"(Z|z|[+-]\d{2}:?\d{2}|UTC|GMT)\s*$"
_DATE = r"^\s*[+-]?\d{4,6}-\d"


class SourceColumn(NamedTuple):
    """A source column: the expression that reads it, and its Spark type."""

    read: Expression
    type: T.DataType


def source_columns(spec: LogSpec, schema: T.StructType, hidden: Sequence[str] = ()) -> dict[str, SourceColumn]:
    """Return a source's columns by name, as Spark expressions. The names are those after the renames of ``columns:``.

    Raises the errors of `log_columns.source_types`.
    """
    return {
        name: SourceColumn(
            F.col(".".join(f"`{name_in_path.replace('`', '``')}`" for name_in_path in path)), _type_at(schema, path)
        )
        for name, (path, _) in source_types(spec, schema.json(), hidden).items()
    }


def landed(spec: LogSpec, column: Column, sources: Mapping[str, SourceColumn]) -> Expression:
    """Return the expression of a landed column. Raises `SourceError` (66) if the source's column has another type now."""
    source = sources.get(column.name)
    found_type = None if source is None else landed_type(source.type.jsonValue())
    is_canonical = spec.is_output and (found_type, column.type) == ("string", "json")
    if source is None or (found_type != column.type and not is_canonical):
        if source is None:
            raise SourceError(
                "source-column-gone",
                "{source}: column {column}, landed as {type}, is gone. Restore it, rename it under `columns:`, or land a new "
                "generation: `rewindow land FEED --new-generation`",
                source=spec.source.name,
                column=column.name,
                type=column.type,
            )
        raise SourceError(
            "source-column-type-changed",
            "{source}: column {column}, landed as {type}, is now {now}. Restore it, or {fix}, and land a new generation: "
            "`rewindow land FEED --new-generation`",
            source=spec.source.name,
            column=column.name,
            type=column.type,
            now=source.type.simpleString(),
            fix=other_name(column.name),
        )
    return _converted(source, spec.zone).alias(column.name)


def time_ms(spec: LogSpec, name: str, sources: Mapping[str, SourceColumn]) -> Expression:
    """Return a column as epoch milliseconds. Values that are not times become null.

    Raises `ConfigError` (78) if the column's type cannot be a time.
    """
    source = sources.get(name)
    if source is None:
        raise unknown_column(spec, name, "timestamp", names=list(sources))
    kind = source.type
    if isinstance(kind, _INTEGERS):
        return _in_ms(source.read.cast("long"), spec.units.get(name, MILLISECONDS))
    if isinstance(kind, T.StringType):
        # Only texts with a date are times, because Spark reads `10:00` as 10:00 of the current day.
        instant = F.when(source.read.rlike(_DATE), source.read.try_cast("timestamp"))
        local = F.to_utc_timestamp(instant, spec.zone)
        return F.unix_millis(F.when(source.read.rlike(_ZONED), instant).otherwise(local))
    if isinstance(kind, T.DateType):
        return F.unix_millis(F.to_utc_timestamp(source.read.cast("timestamp"), spec.zone))
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return _converted(source, spec.zone)
    raise not_a_time(spec, name, kind.simpleString())


def _arrival_unit(spec: LogSpec, sources: Mapping[str, SourceColumn]) -> Expression | None:
    """Return, for each arrival that cannot be milliseconds, the unit in which it is plausible; null for other arrivals.

    Returns None if the unit of the arrivals needs no check.
    """
    name = spec.arrived_at
    if name is None or spec.is_output or name in spec.units or not isinstance(sources[name].type, _INTEGERS):
        return None
    return unit_of_number(sources[name].read.cast("long"))


def unit_of_number(time: Expression) -> Expression:
    """Return the unit in which a number is a plausible time. Null if that is milliseconds, or no unit makes it plausible."""
    units = [F.when((time >= low) & (time < end), F.lit(unit)) for unit, (low, end) in RANGES.items()]
    return F.coalesce(*units)


def offset_columns(spec: LogSpec, sources: Mapping[str, SourceColumn]) -> tuple[Expression, Expression]:
    """Return the partition column and the offset column, as longs, of a table whose records have their own offsets."""
    partition, offset = spec.source_offsets or ("", "")
    return sources[partition].read.cast("long"), sources[offset].read.cast("long")


def _type_at(schema: T.StructType, path: Sequence[str]) -> T.DataType:
    kind: T.DataType = schema
    for name in path:
        kind = cast("T.StructType", kind)[name].dataType
    return kind


def _in_ms(time: Expression, unit: str) -> Expression:
    if unit == MILLISECONDS:
        return time
    if unit == "s":
        return F.try_multiply(time, F.lit(1_000))
    divided = F.call_function("div", time, F.lit({"us": 1_000, "ns": 1_000_000}[unit]))
    # Negative times are invalid. Division would turn a small negative time into the valid time 0.
    return F.when(time < 0, time).otherwise(divided)


def _converted(source: SourceColumn, zone: str) -> Expression:
    read, kind = source
    if isinstance(kind, T.TimestampType):
        return F.unix_millis(read)
    if isinstance(kind, T.TimestampNTZType):
        return F.unix_millis(F.to_utc_timestamp(read.cast("timestamp"), zone))
    column_type = landed_type(kind.jsonValue())
    if column_type == "json":
        return F.to_json(_with_text_keys(read, kind))
    if column_type == "double":
        number = read.cast("double")
        return F.when(number == 0.0, F.lit(0.0)).otherwise(number)
    return read.cast(column_type)


def _with_text_keys(value: Expression, kind: T.DataType) -> Expression:
    """Return a nested value in which the keys of maps are texts, written as `to_json` writes values of their type.

    `to_json` itself would write such keys as Java's toString does.
    """
    if not _has_other_keys(kind):
        return value
    match kind:
        case T.ArrayType():
            return F.transform(value, lambda item: _with_text_keys(item, kind.elementType))
        case T.StructType():
            fields = [_with_text_keys(value.getField(field.name), field.dataType).alias(field.name) for field in kind]
            return F.when(value.isNotNull(), F.struct(*fields))
        case T.MapType():

            def with_text_key(entry: Expression) -> Expression:
                return F.struct(_text_key(entry["key"], kind.keyType), _with_text_keys(entry["value"], kind.valueType))

            return F.map_from_entries(F.transform(F.map_entries(value), with_text_key))
    return value


def _has_other_keys(kind: T.DataType) -> bool:
    """Return whether a type is, or contains, a map whose keys Java writes in another form than JSON."""
    return any(
        isinstance(inner, T.MapType) and not isinstance(inner.keyType, _SHOWN_ALIKE) for inner in _types_within(kind)
    )


def _text_key(key: Expression, kind: T.DataType) -> Expression:
    if isinstance(kind, _SHOWN_ALIKE):
        return key.cast("string")
    return F.get_json_object(F.to_json(F.struct(_with_text_keys(key, kind).alias("key"))), "$.key")


def _types_within(kind: T.DataType) -> Iterator[T.DataType]:
    """Yield a type, then the types of its items, fields and map values at any depth. The types of map keys are left out."""
    yield kind
    match kind:
        case T.ArrayType():
            yield from _types_within(kind.elementType)
        case T.MapType():
            yield from _types_within(kind.valueType)
        case T.StructType():
            for field in kind:
                yield from _types_within(field.dataType)


OFFSET, PATH = "_offset", "_path"
_PIECE, _PIECE_ARRIVAL, _KNOWN = "_piece", "_piece_arrival", "_known"
_WILDCARD = re.compile(r"[*?\[\]{}\\]")
_SHOWN = "* ? [ ] { } or \\"


class SourceFrame:
    """The source of one log on a Spark session, as a `SourceLook` describes it."""

    def __init__(self, spark: SparkSession, spec: LogSpec, look: SourceLook) -> None:
        """Bind to a session and a source. Reads nothing."""
        self._spark, self._spec, self._look = spark, spec, look

    def columns(self) -> LogColumns:
        """Decide the log's typed columns from the source."""
        return log_columns(self._spec, self._infer().json())

    def due(self, columns: LogColumns, window: ReadWindow, partitions: int) -> DataFrame:
        """Return the due rows with their partition, arrival, timestamp, fault, key columns and value columns."""
        look, until = self._look, window.until_ms
        arrived = F.col(ARRIVED)
        parts = []
        if look.fresh:
            fresh = self._convert(columns, self._read(columns, look.fresh), look.fresh, partitions)
            if until is not None:
                limit = window.through_ms if look.overlapping and window.through_ms is not None else until
                fresh = fresh.where(arrived.isNull() | (arrived < limit))
            parts.append(fresh)
        if look.rest and until is not None and window.through_ms is not None:
            rest = self._convert(columns, self._read(columns, look.rest), look.rest, partitions)
            parts.append(rest.where((arrived >= window.through_ms) & (arrived < until)))
        if not parts:
            nothing = T.StructType.fromJson(json.loads(read_schema(self._spec, columns)))
            parts.append(self._convert(columns, self._spark.createDataFrame([], nothing), (), partitions).limit(0))
        due = reduce(DataFrame.unionByName, parts)
        if until is not None or self._spec.arrived_at:
            due = due.withColumn(FAULT, F.coalesce(FAULT, F.when(arrived.isNull(), F.lit(NEVER_ARRIVED))))
        return due

    def arrivals(self, columns: LogColumns) -> DataFrame:
        """Return the path and the arrival of each row of the files, including rows that are already landed."""
        pieces = (*self._look.rest, *self._look.fresh)
        frame = self._read(columns, pieces)
        arrival, _ = self._arrived(source_columns(self._spec, frame.schema), pieces)
        return frame.select(_path_of_row().alias(PATH), arrival.alias(ARRIVED))

    def source_offsets(self, columns: LogColumns) -> DataFrame:
        """Return partition, offset and timestamp of the fresh rows of a table with its own offsets. Checks no values."""
        spec = self._spec
        frame = self._read(columns, self._look.fresh)
        sources = source_columns(spec, frame.schema, (_PIECE, _PIECE_ARRIVAL))
        for column in columns.all:
            landed(spec, column, sources)
        partition, offset = offset_columns(spec, sources)
        time = time_ms(spec, spec.timestamp, sources)
        return frame.select(partition.alias(PARTITION), offset.alias(OFFSET), time.alias(TIMESTAMP))

    def _convert(self, columns: LogColumns, frame: DataFrame, pieces: Sequence[Piece], partitions: int) -> DataFrame:
        spec = self._spec
        sources = source_columns(spec, frame.schema, (_PIECE, _PIECE_ARRIVAL))
        converted = {column.name: landed(spec, column, sources) for column in columns.all}
        arrival, wrong = self._arrived(sources, pieces)
        fault = F.lit(None).cast("string") if wrong is None else wrong
        key = [(converted[column.name], column.type) for column in columns.key]
        partition = partition_column(key, is_scalar=columns.scalar_key, partitions=partitions)
        if spec.topic_positions:
            partition, offset = (sources[name].read.cast("long") for name in spec.topic_positions)
            is_valid = F.coalesce((partition >= 0) & (partition < partitions) & (offset >= 0), F.lit(False))
            fault = F.coalesce(fault, F.when(~is_valid, F.lit(no_position(spec, partitions))))
            partition = F.when(is_valid, partition).otherwise(0).cast("int")
        return frame.select(
            partition.alias(PARTITION),
            arrival.alias(ARRIVED),
            self._timestamp(sources, arrival).alias(TIMESTAMP),
            fault.alias(FAULT),
            *converted.values(),
            *self._no_time(sources),
            *(sources[name].read.alias(order_name(name)) for name in spec.order if name not in converted),
            *(_file_order(has_rows=bool(pieces)) if spec.in_file_order else ()),
        )

    def _arrived(
        self, sources: dict[str, SourceColumn], pieces: Sequence[Piece]
    ) -> tuple[Expression, Expression | None]:
        """Return two columns: the arrivals, and the faults of arrivals whose number is in another unit than milliseconds.

        Such a row has no arrival. Read as milliseconds, its number would be a time in 1970, or a time so far in the future
        that the row would wait for ever.
        """
        arrival, unit = self._arrival(sources, pieces), _arrival_unit(self._spec, sources)
        if unit is None:
            return arrival, None
        return F.when(unit.isNull(), arrival), _wrong_arrival(arrival, unit)

    def _arrival(self, sources: dict[str, SourceColumn], pieces: Sequence[Piece]) -> Expression:
        if self._spec.arrived_at:
            return time_ms(self._spec, self._spec.arrived_at, sources)
        governed = self._look.governed
        if (governed and governed.arrivals) or any(piece.arrival_ms is not None for piece in pieces):
            return F.col(_PIECE_ARRIVAL)
        return F.lit(None).cast("long")

    def _timestamp(self, sources: dict[str, SourceColumn], arrival: Expression) -> Expression:
        if self._spec.extractor:
            return F.lit(None).cast("long")
        return arrival if self._spec.timestamp == ARRIVAL else time_ms(self._spec, self._spec.timestamp, sources)

    def _no_time(self, sources: dict[str, SourceColumn]) -> list[Expression]:
        """Return one column with the texts that are not valid times, for the quarantine and messages.

        Returns no column if the timestamps are not text.
        """
        name = self._spec.timestamp
        if self._spec.extractor or name == ARRIVAL or not isinstance(sources[name].type, T.StringType):
            return []
        read = sources[name].read
        return [F.when(time_ms(self._spec, name, sources).isNull(), read).alias(NO_TIME)]

    def _read(self, columns: LogColumns, pieces: Sequence[Piece]) -> DataFrame:
        source = self._spec.source
        schema = T.StructType.fromJson(json.loads(self._look.schema or read_schema(self._spec, columns)))
        if self._look.schema is not None:
            return self._read_table(schema, pieces)
        check_not_empty(pieces)
        reader = self._spark.read.format(source.format).options(**_read_options(self._spec, self._look))
        return reader.schema(schema).load(exact_paths(pieces))

    def _read_table(self, schema: T.StructType, pieces: Sequence[Piece]) -> DataFrame:
        """Return the rows of a table's files, with their partition values and commit times."""
        look = self._look
        if look.governed is not None:
            return self._read_governed(look.governed, is_new=bool(pieces) and pieces[0].path == NEW_ROWS)
        if look.version is not None:
            return self._read_version(look.version, pieces)
        check_not_empty(pieces)
        stored = T.StructType([field for field in schema.fields if field.name not in look.partition_columns])
        frame = self._spark.read.schema(stored).parquet(*exact_paths(pieces))
        if not look.partition_columns and all(piece.arrival_ms is None for piece in pieces):
            return frame
        joined = frame.withColumn(_PIECE, _path_of_row()).join(
            self._facts(pieces, look.partition_columns), _PIECE, "left"
        )
        unknown = F.raise_error(F.concat(F.lit("rewindow did not request the file "), F.col(_PIECE)))
        # If Spark returns a row of a file that was not requested, the landing fails. Otherwise the row would be lost without an
        # error.
        joined = joined.where(F.coalesce(_KNOWN, unknown))
        typed = [F.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in schema.fields]
        return joined.select(*typed, _PIECE_ARRIVAL)

    def _read_version(self, version: int, pieces: Sequence[Piece]) -> DataFrame:
        """Return the rows of some files of a table's version, with Spark's Delta reader."""
        table = open_delta(self._spark, self._spec.source.location, version)
        return table.withColumn(_PIECE, _path_of_row()).join(self._facts(pieces, ()), _PIECE).drop(_PIECE, _KNOWN)

    def _read_governed(self, governed: Governed, *, is_new: bool) -> DataFrame:
        """Return a catalog table's new rows (``is_new``) or old rows, with their commit times, at the version of the look."""
        table = open_delta(self._spark, named(governed.table), self._look.version)
        if governed.after is None:
            return table
        made_by = F.col("_metadata.row_commit_version")
        table = table.where(made_by > governed.after if is_new else made_by <= governed.after)
        if not governed.arrivals:
            return table
        fields = [T.StructField(name, T.LongType()) for name in (_PIECE, _PIECE_ARRIVAL)]
        arrivals = self._spark.createDataFrame(list(governed.arrivals), T.StructType(fields))
        return table.withColumn(_PIECE, made_by).join(F.broadcast(arrivals), _PIECE, "left").drop(_PIECE)

    def _facts(self, pieces: Sequence[Piece], partition_columns: Sequence[str]) -> DataFrame:
        """Return the arrival and the partition values of each file."""
        fields = [T.StructField(_PIECE, T.StringType()), T.StructField(_PIECE_ARRIVAL, T.LongType())]
        fields += [T.StructField(name, T.StringType()) for name in partition_columns]
        rows = [
            (piece.path, piece.arrival_ms, *(dict(piece.values).get(name) for name in partition_columns))
            for piece in pieces
        ]
        return F.broadcast(self._spark.createDataFrame(rows, T.StructType(fields)).withColumn(_KNOWN, F.lit(True)))

    def _infer(self) -> T.StructType:
        source = self._spec.source
        if self._look.schema is not None:
            return T.StructType.fromJson(json.loads(self._look.schema))
        options = {"mergeSchema": "true", **_read_options(self._spec, self._look)}
        pieces = (*self._look.rest, *self._look.fresh)
        inferred = self._spark.read.format(source.format).options(**options).load(exact_paths(pieces)).schema
        texts = text_directories(pieces, self._look.base)
        return T.StructType(
            [T.StructField(field.name, T.StringType()) if field.name in texts else field for field in inferred]
        )


def exact_paths(pieces: Sequence[Piece]) -> list[str]:
    """Return the paths of files as patterns that match only these files.

    Raises `SourceError` (66) for a path with a wildcard and a colon, because Hadoop takes the part of a pattern before a colon
    as a scheme.
    """
    for piece in pieces:
        if _WILDCARD.search(piece.path) and ":" in _without_scheme(piece.path):
            raise SourceError(
                "path-with-wildcard-and-colon",
                "{file}: Spark cannot read a file whose path has a colon and also {characters}. Nothing was "
                "landed. Rename the file or its folder: {path}",
                file=_named(piece),
                characters=_SHOWN,
                path=piece.path,
            )
    return [_WILDCARD.sub(r"\\\g<0>", piece.path) for piece in pieces]


def _read_options(spec: LogSpec, look: SourceLook) -> dict[str, str]:
    """Return the options with which Spark reads a log's files."""
    options = {"basePath": look.base} if look.base else {}
    return {**options, **spec.source.options}


def _wrong_arrival(arrival: Expression, unit: Expression) -> Expression:
    """Return the reason for refusing each row whose arrival has another unit than milliseconds; null for other rows."""
    reasons = {short: other_unit(ARRIVED_AT, "|", short).split("|") for short in RANGES}
    texts = [
        F.when(unit == short, F.concat(F.lit(a), arrival.cast("string"), F.lit(b))) for short, (a, b) in reasons.items()
    ]
    return F.coalesce(*texts)


def _path_of_row() -> Expression:
    """Return the path of the file that a row comes from, decoded from the URI that Spark provides."""
    decoded = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(decoded, "^file:/+", "/")


def _file_order(*, has_rows: bool) -> list[Expression]:
    """Return the columns of `FILE_ORDER`; constants if the frame has no rows, because it then has no files."""
    file, row = (_path_of_row(), F.col("_metadata.row_index")) if has_rows else (F.lit(""), F.lit(0))
    return [file.alias(FILE), row.alias(ROW)]


def _named(piece: Piece) -> str:
    return piece.name or piece.path


def _without_scheme(path: str) -> str:
    return path.partition("://")[2] or path
