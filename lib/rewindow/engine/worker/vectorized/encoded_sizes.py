"""The encoded sizes of results, which entries of a suppress contain (`streams.serde.key_bytes.encoded_size`).

A bare result counts its own bytes; a row counts the bytes of its items and 4 for each. If an item is a list, which has no
such encoding, the size is that of the result's canonical JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.canonical_json import text_bytes
from rewindow.engine.worker.vectorized.collect import CollectFold
from rewindow.engine.worker.vectorized.folds import ITEM_BYTES, Fold
from rewindow.engine.worker.vectorized.group_frame import Array, GroupFrame


class ResultSizes(NamedTuple):
    """The sizes of results. ``names``: the items of a row; empty for a bare result."""

    folds: Sequence[Fold]
    names: Sequence[str]

    @property
    def are_texts(self) -> bool:
        """Whether sizes are those of JSON texts."""
        return any(isinstance(fold, CollectFold) for fold in self.folds)

    @property
    def row_bytes(self) -> int:
        """The size of a row besides its items."""
        if not self.names:
            return 0
        if not self.are_texts:
            return ITEM_BYTES * len(self.names)
        return 1 + sum(len(f'"{name}":,'.encode()) for name in self.names)  # two braces, and no comma after the last

    def of(self, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        """Return the sizes of the results of groups, now and before their last row."""
        both = [self._of_one(fold, frame, slots) for fold in self.folds]
        now, before = (np.sum(sizes, axis=0) + self.row_bytes for sizes in zip(*both, strict=True))
        return np.asarray(now), np.asarray(before)

    def _of_one(self, fold: Fold, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        if not self.are_texts:
            return fold.sizes(frame, slots)
        results: tuple[pa.Array, pa.Array] = fold.result(frame, slots), fold.before(frame, slots)
        now, before = (text_bytes(result, fold.result_type) for result in results)
        return now, before
