"""The aggregations, by the names that scenarios use."""

from __future__ import annotations

from typing import Any

from tests.oracle.vocabulary import concat, reducer, text_of


class Fold:
    """An aggregation: its start value, and how it adds, subtracts and merges."""

    def __init__(self, name: str, *, of_table: bool = False) -> None:
        self._name = name
        self._of_table = of_table
        self.start: Any = {"count": 0, "concat": ""}.get(name)

    def add(self, state: Any, value: Any) -> Any:
        """Return the state after a value. A state of None is empty."""
        if self._name == "count":
            return (state or 0) + 1
        if self._name == "concat":
            return f"{state or ''}+{text_of(value)}" if self._of_table else concat(state or "", value)
        return value if state is None else reducer(self._name)(state, value)

    def subtract(self, state: Any, value: Any) -> Any:
        """Return a table's state without one of its rows."""
        if self._name == "concat":
            return f"{state}-{text_of(value)}"
        return state - (1 if self._name == "count" else value)

    def merge(self, state: Any, other: Any) -> Any:
        """Merge the states of two sessions."""
        if self._name == "count":
            return (state or 0) + (other or 0)
        if self._name == "concat":
            return ",".join(one for one in (state, other) if one)
        return other if state is None else reducer(self._name)(state, other)
