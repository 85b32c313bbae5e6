"""The columns that ``schema:`` declares, as Spark's types."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogSpec
from rewindow.errors import ConfigError


def declared_schema(spec: LogSpec, ddl: str) -> T.StructType:
    """Return the columns of a DDL text. Raises `ConfigError` (78) if it is none, or has what the format has not."""
    try:
        found = T.DataType.fromDDL(ddl)
    except Exception as error:
        message = f"log {spec.topic}: `schema: {ddl}` is not a list of columns like `a STRING, b BIGINT`"
        raise ConfigError(message) from error
    schema = found if isinstance(found, T.StructType) else T.StructType([T.StructField("value", found)])
    for field in schema if spec.source.format == "json" else ():
        if (key := _other_key(field.dataType)) is not None:
            message = (
                f"log {spec.topic}, `schema`: the keys of a map in {field.name} are {key.simpleString().upper()}, but names in "
                "JSON are texts: write MAP<STRING, ...>"
            )
            raise ConfigError(message)
    return schema


def _other_key(kind: T.DataType) -> T.DataType | None:
    """Return the type of the keys of a map in a type, if it is not a text."""
    match kind:
        case T.ArrayType():
            return _other_key(kind.elementType)
        case T.StructType():
            return next((key for field in kind if (key := _other_key(field.dataType)) is not None), None)
        case T.MapType():
            return _other_key(kind.valueType) if isinstance(kind.keyType, T.StringType) else kind.keyType
    return None
