"""Merge the batches of a task's topics into the order in which the task takes records (`streams.ordering`, L1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rewindow.engine.worker.vectorized.batch import Batch
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.streams.record import UNKNOWN


class Merged(NamedTuple):
    """Consecutive records of a task. The arrays have an item for each record, in order."""

    timestamps: Array
    ranks: Array
    """The index of each record's topic."""
    orders: Array
    """The order key of each record: the running maximum of its topic's timestamps in the epoch."""
    parts: tuple[Batch, ...]
    """The records of each topic. ``positions`` are their indexes in the arrays."""


def merged(topics: Sequence[Iterator[Batch]]) -> Iterator[Merged]:
    """Merge the batches of an epoch. At most one batch of each topic is in memory."""
    pending = [_Pending(batches) for batches in topics]
    while waiting := [(topic.last_ms, rank) for rank, topic in enumerate(pending) if topic.fill()]:
        # No record that precedes this one is still to come.
        last_ms, last = min(waiting)
        parts = [topic.take(last_ms, with_ties=rank <= last) for rank, topic in enumerate(pending)]
        orders = np.concatenate([part.orders for part in parts])
        order = np.argsort(orders, kind="stable")  # ties go to the first topic
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order))
        bounds = np.cumsum([0, *(len(part.orders) for part in parts)])
        ranks = np.repeat(np.arange(len(parts)), np.diff(bounds))
        yield Merged(
            np.concatenate([part.batch.timestamps for part in parts])[order],
            ranks[order],
            orders[order],
            tuple(
                part.batch.at(positions[first:end])
                for part, first, end in zip(parts, bounds[:-1], bounds[1:], strict=True)
            ),
        )


class _Part(NamedTuple):
    """Records of one topic with their order keys."""

    batch: Batch
    orders: Array


class _Pending:
    """The next batch of one topic, with the order key of each record."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self._latest_ms = UNKNOWN
        self._part = _Part(Batch(np.empty(0, np.int64), (), {}), np.empty(0, np.int64))

    @property
    def last_ms(self) -> int:
        """The order key of its last record."""
        return int(self._part.orders[-1])

    def fill(self) -> bool:
        """Read a batch if none is left; return whether there are records."""
        while len(self._part.orders) == 0:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if len(batch.timestamps):
                orders = np.maximum(np.maximum.accumulate(batch.timestamps), self._latest_ms)
                self._part, self._latest_ms = _Part(batch, orders), int(orders[-1])
        return True

    def take(self, last_ms: int, *, with_ties: bool) -> _Part:
        """Take the records up to an order key, those that have this key only ``with_ties``."""
        batch, orders = self._part
        count = int(np.searchsorted(orders, last_ms, "right" if with_ties else "left"))
        self._part = _Part(batch.slice(count, len(orders) - count), orders[count:])
        return _Part(batch.slice(0, count), orders[:count])
