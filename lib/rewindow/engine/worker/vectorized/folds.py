"""Folds: built-in aggregates that are computed over whole columns. `value_folds` has the folds that need values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.arrays import (
    LONG_BYTES,
    Array,
    Column,
    GroupFrame,
    Operand,
    column_of,
    dtype_of,
    fixed_size,
    numbers_of,
    sizes_of,
)
from rewindow.engine.worker.vectorized.json_columns import Texts

ITEM_BYTES = 4
"""The bytes of an item's length, which precedes each item in an encoded row."""

Operands = Mapping[int | Texts, Operand]
"""Maps what a fold reads (the index of a value column, or `Texts`) to the values of some records."""


class Rows(NamedTuple):
    """The groups of rows: the slot of each row, the distinct slots, and each row's index into the distinct slots."""

    slots: Array
    distinct: Array
    inverse: Array
    counts: Array
    """The number of rows of each distinct slot."""

    def counts_of(self, valid: Array | None) -> Array:
        """Return the number of valid rows of each distinct slot."""
        return self.counts if valid is None else np.bincount(self.inverse[valid], minlength=len(self.distinct))


class Fold(ABC):
    """One aggregate. Its state is in columns of the `GroupFrame` whose names start with ``name``."""

    state_types: Sequence[str]
    result_type: str
    operand: int | Texts | None = None
    """The input of the fold: the index of a value column, texts, or None if the fold reads no values."""
    is_null_at_first = False
    """Whether a group has the state null and the result null before its first value that is not null."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def columns(self) -> Mapping[str, Column]:
        """Return the fold's columns in the frame."""

    @abstractmethod
    def take(self, frame: GroupFrame, rows: Rows, operands: Operands) -> None:
        """Fold rows into their groups, in row order."""

    @abstractmethod
    def merge(self, frame: GroupFrame, slots: Array, others: Array) -> None:
        """Merge the state of each group in ``others`` into that of the group in ``slots``.

        The items of ``slots`` are distinct.
        """

    @abstractmethod
    def restore(self, frame: GroupFrame, slots: Array, state: Sequence[pa.Array]) -> None:
        """Set the states of groups from a checkpoint."""

    @abstractmethod
    def state(self, frame: GroupFrame, slots: Array) -> list[pa.Array]:
        """Return the states of groups."""

    def result(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """Return the results of groups."""
        return self.state(frame, slots)[0]

    @abstractmethod
    def before(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """Return the results that groups had before their last row."""

    def sizes(self, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        """Return two arrays: the encoded sizes of the results now, and before the last row. The size of null is 0."""
        del frame
        return (np.full(len(slots), LONG_BYTES),) * 2


class CountFold(Fold):
    """The number of rows."""

    state_types, result_type = ("long",), "long"

    def columns(self) -> Mapping[str, Column]:
        """See `Fold`."""
        return {self.name: (np.int64, 0)}

    def take(self, frame: GroupFrame, rows: Rows, operands: Operands) -> None:
        """See `Fold`."""
        del operands
        frame[self.name][rows.distinct] += rows.counts

    def merge(self, frame: GroupFrame, slots: Array, others: Array) -> None:
        """See `Fold`."""
        frame[self.name][slots] += frame[self.name][others]

    def restore(self, frame: GroupFrame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        frame[self.name][slots] = np.asarray(state[0])

    def state(self, frame: GroupFrame, slots: Array) -> list[pa.Array]:
        """See `Fold`."""
        return [column_of(frame[self.name][slots], None, "long")]

    def before(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """See `Fold`."""
        return column_of(frame[self.name][slots] - 1, None, "long")


class ValueFold(Fold):
    """An aggregate of the values that are not null. Without such values, the aggregate is null.

    For each group, the frame has the number of values, and whether its last row had a value. With `keeps_before`, it also has
    the state before the last value. That state is needed if encoded sizes vary (decimals, texts), or if sizes are measured as
    text.
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
        """The column with the number of values."""
        return f"{self.name}.number"

    def take(self, frame: GroupFrame, rows: Rows, operands: Operands) -> None:
        """See `Fold`. Raises `UnfitError` if the result would not be exact."""
        values, valid = operands[self.operand]
        slots = rows.slots if valid is None else rows.slots[valid]
        values = values if valid is None else values[valid]
        counts = rows.counts_of(valid)
        if len(values):
            self.check(frame, values, int(counts.max()))
            self._fold(frame, slots, values)
        frame[self.number][rows.distinct] += counts
        last = frame[f"{self.name}.last"]
        if valid is None:
            last[rows.distinct] = True
        else:
            # If a slot occurs several times, the last assignment wins, which is the value of its last row.
            last[rows.slots] = valid

    def merge(self, frame: GroupFrame, slots: Array, others: Array) -> None:
        """See `Fold`. Raises `UnfitError` if the result would not be exact."""
        state, number = frame[self.name], frame[self.number]
        self.check(frame, state[others], 1)
        with np.errstate(all="ignore"):
            state[slots] = self._ufunc(state[slots], state[others])
        number[slots] += number[others]

    def restore(self, frame: GroupFrame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        values, valid = numbers_of(state[0], self.state_type)
        self.check(frame, values, 0)
        frame[self.name][slots] = values if valid is None else np.where(valid, values, self._fill)
        frame[self.number][slots] = 1 if valid is None else valid

    def state(self, frame: GroupFrame, slots: Array) -> list[pa.Array]:
        """See `Fold`."""
        return [column_of(frame[self.name][slots], frame[self.number][slots] == 0, self.state_type)]

    def before(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """See `Fold`. Only with `keeps_before`."""
        state, number = self._before(frame, slots)
        return column_of(state, number == 0, self.state_type)

    def sizes(self, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        """See `Fold`."""
        number, last = frame[self.number][slots], frame[f"{self.name}.last"][slots]
        sizes = self._sizes(frame, slots)
        return np.where(number > 0, sizes[0], 0), np.where(number - last > 0, sizes[1], 0)

    @abstractmethod
    def check(self, frame: GroupFrame, values: Array, times: int) -> None:
        """Raise `UnfitError` if folding values would not be exact. A group gets at most ``times`` of these values."""

    def _sizes(self, frame: GroupFrame, slots: Array) -> tuple[Any, Any]:
        size = fixed_size(self.result_type)
        if size is not None:
            return size, size
        both = frame[self.name][slots], self._before(frame, slots)[0]
        return sizes_of(both[0], self.result_type), sizes_of(both[1], self.result_type)

    def _before(self, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        """Return the state of each group, and its number of values, before its last row."""
        last = frame[f"{self.name}.last"][slots]
        state = np.where(last, frame[f"{self.name}.before"][slots], frame[self.name][slots])
        return state, frame[self.number][slots] - last

    def _fold(self, frame: GroupFrame, slots: Array, values: Array) -> None:
        state = frame[self.name]
        with np.errstate(all="ignore"):
            if self.keeps_before:
                is_last = are_last(slots, frame.size)
                self._ufunc.at(state, slots[~is_last], values[~is_last])
                slots, values = slots[is_last], values[is_last]
                frame[f"{self.name}.before"][slots] = state[slots]
            self._ufunc.at(state, slots, values)


def are_last(slots: Array, size: int) -> Array:
    """Return a mask of the rows that are the last row of their slot. ``size``: the number of slots."""
    rows = np.arange(len(slots))
    last_row = np.empty(size, np.int64)
    last_row[slots] = rows
    return np.asarray(last_row[slots] == rows)
