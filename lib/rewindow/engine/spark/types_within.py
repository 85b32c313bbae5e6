"""The types of which a nested type consists."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import types as T  # noqa: N812 - Spark's own convention


def types_within(kind: T.DataType) -> Iterator[T.DataType]:
    """Yield a type, and those of the items, fields and values in it, at any depth; not those of the keys of maps."""
    yield kind
    match kind:
        case T.ArrayType():
            yield from types_within(kind.elementType)
        case T.MapType():
            yield from types_within(kind.valueType)
        case T.StructType():
            for field in kind:
                yield from types_within(field.dataType)
