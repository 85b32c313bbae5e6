"""Aggregates whose result depends on the order of the records: the first, the last, all of them.

The order is that in which the task takes the records (L1), not that of their timestamps; sessions that meet are put
together in the order of their times. Nulls are left out: a null field, and a null value where a window counts it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from rewindow.dsl.operators.of_field import OfField
from rewindow.streams.serde.binding import ListType, OptionalType
from rewindow.streams.serde.canonical_json import dump_value


@dataclass(frozen=True, slots=True)
class _Ordered(OfField, ABC):
    """An aggregate that keeps operands as they are."""

    def add(self, key: Any, value: Any, state: Any) -> Any:
        """See `Aggregator`."""
        del key
        operand = self.operand(value)
        return state if operand is None else self.taken(state, operand)

    def state_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return OptionalType(value, self.field)

    def result_type(self, value: Any) -> Any:
        """See `Aggregator`."""
        return self.state_type(value) if self.field else value

    @abstractmethod
    def taken(self, state: Any, operand: Any) -> Any:
        """Return the state with one more operand, which is not null."""

    @abstractmethod
    def merge(self, state: Any, later: Any) -> Any:
        """See `Mergeable`."""


@dataclass(frozen=True, slots=True)
class First(_Ordered):
    """The first value that is not null, of a field or whole; of none it is null."""

    def taken(self, state: Any, operand: Any) -> Any:
        """See `_Ordered`."""
        return operand if state is None else state

    def merge(self, state: Any, later: Any) -> Any:
        """See `_Ordered`."""
        return later if state is None else state


@dataclass(frozen=True, slots=True)
class Last(_Ordered):
    """The last value that is not null, of a field or whole; of none it is null."""

    def taken(self, state: Any, operand: Any) -> Any:
        """See `_Ordered`."""
        del state
        return operand

    def merge(self, state: Any, later: Any) -> Any:
        """See `_Ordered`."""
        return state if later is None else later


@dataclass(frozen=True, slots=True)
class Collect(_Ordered):
    """The list of all values that are not null, of a field or whole; of none it is empty.

    It is kept and sent on as a whole for each record, so it is for windows and keys with few of them.
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

    def taken(self, state: list[Any], operand: Any) -> list[Any]:
        """See `_Ordered`."""
        return [*state, operand]

    def subtract(self, key: Any, value: Any, state: list[Any]) -> list[Any]:
        """See `Subtractable`. The first one that is equal goes."""
        del key
        text = dump_value(self.operand(value))
        for index, one in enumerate(state):
            if dump_value(one) == text:  # not ==: what is no number equals itself before a restart only
                return [*state[:index], *state[index + 1 :]]
        return state

    def merge(self, state: list[Any], later: list[Any]) -> list[Any]:
        """See `_Ordered`."""
        return [*state, *later]
