"""The built-in aggregates and their protocol. Built-in aggregates are data, so they can also run on whole columns.

An aggregator has a start state, a function that adds a value to a state, and a function that returns the result for a state.
The store keeps the state. Values are added in the order in which the task processes the records, so even the last bit of a
float is the same in every layout.

The results of `First`, `Last` and `Collect` depend on the order in which the task processes the records (L1), not on the
order of timestamps. If sessions are merged, their states are combined in the order of the sessions' times. Null fields and
null values are skipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Any, Protocol, TypeGuard, runtime_checkable

from rewindow.errors import DataError
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.normalizers import exact_context
from rewindow.streams.serde.types_to_columns import FieldType, ListType, OptionalType, RowType, SumType

_MEAN = row_class(("total", "number"))
_EXACT = exact_context()


@runtime_checkable
class Aggregator(Protocol):
    """An aggregate: a start state, a step and a result. `state_type` and `result_type` get the declared type of the values."""

    def start(self) -> Any:
        """Return the state before the first value."""

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """Return the state with a value added."""

    def result(self, state: Any) -> Any:
        """Return the result to send downstream."""

    def state_type(self, value: Any) -> Any:
        """Return the declared type of the state."""

    def result_type(self, value: Any) -> Any:
        """Return the declared type of the result."""


@runtime_checkable
class Subtractable(Aggregator, Protocol):
    """An aggregate that can subtract a value, as a grouped table needs."""

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """Return the state without a value that was added before."""


@runtime_checkable
class Mergeable(Aggregator, Protocol):
    """An aggregate whose states can be merged, as sessions need."""

    def merge(self, state: Any, later: Any) -> Any:
        """Return the merged state of two sessions. ``state`` belongs to the earlier session, and may be the start state."""


def is_aggregate(given: object) -> TypeGuard[Aggregator]:
    """Return whether the object is an aggregate, such as ``Count()``. The class ``Count`` is not."""
    return isinstance(given, Aggregator) and not isinstance(given, type)


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records. Records with a null value are counted, too, as in windowed counts of Kafka Streams."""

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
class _OfField:
    """An aggregate of one field of the values or, if ``field`` is None, of the values themselves. Nulls are skipped."""

    field: str | None = None

    def describe(self) -> str:
        """See `described`."""
        return f"{type(self).__name__.lower()}({self.field or ''})"

    def start(self) -> Any:
        """See `Aggregator`."""
        return None

    def operand(self, value: Any) -> Any:
        """Return the part of a value that is aggregated."""
        return value if self.field is None or value is None else getattr(value, self.field)

    def result(self, state: Any) -> Any:
        """See `Aggregator`."""
        return state


@dataclass(frozen=True, slots=True)
class _Folded(_OfField, ABC):
    """An aggregate whose first operand becomes the state, and whose further operands are combined with the state."""

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
        """Return the state for the first operand, which is not null. Raises `DataError` for a row."""
        return _no_row(operand, type(self).__name__)

    @abstractmethod
    def combine(self, state: Any, operand: Any) -> Any:
        """Return the state combined with an operand; neither is null."""


@dataclass(frozen=True, slots=True)
class Sum(_Folded):
    """The sum of a field, or of the values. Nulls are skipped. Without values, the sum is null.

    The sum of booleans is an integer. Decimals are added exactly. A sum of more than 38 digits raises a `DataError`.
    """

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return SumType(value, self.field, "Sum")

    def first(self, operand: Any) -> Any:
        """See `_Folded`."""
        return _number(operand, "Sum")

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """See `Subtractable`. After the last value is subtracted, the sum is 0, not null."""
        del key
        operand = self.operand(value)
        return state if operand is None or state is None else _added(state, _negated(_number(operand, "Sum")))

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_Folded`. Raises `DataError` if a sum of decimals has more than 38 digits."""
        return _added(state, operand)


@dataclass(frozen=True, slots=True)
class Min(_Folded):
    """The smallest value of a field, or of the values. Nulls are skipped. Without values, the minimum is null.

    NaN is the largest number, as in Spark, so the minimum is NaN only if all values are NaN.
    """

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_Folded`."""
        return operand if _precedes(operand, state) else state


@dataclass(frozen=True, slots=True)
class Max(_Folded):
    """The largest value of a field, or of the values. Nulls are skipped. Without values, the maximum is null.

    NaN is the largest number, as in Spark, so the maximum is NaN if any value is NaN.
    """

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_Folded`."""
        return operand if _precedes(state, operand) else state


@dataclass(frozen=True, slots=True)
class Mean:
    """The arithmetic mean of a field, or of the values, as a float. Nulls are skipped. Without values, the mean is null.

    The total is computed as in `Sum`. For integers, booleans and decimals, only the quotient is rounded.
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
        return RowType((("total", SumType(value, self.field, "Mean")), ("number", int)))

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        del value
        return float


def described(aggregator: Any) -> str:
    """Return the text of an aggregate for `explain` and the fingerprint: its ``describe()``, or the name of its class."""
    describe = getattr(aggregator, "describe", None)
    return str(describe()) if callable(describe) else type(aggregator).__name__.lower()


@dataclass(frozen=True, slots=True)
class _Ordered(_OfField, ABC):
    """An aggregate whose state is an operand or a list of operands."""

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        operand = self.operand(value)
        return state if operand is None else self.with_operand(state, operand)

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return OptionalType(value, self.field)

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return self.state_type(value) if self.field else value

    @abstractmethod
    def with_operand(self, state: Any, operand: Any) -> Any:
        """Return the state with an operand added, which is not null."""

    @abstractmethod
    def merge(self, state: Any, later: Any) -> Any:
        """See `Mergeable`."""


@dataclass(frozen=True, slots=True)
class First(_Ordered):
    """The first value of a field, or of the values, that is not null; null if there is no such value."""

    def with_operand(self, state: Any, operand: Any) -> Any:
        """See `_Ordered`."""
        return operand if state is None else state

    def merge(self, state: Any, later: Any) -> Any:
        """See `_Ordered`."""
        return later if state is None else state


@dataclass(frozen=True, slots=True)
class Last(_Ordered):
    """The last value of a field, or of the values, that is not null; null if there is no such value."""

    def with_operand(self, state: Any, operand: Any) -> Any:
        """See `_Ordered`."""
        del state
        return operand

    def merge(self, state: Any, later: Any) -> Any:
        """See `_Ordered`."""
        return state if later is None else later


@dataclass(frozen=True, slots=True)
class Collect(_Ordered):
    """The list of all values of a field, or of the values, that are not null. Without values, the list is empty.

    In record execution, each record stores and sends the whole list, so use it there only for windows and keys with few
    records. If a list has more items than the limit ``list_items``, the run fails (71).

    In an output table the list is a column of JSON text, like ``[1,2]``, so pandas and SQL get text. Later operators of the
    same job get a list. So does another job whose feed lands the output.
    """

    def start(self) -> list[Any]:
        """See `Aggregator`."""
        return []

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return ListType(value, self.field)

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return self.state_type(value)

    def with_operand(self, state: list[Any], operand: Any) -> list[Any]:
        """See `_Ordered`."""
        return [*state, operand]

    def subtract(self, key: Any, value: Any, state: list[Any]) -> list[Any]:
        """See `Subtractable`. Removes the first item that equals the value."""
        del key
        text = dump_value(self.operand(value))
        for index, item in enumerate(state):
            # Texts are compared, because NaN does not equal NaN. Comparison by identity would find NaN only until a restart,
            # which creates a new object.
            if dump_value(item) == text:
                return [*state[:index], *state[index + 1 :]]
        return state

    def merge(self, state: list[Any], later: list[Any]) -> list[Any]:
        """See `_Ordered`."""
        return [*state, *later]


def _precedes(value: Any, other: Any) -> bool:
    """Return whether ``value`` is smaller than ``other``. Here NaN is the largest number and equals NaN."""
    return bool(value < other or (other != other and value == value))  # noqa: PLR0124 - only NaN is unequal to itself


def _no_row(operand: Any, aggregate: str) -> Any:
    if isinstance(operand, tuple):
        raise DataError(
            "aggregate-of-whole-rows",
            "{aggregate}() of rows: name a field (fields: {fields}), as in {aggregate}('field')",
            aggregate=aggregate,
            fields=", ".join(getattr(operand, "_fields", ())) or "none",
        )
    return operand


def _number(operand: Any, aggregate: str) -> Any:
    if not isinstance(_no_row(operand, aggregate), bool | int | float | Decimal):
        raise DataError(
            "aggregated-value-not-number",
            "{aggregate} of {given} ({type}): it takes numbers",
            aggregate=aggregate,
            given=repr(operand),
            type=type(operand).__name__,
        )
    return int(operand) if operand.__class__ is bool else operand


def _negated(number: Any) -> Any:
    return number.copy_negate() if number.__class__ is Decimal else -number


def _added(state: Any, operand: Any) -> Any:
    if state.__class__ is not Decimal:
        return state + operand
    try:
        return _EXACT.add(state, operand)
    except DecimalException as error:
        raise DataError(
            "decimal-sum-too-long",
            "the sum of {total} and {value} has more than 38 digits: round the values first (map_values)",
            total=str(state),
            value=str(operand),
        ) from error
