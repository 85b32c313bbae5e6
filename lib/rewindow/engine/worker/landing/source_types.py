"""The types of a source's columns, under Spark's names. They decide how values are landed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.instants import MILLISECONDS

INTEGERS = ("byte", "short", "integer", "long")
TIMES = ("timestamp", "timestamp_ntz")
_DAY_MS = 86_400_000
_READ_AS: Mapping[str, pa.DataType] = {
    **dict.fromkeys(INTEGERS, pa.int64()),
    "float": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_VOID = "void"
"""The type of a column that has no value in a file. The values of the file then do not tell its type."""
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_MOST_SECONDS = (2**63 - 1) // 1_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970. Spark writes dates outside this range in another form."""
_UNKNOWN: Final[Mapping[str, str]] = {"Time": "TIME", "Float16": "FLOAT16", "UUID": "UUID", "Interval": "INTERVAL"}
_MOST_DIGITS = 38


class UnsuitableError(Exception):
    """Arrow cannot land this source exactly as Spark would, so Spark lands it. The message says why."""


class MixedTypesError(Exception):
    """A column has different types in two files. The arguments are its name and two pairs (file, type)."""

    def __init__(self, column: str, *types: tuple[str, str]) -> None:
        super().__init__(column)
        self.column, self.types = column, types


def fields_of(schema: str) -> dict[str, str]:
    """Return the columns of a Spark schema (JSON) that Arrow can read, each with the name of its type."""
    return {
        field["name"]: field["type"]
        for field in json.loads(schema)["fields"]
        if isinstance(field["type"], str) and (field["type"] in _READ_AS or field["type"].startswith("decimal("))
    }


def spark_schema(files: Iterable[tuple[str, pq.FileMetaData]], needed: Callable[[str], bool]) -> str:
    """Return the schema (JSON) that Spark infers from Parquet files. It has the columns of all files.

    ``files`` has pairs (name, footer). A column with several types is left out, unless it is ``needed``. Raises
    `UnsuitableError` if only Spark can infer the schema, and `MixedTypesError` for a needed column with several types.
    """
    columns: dict[str, tuple[dict[str, Any], str]] = {}
    mixed: set[str] = set()
    for file, footer in files:
        for field in _inferred(footer):
            name = field["name"]
            field_before, file_before = columns.setdefault(name, (field, file))
            kind = _merged(field_before["type"], field["type"])
            if kind is None and needed(name):
                raise MixedTypesError(name, (file_before, field_before["type"]), (file, field["type"]))
            mixed |= {name} if kind is None else set()
            columns[name] = {**field_before, "type": kind or field_before["type"]}, file_before
    if len({name.lower() for name in columns}) < len(columns):
        raise UnsuitableError("its files have columns that differ in case only")
    fields = [
        # For a column of nulls, Spark infers the type integer.
        {**field, "type": "integer"} if field["type"] == _VOID else field
        for name, (field, _) in columns.items()
        if name not in mixed
    ]
    return json.dumps({"fields": fields, "type": "struct"}, separators=(",", ":"), sort_keys=True)


def with_fields(schema: str, types: Mapping[str, str]) -> str:
    """Return a schema (JSON) with columns added at its end. As in Spark, a column that is already there gets the new type.

    Raises `UnsuitableError` for columns that differ in case only.
    """
    fields = json.loads(schema)["fields"]
    fields = [{**field, "type": types.get(field["name"], field["type"])} for field in fields]
    names = {field["name"].lower() for field in fields}
    own = {field["name"] for field in fields}
    if any(name.lower() in names for name in types if name not in own):
        raise UnsuitableError("its files and directories have columns that differ in case only")
    fields += json.loads(schema_of({name: kind for name, kind in types.items() if name not in own}))["fields"]
    return json.dumps({"fields": fields, "type": "struct"}, separators=(",", ":"), sort_keys=True)


def schema_of(types: Mapping[str, Any]) -> str:
    """Return columns and their types as Spark's schema (JSON)."""
    fields = [{"metadata": {}, "name": name, "nullable": True, "type": kind} for name, kind in types.items()]
    return json.dumps({"fields": fields, "type": "struct"})


def normalized(schema: str) -> str:
    """Return a schema (JSON) in the form in which Spark writes it."""
    return json.dumps(json.loads(schema), separators=(",", ":"), sort_keys=True)


def decimal_of(type_name: str) -> tuple[int, int]:
    """Return precision and scale of ``decimal(p,s)``."""
    precision, scale = type_name.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def arrow_type(type_name: str) -> pa.DataType:
    """Return the Arrow type with which a column of a type (Spark's name) is read."""
    if type_name.startswith("decimal("):
        return pa.decimal128(*decimal_of(type_name))
    return _READ_AS[type_name]


def check_stored(schema: pq.ParquetSchema, wanted: Mapping[str, str]) -> None:
    """Raise `UnsuitableError` if a file's type for a column does not fit (see `fits`), or its name is in another case."""
    stored = {field["name"]: field["type"] for field in _fields(schema, wanted)}
    lower = {_root(schema, number).lower() for number in range(len(schema))}
    for name, type_name in wanted.items():
        if name not in stored and name.lower() in lower:
            raise UnsuitableError(f"a file has another type or spelling for the column {name}")
        if name in stored and not fits(stored[name], type_name):
            raise UnsuitableError(f"a file stores the column {name} as {stored[name]}, not as {type_name}")


def in_micros(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return times as microseconds. Nanoseconds, for which Spark has no type, are rounded down."""
    return _thousandths(column).cast(kind)


def as_landed(column: pa.Array, type_name: Any, zone: str) -> pa.Array:
    """Return a column in the form in which a log stores it. Raises `UnsuitableError` for values that only Spark converts."""
    if type_name in TIMES:
        return _millis(column, type_name, zone)
    if type_name == "date":
        days = column.cast(pa.int32())
        bounds = pc.min_max(days).as_py()
        if bounds["min"] is not None and not _FIRST_DAY <= bounds["min"] <= bounds["max"] <= _LAST_DAY:
            raise UnsuitableError("it has dates outside the years 1 to 9999")
        return column.cast(pa.string())
    if type_name in ("float", "double"):
        # Adding 0.0 turns -0.0 into 0.0.
        return pc.add(column, 0.0)
    return column


def as_time(column: pa.Array, type_name: str, zone: str, unit: str = MILLISECONDS) -> pa.Array:
    """Return a column as epoch milliseconds. Integers in the column are in ``unit``.

    Raises `UnsuitableError` for a type or zone that only Spark converts.
    """
    if type_name in INTEGERS:
        return column if unit == MILLISECONDS else _from_unit(column, unit)
    if type_name in TIMES:
        return _millis(column, type_name, zone)
    if type_name == "date" and zone == "UTC":
        return pc.multiply(column.cast(pa.int32()).cast(pa.int64()), _DAY_MS)
    raise UnsuitableError(f"its times are {type_name} in the zone {zone}")


def type_name(column: pq.ColumnSchema) -> str | None:
    """Return Spark's name of a Parquet column's type; None for a nested type, or a type that Arrow reads differently."""
    if column.max_repetition_level or column.max_definition_level > 1:
        return None
    logical = json.loads(column.logical_type.to_json())
    match column.physical_type, logical["Type"]:
        case "INT32", "None":
            return "integer"
        case "INT32", "Null":
            return _VOID
        case "INT64", "None":
            return "long"
        case (("INT32" | "INT64"), "Int"):
            return (
                {8: "byte", 16: "short", 32: "integer", 64: "long"}[logical["bitWidth"]]
                if logical["isSigned"]
                else None
            )
        case "FLOAT", "None":
            return "float"
        case "DOUBLE", "None":
            return "double"
        case "BOOLEAN", "None":
            return "boolean"
        case "BYTE_ARRAY", ("String" | "Enum" | "JSON"):
            return "string"
        case "BYTE_ARRAY", "None":
            return "binary"
        case "INT32", "Date":
            return "date"
        case "INT64", "Timestamp":
            return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
        case (("INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY" | "BYTE_ARRAY"), "Decimal"):
            return f"decimal({logical['precision']},{logical['scale']})"
    return None


def fits(stored: str, wanted: str) -> bool:
    """Return whether Arrow reads a stored type exactly as the wanted type.

    It does if the types are the same, if the stored type is a narrower number, or if all stored values are null.
    """
    if stored == _VOID:
        return True
    if stored in INTEGERS and wanted in INTEGERS:
        return INTEGERS.index(stored) <= INTEGERS.index(wanted)
    return stored == wanted or (stored, wanted) == ("float", "double")


def unreadable_types(schema: pq.ParquetSchema) -> dict[str, str]:
    """Return the columns that no reader can read because of their type or the type of a nested field. Maps column to type."""
    columns = [schema.column(number) for number in range(len(schema))]
    types = {column.path.split(".")[0]: _unreadable_type(column) for column in columns}
    return {name: kind for name, kind in types.items() if kind is not None}


def _merged(kind_before: Any, other: Any) -> Any:
    """Return the type for a column that has two types; None if no single type can represent the values of both.

    Numbers get the wider type. Decimals of the same scale get the larger precision.
    """
    if other in (kind_before, _VOID):
        return kind_before
    if kind_before == _VOID:
        return other
    for numbers in (INTEGERS, ("float", "double")):
        if kind_before in numbers and other in numbers:
            return max(kind_before, other, key=numbers.index)
    if all(isinstance(kind, str) and kind.startswith("decimal(") for kind in (kind_before, other)):
        (digits, scale), (more, same) = decimal_of(kind_before), decimal_of(other)
        return f"decimal({max(digits, more)},{scale})" if scale == same else None
    return None


def _from_unit(column: pa.Array, unit: str) -> pa.Array:
    """Return times in another unit as milliseconds.

    Seconds whose milliseconds exceed 64 bits are null. Negative micro- and nanoseconds, which are invalid, stay as they are.
    """
    if unit == "s":
        # `pc.abs` would leave the smallest integer negative.
        fits = pc.and_(pc.less_equal(column, _MOST_SECONDS), pc.greater_equal(column, -_MOST_SECONDS))
        return pc.multiply(pc.if_else(fits, column, None), 1_000)
    return pc.if_else(pc.less(column, 0), column, pc.divide(column, {"us": 1_000, "ns": 1_000_000}[unit]))


def _millis(column: pa.Array, type_name: str, zone: str) -> pa.Array:
    if type_name == "timestamp_ntz" and zone != "UTC":
        raise UnsuitableError(f"its times have no zone, and the feed's is {zone}")
    return _thousandths(column)


def _thousandths(column: pa.Array) -> pa.Array:
    """Return times as integers of the next coarser unit, rounded down."""
    times = column.cast(pa.int64())
    whole = np.floor_divide(np.asarray(times.fill_null(0) if times.null_count else times), 1000)
    return pa.array(whole, pa.int64(), mask=np.asarray(times.is_null()) if times.null_count else None)


def _fields(schema: pq.ParquetSchema, wanted: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return a file's columns in the form of Spark's schema (JSON): those in ``wanted``, or all.

    Without ``wanted``, columns whose type no reader supports are left out. `UnsuitableError` is raised for any other type
    that Arrow cannot read.
    """
    fields = []
    for number in range(len(schema)):
        column = schema.column(number)
        name, is_nested = column.path, "." in column.path and column.path != column.name
        if wanted is None and not is_nested and _unreadable_type(column) is not None:
            continue
        kind = None if is_nested else type_name(column)
        if kind is None and wanted is None:
            raise UnsuitableError(f"the column {name} is {column.physical_type} {column.logical_type}")
        if kind is not None and (wanted is None or name in wanted):
            fields.append({"metadata": {}, "name": name, "nullable": True, "type": kind})
    return fields


def _inferred(file: pq.FileMetaData) -> list[dict[str, Any]]:
    """Return a file's columns as Spark infers them. A file that Spark wrote has Spark's schema in its footer."""
    fields = _fields(file.schema)
    written = (file.metadata or {}).get(_SPARK_SCHEMA)
    if written is None:
        return fields
    stated = [{**field, "nullable": True} for field in json.loads(written)["fields"]]
    if [(field["name"], field["type"]) for field in stated] != [(field["name"], field["type"]) for field in fields]:
        raise UnsuitableError("its files have columns of types that only Spark knows")
    return stated


def _root(schema: pq.ParquetSchema, number: int) -> str:
    return str(schema.column(number).path.split(".")[0])


def _unreadable_type(column: pq.ColumnSchema) -> str | None:
    """Return a column's type if no reader supports the type; otherwise None."""
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] == "Decimal" and logical["precision"] > _MOST_DIGITS:
        return f"DECIMAL({logical['precision']},{logical['scale']})"
    return _UNKNOWN.get(logical["Type"])


_SHOWN: Mapping[str, str] = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}


def shown_type(kind: str) -> str:
    """Return a type as in SQL."""
    return _SHOWN.get(kind, kind.upper())
