"""The content hash of rows (L2).

Two sets of rows have the same hash if and only if they contain the same rows, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc


def hash_rows(rows: pa.Table, *, exclude: Sequence[str] = ()) -> str:
    """Return the content hash of rows (32 hexadecimal digits)."""
    names = sorted(name for name in rows.column_names if name not in exclude)
    canonical = pa.table([canonical_values(rows[name]) for name in names], names=names)
    ordered = sorted_rows(canonical)
    digest = blake2b(digest_size=16)
    digest.update(f"{ordered.num_rows}".encode())
    for name in names:
        column = ordered[name].combine_chunks()
        digest.update(json.dumps([name, str(column.type)]).encode())
        for part in _canonical_bytes(column):
            digest.update(part)
    return digest.hexdigest()


def sorted_rows(rows: pa.Table) -> pa.Table:
    """Return the rows in total order: by all columns from left to right, nulls last."""
    if rows.num_columns == 0 or rows.num_rows == 0:
        return rows
    keys = [(name, "ascending") for name in rows.column_names]
    return rows.take(pc.sort_indices(rows, sort_keys=keys)).combine_chunks()


def canonical_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column's values in the form in which they are compared. -0.0 becomes 0.0, and every NaN becomes the same NaN."""
    if not pa.types.is_floating(column.type):
        return column
    # Adding 0.0 turns -0.0 into 0.0.
    whole = pc.add(column, 0.0)
    return pc.if_else(pc.is_nan(whole), pa.scalar(float("nan"), column.type), whole)


def _canonical_bytes(column: pa.Array) -> list[bytes]:
    nulls = column.is_null().cast(pa.uint8()).to_numpy(zero_copy_only=False).tobytes()
    kind = column.type
    if pa.types.is_boolean(kind):
        column, kind = column.cast(pa.int8()), pa.int8()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return [nulls, pc.fill_null(column, 0).to_numpy(zero_copy_only=False).tobytes()]
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    texts = pc.fill_null(column.cast(pa.large_binary()), b"")
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).tobytes()
    return [nulls, lengths, b"".join(texts.to_pylist())]
