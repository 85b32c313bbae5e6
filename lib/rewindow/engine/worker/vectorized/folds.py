"""What a built-in aggregate is over whole columns, and counting; those of values are in `kernels`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.arrays import (
    LONG_BYTES,
    Operand,
    column_of,
    dtype_of,
    fixed_size,
    numbers_of,
    sizes_of,
)
from rewindow.engine.worker.vectorized.canonical_json import Texts
from rewindow.engine.worker.vectorized.slots import Array, Column, Frame

ITEM_BYTES = 4
"""What each item of a row takes in the documented encoding, besides its own bytes."""

Operands = Mapping[int | Texts, Operand]
"""What folds read of some records: numbers of a column of the values, by its place, or texts."""


class Rows(NamedTuple):
    """Rows that go into groups: the slot of each, the distinct slots, and the place of each row's slot among those."""

    slots: Array
    distinct: Array
    places: Array
    counts: Array
    """How many rows each distinct slot gets."""

    def counts_of(self, valid: Array | None) -> Array:
        """Return how many rows that are not null each distinct slot gets."""
        return self.counts if valid is None else np.bincount(self.places[valid], minlength=len(self.distinct))


class Fold(ABC):
    """One aggregate's columns in a frame of groups, whose names begin with ``name``."""

    state_types: Sequence[str]
    result_type: str
    operand: int | Texts | None = None
    """What it reads of the values."""
    is_null_at_first = False
    """There is no state, and no result, before the first operand."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def columns(self) -> Mapping[str, Column]:
        """Return the columns that it needs in the frame."""

    @abstractmethod
    def take(self, frame: Frame, rows: Rows, operands: Operands) -> None:
        """Fold rows into their groups, in their order."""

    @abstractmethod
    def merge(self, frame: Frame, slots: Array, others: Array) -> None:
        """Add other groups to groups, each of which is there once."""

    @abstractmethod
    def restore(self, frame: Frame, slots: Array, state: Sequence[pa.Array]) -> None:
        """Set groups to the states of a checkpoint."""

    @abstractmethod
    def state(self, frame: Frame, slots: Array) -> list[pa.Array]:
        """Return the states of groups."""

    def result(self, frame: Frame, slots: Array) -> pa.Array:
        """Return the results of groups."""
        return self.state(frame, slots)[0]

    @abstractmethod
    def before(self, frame: Frame, slots: Array) -> pa.Array:
        """Return the results of groups before the last row of each."""

    def sizes(self, frame: Frame, slots: Array) -> tuple[Array, Array]:
        """Return the encoded sizes of the results of groups, now and before the last row; 0 for null."""
        del frame
        return (np.full(len(slots), LONG_BYTES),) * 2


class CountFold(Fold):
    """The number of rows."""

    state_types, result_type = ("long",), "long"

    def columns(self) -> Mapping[str, Column]:
        """See `Fold`."""
        return {self.name: (np.int64, 0)}

    def take(self, frame: Frame, rows: Rows, operands: Operands) -> None:
        """See `Fold`."""
        del operands
        frame[self.name][rows.distinct] += rows.counts

    def merge(self, frame: Frame, slots: Array, others: Array) -> None:
        """See `Fold`."""
        frame[self.name][slots] += frame[self.name][others]

    def restore(self, frame: Frame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        frame[self.name][slots] = np.asarray(state[0])

    def state(self, frame: Frame, slots: Array) -> list[pa.Array]:
        """See `Fold`."""
        return [column_of(frame[self.name][slots], None, "long")]

    def before(self, frame: Frame, slots: Array) -> pa.Array:
        """See `Fold`."""
        return column_of(frame[self.name][slots] - 1, None, "long")


class ValueFold(Fold):
    """An aggregate of the values that are not null; of none it is null.

    Beside the state it has how many values there were, and whether the last row had one. Of decimals and texts, whose
    encoding has no fixed length, it also has the state before the last value; so where texts are measured (`keeps_before`).
    """

    operand: int
    is_null_at_first = True

    def __init__(self, name: str, operand: int, state_type: str, ufunc: Any, fill: Any) -> None:
        super().__init__(name)
        self.operand, self.state_type = operand, state_type
        self.state_types, self.result_type = (state_type,), state_type
        self._ufunc, self._fill = ufunc, fill
        self.keeps_before = fixed_size(state_type) is None

    def columns(self) -> Mapping[str, Column]:
        """See `Fold`."""
        dtype = dtype_of(self.state_type)
        columns = {self.name: (dtype, self._fill), self.number: (np.int64, 0), f"{self.name}.last": (np.bool_, False)}
        return columns | ({f"{self.name}.before": (dtype, self._fill)} if self.keeps_before else {})

    @property
    def number(self) -> str:
        """The column that has how many values there were."""
        return f"{self.name}.number"

    def take(self, frame: Frame, rows: Rows, operands: Operands) -> None:
        """See `Fold`. Raises `UnfitError` where the result would not be exact."""
        values, valid = operands[self.operand]
        slots = rows.slots if valid is None else rows.slots[valid]
        values = values if valid is None else values[valid]
        counts = rows.counts_of(valid)
        if len(values):
            self.check(frame[self.name], values, int(counts.max()))
            self._fold(frame, slots, values)
        frame[self.number][rows.distinct] += counts
        last = frame[f"{self.name}.last"]
        if valid is None:
            last[rows.distinct] = True
        else:
            last[rows.slots] = valid  # of several, the last stays

    def merge(self, frame: Frame, slots: Array, others: Array) -> None:
        """See `Fold`. Raises `UnfitError` where the result would not be exact."""
        state, number = frame[self.name], frame[self.number]
        self.check(state, state[others], 1)
        with np.errstate(all="ignore"):
            state[slots] = self._ufunc(state[slots], state[others])
        number[slots] += number[others]

    def restore(self, frame: Frame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        values, valid = numbers_of(state[0], self.state_type)
        self.check(values, values, 0)
        frame[self.name][slots] = values if valid is None else np.where(valid, values, self._fill)
        frame[self.number][slots] = 1 if valid is None else valid

    def state(self, frame: Frame, slots: Array) -> list[pa.Array]:
        """See `Fold`."""
        return [column_of(frame[self.name][slots], frame[self.number][slots] == 0, self.state_type)]

    def before(self, frame: Frame, slots: Array) -> pa.Array:
        """See `Fold`. Only where it `keeps_before`."""
        state, number = self._before(frame, slots)
        return column_of(state, number == 0, self.state_type)

    def sizes(self, frame: Frame, slots: Array) -> tuple[Array, Array]:
        """See `Fold`."""
        number, last = frame[self.number][slots], frame[f"{self.name}.last"][slots]
        sizes = self._sizes(frame, slots)
        return np.where(number > 0, sizes[0], 0), np.where(number - last > 0, sizes[1], 0)

    @abstractmethod
    def check(self, state: Array, values: Array, times: int) -> None:
        """Raise `UnfitError` if values, ``times`` of them in a group at most, would not fold exactly into the states."""

    def _sizes(self, frame: Frame, slots: Array) -> tuple[Any, Any]:
        size = fixed_size(self.result_type)
        if size is not None:
            return size, size
        both = frame[self.name][slots], self._before(frame, slots)[0]
        return sizes_of(both[0], self.result_type), sizes_of(both[1], self.result_type)

    def _before(self, frame: Frame, slots: Array) -> tuple[Array, Array]:
        """Return states and numbers of values before the last row."""
        last = frame[f"{self.name}.last"][slots]
        state = np.where(last, frame[f"{self.name}.before"][slots], frame[self.name][slots])
        return state, frame[self.number][slots] - last

    def _fold(self, frame: Frame, slots: Array, values: Array) -> None:
        state = frame[self.name]
        with np.errstate(all="ignore"):
            if self.keeps_before:
                is_last = are_last(slots, frame.size)
                self._ufunc.at(state, slots[~is_last], values[~is_last])
                slots, values = slots[is_last], values[is_last]
                frame[f"{self.name}.before"][slots] = state[slots]
            self._ufunc.at(state, slots, values)


def are_last(slots: Array, size: int) -> Array:
    """Return which rows are the last of their slot."""
    rows = np.arange(len(slots))
    place = np.empty(size, np.int64)
    place[slots] = rows
    return np.asarray(place[slots] == rows)
