"""Partitions of whole key columns: each distinct key of a batch is encoded and hashed once (`streams.serde.key_bytes`).

Batches of a source mostly have the same keys. Their partitions are remembered for the next batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.streams.serde.key_bytes import encode_key

NULL_PARTITION = 0
"""The partition of records without a key."""

_MOST_KEPT = 1 << 16
"""More values are not worth their memory: they hardly repeat."""


def partitions_of(keys: Sequence[pa.Array], *, is_scalar: bool, partitions: int) -> pa.Array:
    """Return the partition of each row, by its landed key columns. A key of several columns is never null."""
    rows = len(keys[0])
    if is_scalar and pa.types.is_string(keys[0].type):
        keys = [keys[0].dictionary_encode()]
    if is_scalar and pa.types.is_dictionary(keys[0].type):
        return pa.array(_partitions_of_dictionary(keys[0].dictionary, partitions)[_indices(keys[0])])
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
    return _indices(coded).astype(np.int64), [*coded.dictionary.to_pylist(), None]


def _indices(coded: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Return the codes of the rows; a null has the one behind the last."""
    indices = coded.indices.fill_null(len(coded.dictionary)) if coded.null_count else coded.indices
    return np.asarray(indices)


def _partitions_of_dictionary(dictionary: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """Return the partition of each distinct value, and of null. Only values that the last dictionaries lack are hashed."""
    known, of_known = _known.get(partitions, (dictionary.slice(0, 0), np.zeros(0, np.int32)))
    if known.type != dictionary.type:
        known, of_known = dictionary.slice(0, 0), of_known[:0]
    at = pc.index_in(dictionary, value_set=known)
    is_new = np.asarray(at.is_null())
    found = np.full(len(dictionary) + 1, NULL_PARTITION, np.int32)
    found[:-1][~is_new] = of_known[np.asarray(at.drop_null())]
    if is_new.any():
        new = dictionary.filter(pa.array(is_new))
        of_new = _hashed([*new.to_pylist(), None], partitions)[:-1]
        found[:-1][is_new] = of_new
        fits = len(known) + len(new) <= _MOST_KEPT
        known, of_known = (
            (pa.concat_arrays([known, new]), np.concatenate([of_known, of_new])) if fits else (new[:_MOST_KEPT], of_new)
        )
        _known[partitions] = known, of_known[:_MOST_KEPT]
    return found


_known: dict[int, tuple[pa.Array, npt.NDArray[np.int32]]] = {}
"""By number of partitions: values of the last dictionaries, and their partitions."""


def _hashed(keys: Sequence[object], partitions: int) -> npt.NDArray[np.int32]:
    if keys and all(isinstance(key, str) for key in keys[:-1]) and keys[-1] is None:
        hashes = [crc32(key.encode()) for key in keys[:-1]]  # type: ignore[attr-defined] # all are str
        return np.array([*(found % partitions for found in hashes), NULL_PARTITION], dtype=np.int32)
    found = [NULL_PARTITION if key is None else crc32(encode_key(key)) % partitions for key in keys]
    return np.array(found, dtype=np.int32)
