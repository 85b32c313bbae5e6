"""What flows along an edge of a topology: the columns of keys and values, each with the log columns that it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rewindow.dsl.operators.expressions import Expression, Literal, Name, names_of_expression

IDENTITY, TRANSFORMATION = "IDENTITY", "TRANSFORMATION"
TIMESTAMP = "timestamp"
"""The column of a log with the event times."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of a log, and how a column or the rows of an output depend on it, in the words of OpenLineage."""

    topic: str
    column: str
    how: str = IDENTITY
    described: str = ""
    is_direct: bool = True


Origins = frozenset[Origin]


@dataclass(frozen=True, slots=True)
class FlowColumn:
    """A column of a key or value."""

    name: str
    origins: Origins


@dataclass(frozen=True, slots=True)
class Flow:
    """The records that a node sends. ``time`` are the origins of their timestamps, ``rows`` those that decide what is sent."""

    key: tuple[FlowColumn, ...]
    value: tuple[FlowColumn, ...]
    time: Origins
    rows: Origins = frozenset()
    is_row: bool = True
    """Whether a value is a row with these fields, and not a bare value in one column."""

    def field(self, name: str) -> FlowColumn | None:
        """Return a field of the value."""
        return next((column for column in self.value if column.name == name), None) if self.is_row else None

    def named(self, name: str) -> FlowColumn | None:
        """Return what a name in an expression stands for; None if it is not one column."""
        field = self.field(name)
        if field is not None:
            return field
        if name == TIMESTAMP:
            return FlowColumn(name, self.time)
        columns = {"key": self.key, "value": self.value}.get(name, ())
        return columns[0] if len(columns) == 1 else None

    def evaluated(self, name: str, expression: Expression) -> FlowColumn | None:
        """Return the column of an expression; None if a name in it is not one column."""
        if isinstance(expression, Literal):
            return FlowColumn(name, frozenset())
        if isinstance(expression, Name):
            column = self.named(expression.name)
            return FlowColumn(name, column.origins) if column else None
        parts = [self.named(part_name) for part_name in names_of_expression(expression)]
        if any(part is None for part in parts):
            return None
        origins = frozenset(origin for part in parts if part for origin in part.origins)
        return FlowColumn(name, computed(origins, str(expression)))

    def depending_on(self, columns: Iterable[FlowColumn], how: str, described: str) -> Flow:
        """Return the flow if which records there are depends on some columns."""
        origins = {
            Origin(origin.topic, origin.column, how, described, is_direct=False)
            for column in columns
            for origin in column.origins
        }
        return replace(self, rows=self.rows | origins)

    def merged(self, other: Flow) -> Flow | None:
        """Return the flow of both; None if their columns differ."""
        for mine, theirs in ((self.key, other.key), (self.value, other.value)):
            if [column.name for column in mine] != [column.name for column in theirs]:
                return None
        return Flow(
            _both(self.key, other.key),
            _both(self.value, other.value),
            self.time | other.time,
            self.rows | other.rows,
            is_row=self.is_row and other.is_row,
        )


def computed(origins: Origins, described: str, how: str = TRANSFORMATION) -> Origins:
    """Return the origins of something that is computed from what has these origins. An aggregation stays one."""
    return frozenset(
        replace(origin, how=origin.how if origin.how == "AGGREGATION" else how, described=described)
        for origin in origins
    )


def _both(mine: tuple[FlowColumn, ...], theirs: tuple[FlowColumn, ...]) -> tuple[FlowColumn, ...]:
    return tuple(
        FlowColumn(column.name, column.origins | other.origins) for column, other in zip(mine, theirs, strict=True)
    )
