"""The results of a batch of a join of streams, before their values are decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rewindow.engine.worker.vectorized.group_frame import Array

NONE = -1


class Origin(NamedTuple):
    """Where values come from: arrivals of the batch, or rows of the store's values. -1 in both: null."""

    arrivals: Array
    rows: Array

    @classmethod
    def of(cls, count: int, *, arrivals: Array | None = None, rows: Array | None = None) -> Origin:
        """Return the origin of ``count`` values; nulls by default."""
        nulls = np.full(count, NONE)
        return cls(nulls if arrivals is None else arrivals, nulls if rows is None else rows)


class Sent(NamedTuple):
    """Results: the arrival that sends each, key numbers, timestamps, and where the values come from."""

    at: Array
    keys: Array
    times: Array
    left_arrivals: Array
    left_rows: Array
    right_arrivals: Array
    right_rows: Array

    @classmethod
    def by(cls, at: Array, keys: Array, times: Array, own: Origin, other: Origin, *, is_left: bool) -> Sent:
        """Return results of records of one input (``own``) with values of the other."""
        left, right = (own, other) if is_left else (other, own)
        return cls(at, keys, times, *left, *right)

    @classmethod
    def none(cls) -> Sent:
        """Return no results."""
        return cls(*(np.empty(0, np.int64) for _ in cls._fields))

    def taken(self, rows: Array) -> Sent:
        """Return the results at these indexes."""
        return Sent(*(array[rows] for array in self))

    @property
    def lefts(self) -> Origin:
        """The origin of the left values."""
        return Origin(self.left_arrivals, self.left_rows)

    @property
    def rights(self) -> Origin:
        """The origin of the right values."""
        return Origin(self.right_arrivals, self.right_rows)


def concatenated(parts: Sequence[Sent]) -> Sent:
    """Return the results of several parts, one after the other."""
    return Sent(*(np.concatenate(arrays) for arrays in zip(Sent.none(), *parts, strict=True)))


def in_order(parts: Sequence[Sent]) -> Sent:
    """Return results by the arrival that sends them. Those of one arrival keep the order of the parts."""
    both = concatenated(parts)
    return both.taken(np.argsort(both.at, kind="stable"))
