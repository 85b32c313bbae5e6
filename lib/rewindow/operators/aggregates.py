"""What an aggregation does with its values, as plain values: the built-in ones can also run on whole columns.

An aggregator has a start, a step and a result. The state is what the store keeps. Sums fold in the order in which the
task takes the records, so a float has the same last bit in every layout.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from rewindow.core.binding import FieldType, RowType
from rewindow.core.record import maker, row_class
from rewindow.errors import ConfigError


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


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records (null values included, as windowed counts of Kafka Streams do)."""

    def start(self) -> int:
        """See `Aggregator`."""
        return 0

    def add(self, key: Any, value: Any, state: int) -> int:
        """See `Aggregator`."""
        del key, value
        return state + 1

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
class _OfField(ABC):
    """An aggregate of one field of the values, or of the values themselves. Nulls are left out; of none it is null."""

    field: str | None = None

    def start(self) -> Any:
        """See `Aggregator`."""
        return None

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        operand = value if self.field is None or value is None else getattr(value, self.field)
        if operand is None:
            return state
        return operand if state is None else self.combine(state, operand)

    def result(self, state: Any) -> Any:
        """See `Aggregator`."""
        return state

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return FieldType(value, self.field)

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return FieldType(value, self.field)

    @abstractmethod
    def combine(self, state: Any, operand: Any) -> Any:
        """Return the state with one more operand; neither is null."""


@dataclass(frozen=True, slots=True)
class Sum(_OfField):
    """The sum."""

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_OfField`."""
        return state + operand


@dataclass(frozen=True, slots=True)
class Min(_OfField):
    """The smallest."""

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_OfField`."""
        return min(state, operand)


@dataclass(frozen=True, slots=True)
class Max(_OfField):
    """The largest."""

    def combine(self, state: Any, operand: Any) -> Any:
        """See `_OfField`."""
        return max(state, operand)


@dataclass(frozen=True, slots=True)
class Mean:
    """The arithmetic mean of a field, or of the values; nulls are left out, and of none it is null."""

    field: str | None = None

    def start(self) -> Any:
        """See `Aggregator`."""
        return _MEAN(0, 0)

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        operand = value if self.field is None or value is None else getattr(value, self.field)
        return state if operand is None else _MEAN(state.total + operand, state.number + 1)

    def result(self, state: Any) -> float | None:
        """See `Aggregator`."""
        return state.total / state.number if state.number else None

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return RowType((("total", FieldType(value, self.field)), ("number", int)))

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        del value
        return float


_MEAN = row_class(("total", "number"))


@dataclass(frozen=True)
class Several:
    """Several aggregates at once; state and result are rows with their names."""

    parts: tuple[tuple[str, Any], ...]

    @cached_property
    def _aggregators(self) -> tuple[Any, ...]:
        return tuple(part for _, part in self.parts)

    @cached_property
    def _row(self) -> Callable[[tuple[Any, ...]], Any]:
        return maker(row_class(tuple(name for name, _ in self.parts)))

    @cached_property
    def _shows_state(self) -> bool:
        return all(part.__class__ in (Count, Sum, Min, Max) for part in self._aggregators)

    def start(self) -> Any:
        """See `Aggregator`."""
        return self._row(tuple([part.start() for part in self._aggregators]))

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        parts = zip(self._aggregators, state)  # noqa: B905 - to check the length of both would cost a third of it all
        return self._row(tuple([part.add(key, value, one) for part, one in parts]))

    def result(self, state: Any) -> Any:
        """See `Aggregator`."""
        if self._shows_state:
            return state
        return self._row(tuple([part.result(one) for part, one in zip(self._aggregators, state, strict=True)]))

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return RowType(tuple((name, part.state_type(value)) for name, part in self.parts))

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return RowType(tuple((name, part.result_type(value)) for name, part in self.parts))


@dataclass(frozen=True, slots=True)
class Reduce:
    """``reducer(aggregate, value)``; the first value starts it."""

    reducer: Callable[[Any, Any], Any]

    def start(self) -> Any:
        """See `Aggregator`."""
        return None

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        return value if state is None else self.reducer(state, value)

    def result(self, state: Any) -> Any:
        """See `Aggregator`."""
        return state

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return value

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return value


@dataclass(frozen=True, slots=True)
class Custom:
    """``initializer() -> aggregate`` and ``aggregator(key, value, aggregate) -> aggregate``, of a declared type."""

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    type: Any = None

    def start(self) -> Any:
        """See `Aggregator`."""
        return self.initializer()

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        return self.aggregator(key, value, state)

    def result(self, state: Any) -> Any:
        """See `Aggregator`."""
        return state

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        del value
        return self.type

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        del value
        return self.type


def several(parts: Mapping[str, Aggregator]) -> Several:
    """Return the aggregate of several named ones. Raises `ConfigError` for none, or a name that is no identifier."""
    for name in parts:
        if not name.isidentifier():
            message = f"aggregate({{{name!r}: ...}}): a result's name becomes a column, so it must be an identifier"
            raise ConfigError(message)
    if not parts:
        message = "aggregate({}) has nothing to compute: give at least one named aggregate"
        raise ConfigError(message)
    return Several(tuple(parts.items()))
