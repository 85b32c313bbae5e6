"""Convert whole columns to canonical JSON (`streams.serde.canonical_json`): a text for each value, or for each row of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from json import JSONEncoder
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.vectorized.arrays import Array, Operand, objects
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.schema import Column

NULL = "null"

_dump_text = JSONEncoder(ensure_ascii=False).encode


class Texts(NamedTuple):
    """A JSON text for each record, as an operand: the text of one value column, or of a row of several columns."""

    indexes: tuple[int, ...]
    columns: tuple[Column, ...]
    is_row: bool

    def of(self, columns: Sequence[pa.Array]) -> Operand:
        """Return the texts of columns. The text of a row is never null."""
        texts_by_column = [texts_of(values, column.type) for values, column in zip(columns, self.columns, strict=True)]
        if not self.is_row:
            return texts_by_column[0]
        parts: list[Any] = []
        for number, (column, (texts, valid)) in enumerate(zip(self.columns, texts_by_column, strict=True)):
            filled = texts if valid is None else np.where(valid, texts, NULL)
            parts += [repeat(f"{',' if number else '{'}{_dump_text(column.name)}:"), filled.tolist()]
        return Operand(objects(["".join(row) for row in zip(*parts, repeat("}"), strict=False)]), None)


def texts_of(column: pa.Array, column_type: str) -> Operand:
    """Return the texts of a column's values, and a mask of the values that are not null. A JSON ``null`` counts as null."""
    rows = len(column)
    encoded = column.dictionary_encode()
    write = _writer(column_type)
    distinct = objects([write(value) for value in encoded.dictionary.to_pylist()])
    if len(distinct) == 0:
        return Operand(np.full(rows, NULL, np.object_), np.zeros(rows, np.bool_) if rows else None)
    texts = distinct[np.asarray(pc.fill_null(encoded.indices, 0))]
    valid = np.asarray(column.is_valid()) if column.null_count else None
    if column_type == "json" and NULL in distinct.tolist():
        is_no_null = texts != NULL
        valid = is_no_null if valid is None else is_no_null & valid
    return Operand(texts, valid)


def text_bytes(column: pa.Array, column_type: str) -> Array:
    """Return the sizes in bytes of the texts of a column's values. The values of a ``json`` column are already texts."""
    if column_type == "json":
        return np.asarray(pc.fill_null(pc.binary_length(column), len(NULL))).astype(np.int64)
    write = _writer(column_type)
    sizes = [len(NULL) if value is None else len(write(value).encode()) for value in column.to_pylist()]
    return np.array(sizes, np.int64)


def _writer(column_type: str) -> Callable[[Any], str]:
    """Return a faster `dump_value` for the values of a column type. It does not check the class of each value."""
    return _WRITERS.get(column_type, dump_value)


def _double(value: float) -> str:
    return repr(value + 0.0) if math.isfinite(value) else dump_value(value)


_WRITERS: dict[str, Callable[[Any], str]] = {
    "string": _dump_text,
    "long": str,
    "double": _double,
    "json": lambda text: dump_value(load_value(text)),
}
