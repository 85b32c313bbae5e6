"""The columns that ``schema:`` declares, as Spark's types."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogSpec
from rewindow.engine.spark.types_within import types_within
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
        keys = [kind.keyType for kind in types_within(field.dataType) if isinstance(kind, T.MapType)]
        if (key := next((key for key in keys if not isinstance(key, T.StringType)), None)) is not None:
            message = (
                f"log {spec.topic}, `schema`: the keys of a map in {field.name} are {key.simpleString().upper()}, but names in "
                "JSON are texts: write MAP<STRING, ...>"
            )
            raise ConfigError(message)
    return schema
