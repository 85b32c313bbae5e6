"""The partition of a key: the CRC-32 of its bytes, modulo the number of partitions (ADR-4).

Each distinct key of a batch is encoded and hashed once (`streams.serde.key_bytes`). The batches of a source mostly have the
same keys, so the partitions of keys are cached for the next batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.streams.serde.key_bytes import encode_key

_NULL_PARTITION = 0
"""The partition of records without a key."""
_MOST_KEPT = 1 << 16
"""The most key values whose partitions are cached. If there are more, values rarely repeat, so only new ones are kept."""
_known: dict[int, tuple[pa.Array, npt.NDArray[np.int32]]] = {}
"""The cache: maps a number of partitions to the values of the last dictionaries and the partitions of these values."""


def partitions_of(keys: Sequence[pa.Array], *, is_scalar: bool, partitions: int) -> pa.Array:
    """Return the partition of each row, given its landed key columns. A key of several columns is never null."""
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
        # The combinations are renumbered after each column, so a number never exceeds the rows times a column's distinct values.
        combined = np.unique(combined * len(distinct) + code, return_inverse=True)[1].astype(np.int64)
    _, first_rows = np.unique(combined, return_index=True)
    distinct_keys = [
        tuple(distinct[code[row]] for code, distinct in zip(codes, values, strict=True)) for row in first_rows.tolist()
    ]
    return pa.array(_hashed(distinct_keys, partitions)[combined])


def _coded(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[object]]:
    """Return a code for each row, and the value of each code. The last code stands for null."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return _indices(coded).astype(np.int64), [*coded.dictionary.to_pylist(), None]


def _indices(coded: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Return the dictionary's index of each row. The index of null is the length of the dictionary."""
    indices = coded.indices.fill_null(len(coded.dictionary)) if coded.null_count else coded.indices
    return np.asarray(indices)


def _partitions_of_dictionary(dictionary: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """Return the partitions of a dictionary's values, followed by the partition of null.

    Cached values are not hashed again.
    """
    kept, of_kept = _known.get(partitions, (dictionary.slice(0, 0), np.zeros(0, np.int32)))
    if kept.type != dictionary.type:
        kept, of_kept = dictionary.slice(0, 0), of_kept[:0]
    positions = pc.index_in(dictionary, value_set=kept)
    is_new = np.asarray(positions.is_null())
    partition_of = np.full(len(dictionary) + 1, _NULL_PARTITION, np.int32)
    partition_of[:-1][~is_new] = of_kept[np.asarray(positions.drop_null())]
    if is_new.any():
        new = dictionary.filter(pa.array(is_new))
        of_new = _hashed([*new.to_pylist(), None], partitions)[:-1]
        partition_of[:-1][is_new] = of_new
        fits = len(kept) + len(new) <= _MOST_KEPT
        kept, of_kept = (
            (pa.concat_arrays([kept, new]), np.concatenate([of_kept, of_new])) if fits else (new[:_MOST_KEPT], of_new)
        )
        _known[partitions] = kept, of_kept[:_MOST_KEPT]
    return partition_of


def _hashed(keys: Sequence[object], partitions: int) -> npt.NDArray[np.int32]:
    if keys and all(isinstance(key, str) for key in keys[:-1]) and keys[-1] is None:
        hashes = [crc32(key.encode()) for key in keys[:-1]]  # type: ignore[attr-defined] # all are str
        return np.array([*(number % partitions for number in hashes), _NULL_PARTITION], dtype=np.int32)
    numbers = [_NULL_PARTITION if key is None else crc32(encode_key(key)) % partitions for key in keys]
    return np.array(numbers, dtype=np.int32)
