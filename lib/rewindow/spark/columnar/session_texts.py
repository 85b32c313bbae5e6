"""What the texts of sessions' lists take, record by record: a session that became another leaves a tombstone of its size.

A result of counts and lists only grows, so its size follows from how many records there were and the bytes of their texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.spark.columnar.folds import CountFold, Fold, Operands
from rewindow.spark.columnar.frame import Array
from rewindow.spark.columnar.lists import CollectFold
from rewindow.spark.columnar.numbers import UnfitError
from rewindow.spark.columnar.sizes import ResultSizes

Session = tuple[int, int, int]
"""The number of a key, start and end."""


class SessionTexts:
    """How far each session has grown, by slot, and the sizes of those that became others."""

    def __init__(self, sizes: ResultSizes) -> None:
        """Begin without sessions."""
        self._folds = sizes.folds
        self._lists = [fold for fold in sizes.folds if isinstance(fold, CollectFold)]
        self._counts = len(sizes.folds) - len(self._lists)
        self._least = sizes.row_bytes + len(self._lists)
        """The size of a result without its counts and items: `bytes` has a comma after each item, so one bracket is paid."""
        self.records: list[int] = []
        self.bytes: list[int] = []
        self.sizes: dict[Session, int] = {}
        """The encoded sizes of results, by the bounds that are no more."""

    def lengths(self, operands: Operands, rows: int) -> list[int]:
        """Return for each record the bytes of its texts, with the commas after them."""
        total = np.zeros(rows, np.int64)
        for fold in self._lists:
            total += np.asarray(pc.binary_length(pa.array(operands[fold.operand].values, pa.string()))) + 1
        return list(total.tolist())

    def add(self) -> None:
        """Make a session: the next slot."""
        self.records.append(0)
        self.bytes.append(0)

    def take(self, slot: int, length: int) -> None:
        """Add a record to a session."""
        self.records[slot] += 1
        self.bytes[slot] += length

    def merge(self, slot: int, joined: Sequence[int]) -> None:
        """Make a session of others."""
        self.records[slot] = sum(self.records[one] for one in joined)
        self.bytes[slot] = sum(self.bytes[one] for one in joined)

    def replace(self, session: Session, slot: int) -> None:
        """Note that the bounds of a session are no more."""
        self.sizes[session] = self._least + self.bytes[slot] + self._counts * len(str(self.records[slot]))

    def restore(self, slots: Array, state: Sequence[pa.Array]) -> None:
        """Take in sessions of a checkpoint. Raises `UnfitError` for lists of nothing: the lane makes none."""
        for fold, column in zip(self._folds, state, strict=True):
            if isinstance(fold, CollectFold):
                for slot, size in zip(slots.tolist(), pc.binary_length(column).to_pylist(), strict=True):
                    if size == len("[]"):
                        raise UnfitError
                    self.bytes[slot] += size - 1
            else:
                for slot, count in zip(slots.tolist(), column.to_pylist(), strict=True):
                    self.records[slot] = count

    def keep(self, kept: Sequence[bool], ends_from_ms: int) -> None:
        """Forget sessions, and the bounds that ended before a time."""
        self.records = [one for one, stays in zip(self.records, kept, strict=True) if stays]
        self.bytes = [one for one, stays in zip(self.bytes, kept, strict=True) if stays]
        self.sizes = {session: size for session, size in self.sizes.items() if session[2] >= ends_from_ms}


def only_grow(folds: Sequence[Fold]) -> bool:
    """Return whether results are counts and lists."""
    return all(isinstance(fold, CountFold | CollectFold) for fold in folds)
