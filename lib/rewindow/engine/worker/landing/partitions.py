"""Partitions of whole key columns: each distinct key is encoded and hashed once (`streams.serde.key_bytes`)."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindow.streams.serde.key_bytes import encode_key

NULL_PARTITION = 0
"""The partition of records without a key."""


def partitions_of(keys: Sequence[pa.Array], *, is_scalar: bool, partitions: int) -> pa.Array:
    """Return the partition of each row, by its landed key columns. A key of several columns is never null."""
    rows = len(keys[0])
    codes, values = zip(*map(_coded, keys), strict=True)
    if is_scalar:
        return pa.array(_hashed(values[0], partitions)[codes[0]])
    combined: npt.NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
    for code, distinct in zip(codes, values, strict=True):
        # Renumbered after each column, so the numbers never exceed rows times the distinct values of one column.
        combined = np.unique(combined * len(distinct) + code, return_inverse=True)[1].astype(np.int64)
    _, first = np.unique(combined, return_index=True)
    found = [tuple(distinct[code[row]] for code, distinct in zip(codes, values, strict=True)) for row in first.tolist()]
    return pa.array(_hashed(found, partitions)[combined])


def _coded(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[object]]:
    """Return a code for each row, and the value of each code; the last code is null's."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = coded.dictionary.to_pylist()
    indices = coded.indices.fill_null(len(values)) if coded.null_count else coded.indices
    return np.asarray(indices).astype(np.int64), [*values, None]


def _hashed(keys: Sequence[object], partitions: int) -> npt.NDArray[np.int32]:
    if keys and all(isinstance(key, str) for key in keys[:-1]) and keys[-1] is None:
        hashes = [crc32(key.encode()) for key in keys[:-1]]  # type: ignore[attr-defined] # all are str
        return np.array([*(found % partitions for found in hashes), NULL_PARTITION], dtype=np.int32)
    found = [NULL_PARTITION if key is None else crc32(encode_key(key)) % partitions for key in keys]
    return np.array(found, dtype=np.int32)
