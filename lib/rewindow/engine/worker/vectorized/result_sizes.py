"""The encoded sizes of results (`streams.serde.key_bytes.encoded_size`), which are part of the entries of a suppress.

The size of a bare result is the number of its bytes. The size of a row is the sum of its items' bytes, plus 4 bytes per item.
A list has no such encoding, so the size of a result with a list is that of its canonical JSON.

A replaced session leaves a tombstone, whose size depends on the session's size. So the sizes of sessions are needed after
each record. Results with lists consist of counts and lists, which only grow. So the number of records and the sizes of their
texts determine the size of such a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.vectorized.arrays import Array, GroupFrame
from rewindow.engine.worker.vectorized.folds import ITEM_BYTES, CountFold, Fold, Operands
from rewindow.engine.worker.vectorized.json_columns import text_bytes
from rewindow.engine.worker.vectorized.value_folds import CollectFold

Session = tuple[int, int, int]
"""A session: key number, start and end (epoch ms)."""
Grown = tuple[int, int]
"""A record's addition to the lists of a session: the size of its texts, each with a comma, and a bit mask of the lists."""
_MOST_LISTS = 63


class ResultSizes(NamedTuple):
    """Computes the sizes of results. ``names``: the names of a row's items; empty for a bare result."""

    folds: Sequence[Fold]
    names: Sequence[str]

    @property
    def are_texts(self) -> bool:
        """Whether the sizes of results are the sizes of their JSON texts."""
        return any(isinstance(fold, CollectFold) for fold in self.folds)

    @property
    def row_bytes(self) -> int:
        """The number of bytes of a row that do not belong to its items."""
        if not self.names:
            return 0
        if not self.are_texts:
            return ITEM_BYTES * len(self.names)
        # Two braces are added. The last field has no comma.
        return 1 + sum(len(f'"{name}":,'.encode()) for name in self.names)

    def of(self, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        """Return two arrays with the sizes of the groups' results: with the last row of each group, and without it."""
        both = [self._of_one(fold, frame, slots) for fold in self.folds]
        now, before = (np.sum(sizes, axis=0) + self.row_bytes for sizes in zip(*both, strict=True))
        return np.asarray(now), np.asarray(before)

    def _of_one(self, fold: Fold, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        if not self.are_texts:
            return fold.sizes(frame, slots)
        results: tuple[pa.Array, pa.Array] = fold.result(frame, slots), fold.before(frame, slots)
        now, before = (text_bytes(result, fold.result_type) for result in results)
        return now, before


class SessionTexts:
    """For each slot, the numbers that determine the size of a session's result. Also the result sizes of replaced sessions."""

    def __init__(self, sizes: ResultSizes) -> None:
        """Start without sessions."""
        self._folds = sizes.folds
        self._lists = [fold for fold in sizes.folds if isinstance(fold, CollectFold)]
        self._counts = len(sizes.folds) - len(self._lists)
        self._row_bytes = sizes.row_bytes
        self.records: list[int] = []
        self.bytes: list[int] = []
        self.filled: list[int] = []
        self.sizes: dict[Session, int] = {}
        """The encoded size of the result of each replaced session."""

    def grown(self, operands: Operands, rows: int) -> list[Grown]:
        """Return for each of the ``rows`` records what it adds to the lists of its session."""
        total, filled = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        for number, fold in enumerate(self._lists):
            texts, valid = operands[fold.operand]
            sizes = np.asarray(pc.binary_length(pa.array(texts, pa.string()))) + 1
            total += sizes if valid is None else np.where(valid, sizes, 0)
            filled |= (np.ones(rows, np.int64) if valid is None else valid.astype(np.int64)) << number
        return list(zip(total.tolist(), filled.tolist(), strict=True))

    def add(self) -> None:
        """Add a session in the next slot."""
        self.records.append(0)
        self.bytes.append(0)
        self.filled.append(0)

    def take(self, slot: int, grown: Grown) -> None:
        """Add a record to a session."""
        self.records[slot] += 1
        self.bytes[slot] += grown[0]
        self.filled[slot] |= grown[1]

    def merge(self, slot: int, joined: Sequence[int]) -> None:
        """Set the numbers of the new session ``slot`` to the sums of those of the sessions ``joined``, which it replaces."""
        self.records[slot] = sum(self.records[session] for session in joined)
        self.bytes[slot] = sum(self.bytes[session] for session in joined)
        for session in joined:
            self.filled[slot] |= self.filled[session]

    def replace(self, session: Session, slot: int) -> None:
        """Record the size of a session that is replaced."""
        # The last item of a list has no comma.
        brackets = 2 * len(self._lists) - self.filled[slot].bit_count()
        counts = self._counts * len(str(self.records[slot]))
        self.sizes[session] = self._row_bytes + brackets + self.bytes[slot] + counts

    def restore(self, slots: Array, state: Sequence[pa.Array]) -> None:
        """Restore sessions from a checkpoint."""
        for fold, column in zip(self._folds, state, strict=True):
            if not isinstance(fold, CollectFold):
                for slot, count in zip(slots.tolist(), column.to_pylist(), strict=True):
                    self.records[slot] = count
                continue
            bit = 1 << self._lists.index(fold)
            for slot, size in zip(slots.tolist(), pc.binary_length(column).to_pylist(), strict=True):
                if size > len("[]"):
                    self.bytes[slot] += size - 1
                    self.filled[slot] |= bit

    def keep(self, kept: Sequence[bool], ends_from_ms: int) -> None:
        """Drop the sessions whose slot is false in ``kept``, and sizes of replaced sessions that ended before a time."""
        for name in ("records", "bytes", "filled"):
            setattr(self, name, [entry for entry, stays in zip(getattr(self, name), kept, strict=True) if stays])
        self.sizes = {session: size for session, size in self.sizes.items() if session[2] >= ends_from_ms}


def only_grow(folds: Sequence[Fold]) -> bool:
    """Return whether results consist only of counts and of lists, and there are not too many lists for the bit mask."""
    return len(folds) < _MOST_LISTS and all(isinstance(fold, CountFold | CollectFold) for fold in folds)
