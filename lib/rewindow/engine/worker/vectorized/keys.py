"""Number the distinct keys of a task, so that groups can be found with integers instead of keys."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.arrow_rows import arrow_type, distinct
from rewindow.engine.worker.vectorized.arrays import LONG_BYTES, Array
from rewindow.engine.worker.vectorized.folds import ITEM_BYTES
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.serde.schema import Shape

SPARSE = 8
"""If there are more possible positions per row than this, rows are sorted. Otherwise rows are put into an array at their
positions."""

_LONG = struct.Struct(">q")


class KeyTable:
    """The distinct keys of a task, and their numbers from 0 on."""

    def __init__(self, key: Shape) -> None:
        """Start without keys. A bare key may be null; a row of columns is never null."""
        self._types = [arrow_type(column.type) for column in key.columns]
        self._is_bare = key.is_bare
        self._numbers: dict[Any, int] = {}
        self._chunks: list[list[pa.Array]] = [[pa.array([], kind)] for kind in self._types]
        self._has_zero_bytes = False
        self._recent: list[tuple[pa.Array, Array]] = []
        """For each of the last two dictionaries, a pair (dictionary, numbers of its keys). There are two because a task may
        read two topics alternately."""
        self._ranks = np.empty(0, np.int64)
        """The rank of each key in the order of key bytes. The ranks are out of date if there are not as many as keys."""

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._numbers)

    def numbers(self, columns: Sequence[pa.Array]) -> Array:
        """Return the key number of each row; -1 for a null key. New keys get numbers. Columns may be dictionary-encoded."""
        if self._is_bare:
            return self._numbers_of_one(columns[0])
        codes, first_rows = _codes(columns)
        distinct = [column.take(pa.array(first_rows)) for column in map(decode_dictionary, columns)]
        numbers = self._take(list(zip(*(column.to_pylist() for column in distinct), strict=True)), distinct)
        return np.asarray(numbers[codes])

    def columns(self, numbers: Array) -> list[pa.Array]:
        """Return the columns of the keys with the given numbers; nulls for -1."""
        index = pa.array(numbers, mask=numbers < 0)
        taken = []
        for chunks in self._chunks:
            if len(chunks) > 1:
                chunks[:] = [pa.concat_arrays(chunks)]
            taken.append(chunks[0].take(index))
        return taken

    def sizes(self, numbers: Array) -> Array:
        """Return the encoded sizes, in bytes, of the keys with the given numbers."""
        sizes = [_sizes(column) for column in self.columns(numbers)]
        return np.asarray(sizes[0] if self._is_bare else np.sum(sizes, axis=0) + ITEM_BYTES * len(sizes))

    def keep(self, numbers: Array) -> None:
        """Keep only these keys and renumber them 0, 1, 2, ..."""
        columns = self.columns(numbers)
        self._chunks = [[column] for column in columns]
        self._numbers = {key: number for number, key in enumerate(self._values(columns))}
        self._recent = []
        self._ranks = np.empty(0, np.int64)

    def ranks(self, numbers: Array) -> Array:
        """Among the keys with the given numbers, return the rank of each key in the order of key bytes.

        Equal keys have equal ranks.
        """
        wanted = distinct(numbers)
        ranks = np.empty(len(wanted), np.int64)
        ranks[self._sorted(wanted)] = np.arange(len(wanted))
        if len(numbers) * SPARSE < len(self):
            return np.asarray(ranks[np.searchsorted(wanted, numbers)])
        of_number = np.empty(len(self), np.int64)
        of_number[wanted] = ranks
        return np.asarray(of_number[numbers])

    def order(self, starts: Array, numbers: Array, *, with_start: bool) -> Array:
        """Return the indexes that sort windows by start and key bytes, given their starts and key numbers.

        ``with_start``: whether to append the start to the key bytes, as a suppress does.
        """
        if len(numbers) == 0:
            return np.empty(0, np.int64)
        if with_start and self._has_zero_bytes and self._is_bare:
            return self._order_by_bytes(starts, starts, numbers)
        self._rank()
        distinct, windows = np.unique(starts, return_inverse=True)
        positions = windows * len(self) + self._ranks[numbers]
        if len(distinct) * len(self) > SPARSE * len(numbers):
            return np.argsort(positions)
        row_at = np.full(len(distinct) * len(self), -1)
        row_at[positions] = np.arange(len(numbers))
        return row_at[row_at >= 0]

    def order_by_ends(self, ends: Array, starts: Array, numbers: Array) -> Array:
        """Return the indexes that sort windows by end and key bytes, to which the start is appended, as a suppress does."""
        if self._has_zero_bytes and self._is_bare:
            return self._order_by_bytes(ends, starts, numbers)
        self._rank()
        return np.lexsort((starts, self._ranks[numbers], ends))

    def _rank(self) -> None:
        """Compute the position of each key in the order of key bytes."""
        if len(self._ranks) != len(self):
            self._ranks = np.empty(len(self), np.int64)
            self._ranks[self._sorted(np.arange(len(self)))] = np.arange(len(self))

    def _sorted(self, numbers: Array) -> Array:
        """Return the indexes that sort the keys with the given numbers by key bytes."""
        columns = self.columns(numbers)
        if self._is_bare and (pa.types.is_string(self._types[0]) or pa.types.is_binary(self._types[0])):
            return np.asarray(pc.sort_indices(columns[0]))
        if self._is_bare and pa.types.is_integer(self._types[0]):
            # Read as unsigned numbers, negative numbers sort last, as their key bytes do.
            return np.argsort(np.asarray(columns[0]).view(np.uint64))
        encoded = [encode_key(key) for key in self._values(columns)]
        return np.array(sorted(range(len(encoded)), key=encoded.__getitem__), np.int64)

    def _order_by_bytes(self, times: Array, starts: Array, numbers: Array) -> Array:
        """Return the indexes that sort windows by ``times`` and key bytes with starts, for keys that contain zero bytes.

        If a start is appended, the key ``a`` followed by a zero byte may sort before the key ``a``.
        """
        encoded = [encode_key(key) for key in self._values(self.columns(numbers))]
        timed = zip(times.tolist(), starts.tolist(), encoded, strict=True)
        rows = [(time, key + _LONG.pack(start)) for time, start, key in timed]
        return np.array(sorted(range(len(rows)), key=rows.__getitem__), np.int64)

    def _values(self, columns: Sequence[pa.Array]) -> Any:
        lists = [column.to_pylist() for column in columns]
        return lists[0] if self._is_bare else zip(*lists, strict=True)

    def _numbers_of_one(self, column: pa.Array) -> Array:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        dictionary, indices = encoded.dictionary, encoded.indices
        numbers = self._numbers_of_dictionary(dictionary)
        if indices.null_count == 0:
            return numbers.take(np.asarray(indices))
        of_rows = numbers[np.asarray(pc.fill_null(indices, 0))] if len(dictionary) else np.empty(len(column))
        return np.where(np.asarray(indices.is_null()), -1, of_rows).astype(np.int64)

    def _numbers_of_dictionary(self, dictionary: pa.Array) -> Array:
        for previous, numbers in self._recent:
            if dictionary.equals(previous):
                return numbers
        numbers = self._take(dictionary.to_pylist(), [dictionary])
        self._recent = [*self._recent[-1:], (dictionary, numbers)]
        return numbers

    def _take(self, keys: list[Any], columns: Sequence[pa.Array]) -> Array:
        """Return the numbers of distinct keys, and add new keys to the table. ``columns`` has the same keys as columns."""
        numbers, count_before = self._numbers, len(self._numbers)
        result = np.array(_numbered(numbers, keys), np.int64)
        if len(numbers) > count_before:
            fresh = np.flatnonzero(result >= count_before)
            new = pa.array(fresh[np.unique(result[fresh], return_index=True)[1]])
            for chunks, column, kind in zip(self._chunks, columns, self._types, strict=True):
                chunks.append(column.take(new).cast(kind))
            if self._is_bare and (pa.types.is_string(self._types[0]) or pa.types.is_binary(self._types[0])):
                texts = self._chunks[0][-1].cast(pa.binary())
                self._has_zero_bytes |= bool(pc.any(pc.match_substring(texts, b"\0")).as_py())
        return result


def _numbered(numbers: dict[Any, int], keys: list[Any]) -> list[int]:
    """Return the numbers of keys. New keys are added with the next numbers.

    Most batches have no new key, and a restored store has only new keys. Both cases have a fast path.
    """
    if not numbers:
        numbers.update(zip(keys, range(len(keys)), strict=True))
        if len(numbers) == len(keys):
            return list(range(len(keys)))
        # There are fewer numbers than keys if some keys are equal in Python but differ in the column, as 0.0 and -0.0 do.
        numbers.clear()
    known_numbers = list(map(numbers.get, keys))
    if None not in known_numbers:
        return cast("list[int]", known_numbers)
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _sizes(column: pa.Array) -> Array:
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return np.asarray(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)
    size = 1 if pa.types.is_boolean(column.type) else LONG_BYTES
    return np.asarray(column.is_valid()).astype(np.int64) * size


def decode_dictionary(column: pa.Array) -> pa.Array:
    """Return a column without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _codes(columns: Sequence[pa.Array]) -> tuple[Array, Array]:
    """Return a code for each row, and the first row of each code. Rows that are equal in all columns have the same code."""
    rows = len(columns[0])
    codes = np.zeros(rows, np.int64)
    for column in columns:
        encoded = decode_dictionary(column).dictionary_encode(null_encoding="encode")
        mixed = codes * max(1, len(encoded.dictionary)) + np.asarray(encoded.indices)
        codes = np.asarray(pa.array(mixed).dictionary_encode().indices)
    first_rows = np.empty(int(codes.max()) + 1 if rows else 0, np.int64)
    first_rows[codes[::-1]] = np.arange(rows)[::-1]
    return codes, first_rows
