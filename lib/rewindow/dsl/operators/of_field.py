"""The base of aggregates over one field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OfField:
    """An aggregate of one field of the values, or of the values themselves. Nulls are skipped."""

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
