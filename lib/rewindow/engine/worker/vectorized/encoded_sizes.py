"""What results take in the documented encoding: it stands in the entries of a suppress (`streams.serde.key_bytes.encoded_size`).

A bare result has its own bytes, a row those of its items and 4 for each; but where one item is a list, which has no bytes,
all is measured by its canonical text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.canonical_json import text_bytes
from rewindow.engine.worker.vectorized.collect import CollectFold
from rewindow.engine.worker.vectorized.folds import ITEM_BYTES, Fold
from rewindow.engine.worker.vectorized.slots import Array, Frame


class ResultSizes(NamedTuple):
    """Sizes of the results of groups. ``names``: those of a row's items, none for a bare result."""

    folds: Sequence[Fold]
    names: Sequence[str]

    @property
    def are_texts(self) -> bool:
        """Whether it is texts that are measured."""
        return any(isinstance(fold, CollectFold) for fold in self.folds)

    @property
    def row_bytes(self) -> int:
        """What a row takes besides its items."""
        if not self.names:
            return 0
        if not self.are_texts:
            return ITEM_BYTES * len(self.names)
        return 1 + sum(len(f'"{name}":,'.encode()) for name in self.names)  # two braces, and no comma after the last

    def of(self, frame: Frame, slots: Array) -> tuple[Array, Array]:
        """Return the sizes of groups' results, now and before their last rows."""
        both = [self._of_one(fold, frame, slots) for fold in self.folds]
        now, before = (np.sum(sizes, axis=0) + self.row_bytes for sizes in zip(*both, strict=True))
        return np.asarray(now), np.asarray(before)

    def _of_one(self, fold: Fold, frame: Frame, slots: Array) -> tuple[Array, Array]:
        if not self.are_texts:
            return fold.sizes(frame, slots)
        results: tuple[pa.Array, pa.Array] = fold.result(frame, slots), fold.before(frame, slots)
        now, before = (text_bytes(result, fold.result_type) for result in results)
        return now, before
