"""Aggregates that combine several aggregates, and aggregates that are made of user functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from typing import Any

from rewindow.dsl.operators.builtin_aggregates import (
    Aggregator,
    Collect,
    Count,
    First,
    Last,
    Max,
    Min,
    Sum,
    described,
    is_aggregate,
)
from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import maker, row_class
from rewindow.streams.serde.types_to_columns import RowType


@dataclass(frozen=True)
class Several:
    """Several named aggregates. State and result are rows with one field for each aggregate."""

    parts: tuple[tuple[str, Any], ...]

    def describe(self) -> str:
        """See `described`."""
        return ", ".join(f"{name}={described(part)}" for name, part in self.parts)

    @cached_property
    def _aggregators(self) -> tuple[Any, ...]:
        return tuple(part for _, part in self.parts)

    @cached_property
    def _row(self) -> Callable[[tuple[Any, ...]], Any]:
        return maker(row_class(tuple(name for name, _ in self.parts)))

    @cached_property
    def _results_are_states(self) -> bool:
        return all(part.__class__ in _RESULT_IS_STATE for part in self._aggregators)

    def start(self) -> Any:
        """See `Aggregator`."""
        return self._row(tuple([part.start() for part in self._aggregators]))

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        parts = zip(self._aggregators, state)  # noqa: B905 - checking the lengths would take a third of this method's time
        return self._row(tuple([part.add(key, value, own_state) for part, own_state in parts]))

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """See `Subtractable`. All parts must be subtractable."""
        parts = zip(self._aggregators, state, strict=True)
        return self._row(tuple([part.subtract(key, value, own_state) for part, own_state in parts]))

    def merge(self, state: Any, later: Any) -> Any:
        """See `Mergeable`."""
        parts = zip(self._aggregators, state, later, strict=True)
        return self._row(tuple([part.merge(own_state, own_later) for part, own_state, own_later in parts]))

    def result(self, state: Any) -> Any:
        """See `Aggregator`."""
        if self._results_are_states:
            return state
        return self._row(
            tuple([part.result(own_state) for part, own_state in zip(self._aggregators, state, strict=True)])
        )

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return RowType(tuple((name, part.state_type(value)) for name, part in self.parts))

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return RowType(tuple((name, _result_type(part, value)) for name, part in self.parts))


def _result_type(part: Any, value: Any) -> Any:
    """Return the type of one field of the result. Where possible, the type distinguishes a null from a row of nulls."""
    return part.state_type(value) if part.__class__ in _RESULT_IS_STATE else part.result_type(value)


_RESULT_IS_STATE = (Count, Sum, Min, Max, First, Last, Collect)
"""The built-in aggregates whose result is equal to their state."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combine values with ``reducer(aggregate, value)``. The first value is the first aggregate."""

    reducer: Callable[[Any, Any], Any]

    def describe(self) -> str:
        """See `described`."""
        return "reduce"

    def start(self) -> Any:
        """See `Aggregator`."""
        return None

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        return value if state is None else self._reduced(state, value)

    def merge(self, state: Any, later: Any) -> Any:
        """See `Mergeable`."""
        return later if state is None else self._reduced(state, later)

    def _reduced(self, state: Any, value: Any) -> Any:
        reduced = self.reducer(state, value)
        fields = getattr(value, "_fields", None) if reduced.__class__ is tuple else None
        if fields and len(reduced) > len(fields):
            raise DataError(
                "reduced-rows-joined",
                "the reducer made one tuple of two rows, as `+` does: take a field of each, as in one.{field} + other.{field}, "
                "and return a row",
                field=fields[0],
            )
        return reduced

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
    """User functions: ``initializer() -> aggregate`` and ``aggregator(key, value, aggregate) -> aggregate``.

    ``type`` is the declared type of the aggregate.
    """

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    type: Any = None

    def describe(self) -> str:
        """See `described`."""
        return "custom"

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
    """Combine aggregates, given by name. Raises `ConfigError` if there are none, or if one or its name is invalid."""
    for name in parts:
        if not name.isidentifier() or iskeyword(name) or name.startswith("_"):
            raise ConfigError(
                "aggregate-name-invalid",
                "aggregate({{{name!r}: ...}}): a result's name becomes a column, so it must be an identifier, not a Python "
                "keyword, and not begin with '_'",
                name=name,
            )
    for name, part in parts.items():
        if not is_aggregate(part):
            raise ConfigError(
                "aggregate-part-invalid",
                "aggregate({{{name!r}: {part}}}): give an aggregate, as in Count() or Sum('amount')",
                name=name,
                part=repr(part),
            )
    if not parts:
        raise ConfigError("aggregates-missing", "aggregate({{}}) computes nothing: give at least one named aggregate")
    return Several(tuple(parts.items()))
