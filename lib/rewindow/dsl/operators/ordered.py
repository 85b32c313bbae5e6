"""Aggregates whose result depends on the order of the records: `First`, `Last` and `Collect`.

The order is that in which the task processes the records (L1), not that of their timestamps. Merged sessions are combined
in the order of their times. Null fields and null values are skipped.
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
    """An aggregate whose state consists of operands."""

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
        """Return the state with another operand, which is not null."""

    @abstractmethod
    def merge(self, state: Any, later: Any) -> Any:
        """See `Mergeable`."""


@dataclass(frozen=True, slots=True)
class First(_Ordered):
    """The first non-null value of a field, or of the values; null if there is none."""

    def with_operand(self, state: Any, operand: Any) -> Any:
        """See `_Ordered`."""
        return operand if state is None else state

    def merge(self, state: Any, later: Any) -> Any:
        """See `_Ordered`."""
        return later if state is None else state


@dataclass(frozen=True, slots=True)
class Last(_Ordered):
    """The last non-null value of a field, or of the values; null if there is none."""

    def with_operand(self, state: Any, operand: Any) -> Any:
        """See `_Ordered`."""
        del state
        return operand

    def merge(self, state: Any, later: Any) -> Any:
        """See `_Ordered`."""
        return state if later is None else later


@dataclass(frozen=True, slots=True)
class Collect(_Ordered):
    """The list of all non-null values of a field, or of the values; empty if there is none.

    In record execution each record stores and sends the whole list, so use it for windows and keys with few records there. The
    limit ``list_items`` ends a run whose list grows longer (71).

    In an output table the list is a column of JSON text, like ``[1,2]``: pandas and SQL read the text. Later operators of the
    same job get a list, and so does a second job whose feed lands the output.
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
        """See `Subtractable`. Removes the first equal item."""
        del key
        text = dump_value(self.operand(value))
        for index, one in enumerate(state):
            if dump_value(one) == text:  # not ==: NaN is identical to itself only until a restart
                return [*state[:index], *state[index + 1 :]]
        return state

    def merge(self, state: list[Any], later: list[Any]) -> list[Any]:
        """See `_Ordered`."""
        return [*state, *later]
