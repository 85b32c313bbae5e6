"""What an aggregation does with its values, as plain values: the built-in ones can also run on whole columns.

An aggregator has a start, a step and a result. The state is what the store keeps. Sums fold in the order in which the
task takes the records, so a float has the same last bit in every layout.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Any, Protocol, TypeGuard, runtime_checkable

from rewindow.dsl.operators.of_field import OfField
from rewindow.errors import DataError
from rewindow.streams.record import row_class
from rewindow.streams.serde.binding import FieldType, RowType, SumType
from rewindow.streams.serde.coercion import exact_context


@runtime_checkable
class Aggregator(Protocol):
    """A start, a step and a result; the types that they have, given that of the values."""

    def start(self) -> Any:
        """Return the state before the first value."""

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """Return the state with one more value."""

    def result(self, state: Any) -> Any:
        """Return what goes downstream."""

    def state_type(self, value: Any) -> Any:
        """Return the declared type of the state."""

    def result_type(self, value: Any) -> Any:
        """Return the declared type of the result."""


@runtime_checkable
class Subtractable(Aggregator, Protocol):
    """An aggregate that can take a value back: what a grouped table needs."""

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """Return the state without a value that it has."""


@runtime_checkable
class Mergeable(Aggregator, Protocol):
    """An aggregate of which two can become one: what sessions need."""

    def merge(self, state: Any, later: Any) -> Any:
        """Return the state of two that meet, the earlier one first; ``state`` may be that of the start."""


def is_aggregate(given: object) -> TypeGuard[Aggregator]:
    """Return whether it is one, and not its class: ``Count()`` and not ``Count``."""
    return isinstance(given, Aggregator) and not isinstance(given, type)


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records (null values included, as windowed counts of Kafka Streams do)."""

    def describe(self) -> str:
        """See `described`."""
        return "count"

    def start(self) -> int:
        """See `Aggregator`."""
        return 0

    def add(self, key: Any, value: Any, state: int) -> int:
        """See `Aggregator`."""
        del key, value
        return state + 1

    def subtract(self, key: Any, value: Any, state: int) -> int:
        """See `Subtractable`."""
        del key, value
        return state - 1

    def merge(self, state: int, later: int) -> int:
        """See `Mergeable`."""
        return state + later

    def result(self, state: int) -> int:
        """See `Aggregator`."""
        return state

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        del value
        return int

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        del value
        return int


@dataclass(frozen=True, slots=True)
class _Folded(OfField, ABC):
    """An aggregate whose first operand is its state, and each other is combined with it."""

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        operand = self.operand(value)
        if operand is None:
            return state
        return self.first(operand) if state is None else self.combine(state, operand)

    def merge(self, state: Any, later: Any) -> Any:
        """See `Mergeable`."""
        if state is None or later is None:
            return later if state is None else state
        return self.combine(state, later)

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return FieldType(value, self.field)

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return self.state_type(value)

    def first(self, operand: Any) -> Any:
        """Return the state of one operand, which is not null. Raises `DataError` for a row."""
        return _no_row(operand, type(self).__name__)

    @abstractmethod
    def combine(self, state: Any, operand: Any) -> Any:
        """Return the state with one more operand; neither is null."""


@dataclass(frozen=True, slots=True)
class Sum(_Folded):
    """The sum: of booleans an integer, of decimals exact in 38 digits."""

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return SumType(value, self.field)

    def first(self, operand: Any) -> Any:
        """See `_Folded`."""
        return _number(operand, "Sum")

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """See `Subtractable`. Of no values it is 0 then, not null."""
        del key
        operand = self.operand(value)
        return state if operand is None or state is None else _added(state, _negated(_number(operand, "Sum")))

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_Folded`. Raises `DataError` where a sum of decimals is longer than 38 digits."""
        return _added(state, operand)


@dataclass(frozen=True, slots=True)
class Min(_Folded):
    """The smallest."""

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_Folded`."""
        return min(state, operand)


@dataclass(frozen=True, slots=True)
class Max(_Folded):
    """The largest."""

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_Folded`."""
        return max(state, operand)


@dataclass(frozen=True, slots=True)
class Mean:
    """The arithmetic mean of a field, or of the values, as a float; nulls are left out, and of none it is null.

    The total is kept as `Sum` keeps it; of integers, booleans and decimals only the quotient is rounded.
    """

    field: str | None = None

    def describe(self) -> str:
        """See `described`."""
        return f"mean({self.field or ''})"

    def start(self) -> Any:
        """See `Aggregator`."""
        return _MEAN(None, 0)

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        operand = value if self.field is None or value is None else getattr(value, self.field)
        if operand is None:
            return state
        total, number = state
        return _MEAN(_number(operand, "Mean") if total is None else _added(total, operand), number + 1)

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """See `Subtractable`."""
        del key
        operand = value if self.field is None or value is None else getattr(value, self.field)
        total, number = state
        if operand is None or total is None:
            return state
        return _MEAN(_added(total, _negated(_number(operand, "Mean"))) if number > 1 else None, number - 1)

    def merge(self, state: Any, later: Any) -> Any:
        """See `Mergeable`."""
        if not state.number or not later.number:
            return state if state.number else later
        return _MEAN(_added(state.total, later.total), state.number + later.number)

    def result(self, state: Any) -> float | None:
        """See `Aggregator`."""
        if not state.number:
            return None
        if state.total.__class__ is Decimal:
            return float(Fraction(state.total) / state.number)
        return float(state.total / state.number)

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return RowType((("total", SumType(value, self.field)), ("number", int)))

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        del value
        return float


_MEAN = row_class(("total", "number"))
_EXACT = exact_context()


def described(aggregator: Any) -> str:
    """Return what an aggregate computes, for `explain` and the fingerprint: its ``describe()``, else its class's name."""
    describe = getattr(aggregator, "describe", None)
    return str(describe()) if callable(describe) else type(aggregator).__name__.lower()


def _no_row(operand: Any, what: str) -> Any:
    if isinstance(operand, tuple):
        fields = ", ".join(getattr(operand, "_fields", ())) or "none"
        message = f"{what}() of rows: name a field (fields: {fields}), as in {what}('field')"
        raise DataError(message)
    return operand


def _number(operand: Any, what: str) -> Any:
    if not isinstance(_no_row(operand, what), bool | int | float | Decimal):
        message = f"{what} of {operand!r} ({type(operand).__name__}): it takes numbers"
        raise DataError(message)
    return int(operand) if operand.__class__ is bool else operand


def _negated(number: Any) -> Any:
    return number.copy_negate() if number.__class__ is Decimal else -number


def _added(state: Any, operand: Any) -> Any:
    if state.__class__ is not Decimal:
        return state + operand
    try:
        return _EXACT.add(state, operand)
    except DecimalException as error:
        message = f"the sum of {state} and {operand} is longer than 38 digits: round the values first (map_values)"
        raise DataError(message) from error
