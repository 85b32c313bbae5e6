"""Folds of values over whole columns. Their results equal the results of record execution bit for bit.

`numpy.ufunc.at` processes rows one by one, so floats are added in offset order, as in record execution. Sums of integers and
decimals are exact in 64 bits. If a sum might overflow, even temporarily, `UnfitError` hands the task over to record execution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.dsl.operators.builtin_aggregates import Collect, Count, First, Last, Max, Mean, Min, Sum, described
from rewindow.engine.worker.vectorized.arrays import (
    LEAST,
    MOST,
    Array,
    Column,
    GroupFrame,
    NotVectorizableError,
    UnfitError,
    column_of,
    is_decimal,
    is_object,
    largest_of,
    objects,
    scale_of,
    texts_column,
)
from rewindow.engine.worker.vectorized.folds import CountFold, Fold, Operands, Rows, ValueFold, are_last
from rewindow.engine.worker.vectorized.json_columns import Texts, text_bytes
from rewindow.streams.serde.schema import Shape

_EXACT_FLOATS = 2**53


def fold_for(aggregate: Any, value: Shape, name: str) -> Fold:
    """Return the fold of an aggregate. Raises `NotVectorizableError` if the aggregate has no fold."""
    if type(aggregate) is Count:
        return CountFold(name)
    if type(aggregate) is Collect:
        return CollectFold(name, _collected(aggregate, value))
    if type(aggregate) not in (Sum, Min, Max, Mean, First, Last):
        raise NotVectorizableError(f"the aggregate {described(aggregate)} has no kernel")
    if value.row_type is None and not value.is_bare:
        raise NotVectorizableError(
            f"{described(aggregate)} needs values of a declared type: give map_values(..., value=...)"
        )
    if aggregate.field is None and not value.is_bare:
        raise NotVectorizableError(f"{described(aggregate)} of whole rows has no kernel")
    index = 0 if aggregate.field is None else value.names.index(aggregate.field)
    kind = value.columns[index].type
    fold = _fold_of(aggregate, index, kind, name)
    if fold is None:
        raise NotVectorizableError(f"{described(aggregate)} of type {kind} has no kernel")
    return fold


def indexes_of(fold: Fold) -> tuple[int, ...]:
    """Return the indexes of the value columns that a fold reads."""
    if isinstance(fold.operand, Texts):
        return fold.operand.indexes
    return () if fold.operand is None else (fold.operand,)


class CollectFold(Fold):
    """The list of the values that are not null, in row order.

    For each group, the frame also has the text that its last row added.
    """

    state_types, result_type = ("json",), "json"
    operand: Texts

    def __init__(self, name: str, operand: Texts) -> None:
        super().__init__(name)
        self.operand = operand

    def columns(self) -> Mapping[str, Column]:
        """See `Fold`."""
        return {self.name: (np.object_, ""), f"{self.name}.last": (np.object_, "")}

    def take(self, frame: GroupFrame, rows: Rows, operands: Operands) -> None:
        """See `Fold`."""
        texts, valid = operands[self.operand]
        frame[f"{self.name}.last"][rows.slots] = texts if valid is None else np.where(valid, texts, "")
        inverse = rows.inverse
        if valid is not None:
            inverse, texts = inverse[valid], texts[valid]
        order = np.argsort(inverse, kind="stable")
        items = texts[order].tolist()
        ends = np.cumsum(np.bincount(inverse, minlength=len(rows.distinct))).tolist()
        state = frame[self.name]
        before = state[rows.distinct].tolist()
        starts = [0, *ends]
        lists = [
            _joined(items_before, *items[start:end])
            for items_before, start, end in zip(before, starts, ends, strict=False)
        ]
        state[rows.distinct] = objects(lists)

    def merge(self, frame: GroupFrame, slots: Array, others: Array) -> None:
        """See `Fold`. The items of ``others`` follow those of ``slots``."""
        state = frame[self.name]
        pairs = zip(state[slots].tolist(), state[others].tolist(), strict=True)
        state[slots] = objects([_joined(items, *([other] if other else [])) for items, other in pairs])

    def restore(self, frame: GroupFrame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        frame[self.name][slots] = objects([text[1:-1] for text in state[0].to_pylist()])

    def state(self, frame: GroupFrame, slots: Array) -> list[pa.Array]:
        """See `Fold`. Raises `UnfitError` if the texts are too large for an Arrow array."""
        return [_lists(frame[self.name][slots].tolist())]

    def before(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """See `Fold`."""
        pairs = zip(frame[self.name][slots].tolist(), frame[f"{self.name}.last"][slots].tolist(), strict=True)
        return _lists([text[: -len(last)].removesuffix(",") if last else text for text, last in pairs])

    def sizes(self, frame: GroupFrame, slots: Array) -> tuple[Array, Array]:
        """See `Fold`. The size of a list is the size of its JSON text."""
        return text_bytes(self.result(frame, slots), "json"), text_bytes(self.before(frame, slots), "json")


class _SumFold(ValueFold):
    """The sum."""

    def __init__(self, name: str, operand: int, operand_type: str) -> None:
        super().__init__(name, operand, _sum_type(operand_type), np.add, 0)

    def restore(self, frame: GroupFrame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        super().restore(frame, slots, state)
        if self.state_type != "double":
            frame.bounds[self.name] = max(frame.bounds.get(self.name, 0), largest_of(frame[self.name][slots]))

    def check(self, frame: GroupFrame, values: Array, times: int) -> None:
        """See `ValueFold`. Sums of integers must fit into 64 bits at every step.

        The upper bound of the sums is stored in the frame, because tasks share folds. If the bound exceeds 64 bits, it is
        computed again from the actual sums.
        """
        if self.state_type == "double":
            return
        more = largest_of(values) * times
        bound = frame.bounds.get(self.name, 0)
        if bound + more > MOST:
            bound = largest_of(frame[self.name])
            if bound + more > MOST:
                raise UnfitError
        frame.bounds[self.name] = bound + more


class _ExtremeFold(ValueFold):
    """The minimum or maximum."""

    def __init__(self, name: str, operand: int, operand_type: str, *, is_smallest: bool) -> None:
        least, most = (-np.inf, np.inf) if operand_type == "double" else (LEAST, MOST)
        ufunc: Any = np.minimum if is_smallest else np.maximum
        worst = most if is_smallest else least
        if operand_type == "double" and is_smallest:
            # NaN counts as the largest number. `fmin` returns the other number unless both are NaN.
            ufunc, worst = np.fmin, np.nan
        super().__init__(name, operand, operand_type, ufunc, worst)

    def check(self, frame: GroupFrame, values: Array, times: int) -> None:
        """See `ValueFold`. Does nothing, because an extreme is always exact."""


class _TextExtremeFold(_ExtremeFold):
    """The minimum or maximum of texts or bytes. They have no neutral element, so the first value becomes the initial state."""

    def __init__(self, name: str, operand: int, operand_type: str, *, is_smallest: bool) -> None:
        super().__init__(name, operand, operand_type, is_smallest=is_smallest)
        self._fill = None

    def merge(self, frame: GroupFrame, slots: Array, others: Array) -> None:
        """See `Fold`."""
        with_value = frame[self.number][others] > 0
        slots, others = slots[with_value], others[with_value]
        self._begin(frame, slots, frame[self.name][others])
        super().merge(frame, slots, others)

    def _fold(self, frame: GroupFrame, slots: Array, values: Array) -> None:
        self._begin(frame, slots, values)
        super()._fold(frame, slots, values)

    def _begin(self, frame: GroupFrame, slots: Array, values: Array) -> None:
        is_new = frame[self.number][slots] == 0
        frame[self.name][slots[is_new][::-1]] = values[is_new][::-1]


class _MeanFold(_SumFold):
    """The mean, from the sum and the number of values."""

    is_null_at_first = False

    def __init__(self, name: str, operand: int, operand_type: str) -> None:
        super().__init__(name, operand, operand_type)
        self.state_types, self.result_type = (self.state_type, "long"), "double"

    def restore(self, frame: GroupFrame, slots: Array, state: Sequence[pa.Array]) -> None:
        """See `Fold`."""
        super().restore(frame, slots, state)
        frame[self.number][slots] = np.asarray(state[1])

    def state(self, frame: GroupFrame, slots: Array) -> list[pa.Array]:
        """See `Fold`."""
        return [*super().state(frame, slots), column_of(frame[self.number][slots], None, "long")]

    def result(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """See `Fold`."""
        return self._means(frame[self.name][slots], frame[self.number][slots])

    def before(self, frame: GroupFrame, slots: Array) -> pa.Array:
        """See `Fold`."""
        return self._means(*self._before(frame, slots))

    def _means(self, total: Array, number: Array) -> pa.Array:
        is_null = number == 0
        return column_of(self._quotients(total, np.where(is_null, 1, number)), is_null, "double")

    def _quotients(self, total: Array, number: Array) -> Array:
        """Return the quotients of sums and numbers. Each quotient is rounded only once."""
        scale = scale_of(self.state_type) if is_decimal(self.state_type) else 0
        if self.state_type == "double" or (scale == 0 and largest_of(total) <= _EXACT_FLOATS):
            with np.errstate(all="ignore"):
                return np.asarray(total / number)
        pairs = zip(total.tolist(), number.tolist(), strict=True)
        return np.array([dividend / (divisor * 10**scale) for dividend, divisor in pairs], np.float64)


class _PickFold(ValueFold):
    """The first or the last value that is not null."""

    def __init__(self, name: str, operand: int, operand_type: str, *, is_first: bool) -> None:
        super().__init__(name, operand, operand_type, None, None if is_object(operand_type) else 0)
        self._is_first = is_first

    def merge(self, frame: GroupFrame, slots: Array, others: Array) -> None:
        """See `Fold`. The values of ``others`` follow those of ``slots``."""
        state, number = frame[self.name], frame[self.number]
        is_taken = (number[slots] == 0) if self._is_first else (number[others] > 0)
        state[slots[is_taken]] = state[others[is_taken]]
        number[slots] += number[others]

    def check(self, frame: GroupFrame, values: Array, times: int) -> None:
        """See `ValueFold`. Does nothing, because a picked value is always exact."""

    def _fold(self, frame: GroupFrame, slots: Array, values: Array) -> None:
        # If a slot occurs several times, the last assignment wins, which is the value of its last row.
        state = frame[self.name]
        if self._is_first:
            is_new = frame[self.number][slots] == 0
            state[slots[is_new][::-1]] = values[is_new][::-1]
            if self.keeps_before:
                frame[f"{self.name}.before"][slots] = state[slots]
            return
        if self.keeps_before:
            is_last = are_last(slots, frame.size)
            state[slots[~is_last]] = values[~is_last]
            frame[f"{self.name}.before"][slots[is_last]] = state[slots[is_last]]
        state[slots] = values


def _fold_of(aggregate: Any, operand: int, operand_type: str, name: str) -> Fold | None:
    """Return the fold of an aggregate of the value column with the index ``operand``; None if the aggregate has no fold."""
    kind = type(aggregate)
    if operand_type == "json" or (is_object(operand_type) and kind in (Sum, Mean)):
        return None
    if kind in (Min, Max):
        fold = _TextExtremeFold if is_object(operand_type) else _ExtremeFold
        return fold(name, operand, operand_type, is_smallest=kind is Min)
    if kind in (First, Last):
        return _PickFold(name, operand, operand_type, is_first=kind is First)
    folds = {Mean: _MeanFold, Sum: _SumFold}
    return folds[kind](name, operand, operand_type) if kind in folds else None


def _sum_type(operand_type: str) -> str:
    if is_decimal(operand_type):
        return f"decimal(38,{scale_of(operand_type)})"
    return "long" if operand_type == "boolean" else operand_type


def _collected(aggregate: Collect, value: Shape) -> Texts:
    """Return the texts that `Collect` collects: the values of one column, or rows of all columns."""
    if aggregate.field is None and value.row_type is not None:
        return Texts(tuple(range(len(value.columns))), value.columns, is_row=True)
    index = 0 if aggregate.field is None else value.names.index(aggregate.field)
    return Texts((index,), (value.columns[index],), is_row=False)


def _joined(items_before: str, *items: str) -> str:
    return ",".join((items_before, *items)) if items_before else ",".join(items)


def _lists(texts: Sequence[str]) -> pa.Array:
    return texts_column([f"[{text}]" for text in texts], "json")
