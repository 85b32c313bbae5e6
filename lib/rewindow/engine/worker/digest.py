"""A digest of rows. It depends neither on their order nor on how they are split into batches, row groups or files.

Each row has a hash of 64 bits, which depends on the names and values of its columns. The digest consists of two different sums
of the hashes. So if the digests of several files are added, the result is the digest of all their rows. The digest detects
accidents (a lost, duplicated or altered row), but not tampering. Floats are compared as values: -0.0 equals 0.0, and all NaNs are
equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]

_BLOCK = 8192
"""This many rows are hashed at once: a block that fits into the processor's cache. The digest does not depend on the number."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_BASE = 0xD6E8FEB86659FD93
_BASE_INVERSE = pow(_BASE, -1, 2**64)
_NULL = np.uint64(0x6E756C6C6E756C6C)
_SHIFT = np.uint64(32)
_MASK = 2**64 - 1


class RowsDigest:
    """The digest of the record batches so far. Columns in ``leave_out`` are ignored."""

    def __init__(self, leave_out: Sequence[str] = ("_run",)) -> None:
        """Start with the digest of no rows."""
        self._leave_out = frozenset(leave_out)
        self._sums = [0, 0]

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        for start in range(0, batch.num_rows, _BLOCK):
            rows = _row_words(batch.slice(start, _BLOCK), self._leave_out)
            self._sums[0] += int(rows.sum(dtype=np.uint64))
            self._sums[1] += int(_mixed(rows * _SECOND).sum(dtype=np.uint64))

    def hexdigest(self) -> str:
        """Return the digest of all rows so far: 32 hexadecimal digits."""
        return "".join(f"{total & _MASK:016x}" for total in self._sums)


def digest_of(rows: pa.Table) -> str:
    """Return the digest of rows, without the column ``_run``."""
    digest = RowsDigest()
    for batch in rows.to_batches():
        digest.update(batch)
    return digest.hexdigest()


def row_hashes(rows: pa.RecordBatch) -> Words:
    """Return one hash per row, computed from the names and values of its columns. There is at least one row."""
    starts = range(0, rows.num_rows, _BLOCK)
    return np.concatenate([_row_words(rows.slice(start, _BLOCK), frozenset()) for start in starts])


def _row_words(block: pa.RecordBatch, leave_out: frozenset[str]) -> Words:
    rows = np.zeros(block.num_rows, dtype=np.uint64)
    for name, column in zip(block.schema.names, block.columns, strict=True):
        if name not in leave_out:
            words = _column_words(column)
            words += _column_seed(name)
            words *= _ODD
            rows += _mixed(words)
    rows *= _MIX
    return _mixed(rows)


def _mixed(words: Words) -> Words:
    words ^= words >> _SHIFT
    words *= _MIX
    words ^= words >> _SHIFT
    return words


def _column_seed(name: str) -> np.uint64:
    seed = _SEEDS.get(name)
    if seed is None:
        seed = _SEEDS[name] = np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big"))
    return seed


_SEEDS: dict[str, np.uint64] = {}


def _column_words(column: pa.Array) -> Words:
    words = _value_words(column)
    if column.null_count:
        words[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return words


def _value_words(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _bytes_words(column)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        whole = pc.fill_null(column, False if pa.types.is_boolean(kind) else 0) if column.null_count else column
        return np.array(whole if kind == pa.int64() else whole.cast(pa.int64())).view(np.uint64)
    if pa.types.is_floating(kind):
        whole = pc.fill_null(column, 0.0) if column.null_count else column
        floats = np.asarray(whole.cast(pa.float64())) + 0.0
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.uint64)
    return _bytes_words(column.cast(pa.string()))


def _bytes_words(column: pa.Array) -> Words:
    """Return a polynomial hash of each value's bytes and length, in one pass over all bytes."""
    rows = len(column)
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + rows + 1].astype(
        np.int64
    )
    start, end = int(offsets[0]), int(offsets[-1])
    starts = offsets[:-1] - start
    lengths = offsets[1:] - offsets[:-1]
    words = np.zeros(rows, dtype=np.uint64)
    if end > start:
        data = np.frombuffer(column.buffers()[2], dtype=np.uint8)[start:end].astype(np.uint64)
        data += np.uint64(1)
        powers, inverses = _powers(end - start)
        data *= powers
        filled = lengths > 0
        words[filled] = np.add.reduceat(data, starts[filled])
        words *= inverses[starts.clip(max=end - start - 1)]
    words += lengths.astype(np.uint64) * _SECOND
    return words


def _powers(count: int) -> tuple[Words, Words]:
    """Return the first ``count`` powers of the hash's base and of the base's inverse, modulo 2**64."""
    cached: tuple[Words, Words] | None = _POWERS.get("all")
    if cached is None or len(cached[0]) < count:
        size = max(1 << 16, 1 << (count - 1).bit_length())
        cached = (_power_table(_BASE, size), _power_table(_BASE_INVERSE, size))
        _POWERS["all"] = cached
    return cached[0][:count], cached[1][:count]


def _power_table(base: int, size: int) -> Words:
    table: Any = np.full(size, base, dtype=np.uint64)
    table[0] = 1
    return np.multiply.accumulate(table, dtype=np.uint64)


_POWERS: dict[str, tuple[Words, Words]] = {}
