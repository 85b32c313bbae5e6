"""The columns of keys and values that flow along an edge of a topology, each with the log columns from which it is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rewindow.dsl.operators.expressions import Expression, Literal, Name, names_of_expression

IDENTITY, TRANSFORMATION = "IDENTITY", "TRANSFORMATION"
TIMESTAMP = "timestamp"
"""The log column that contains the records' timestamps."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of a log, and how a column or the rows of an output depend on this column.

    ``how`` is a word of OpenLineage, such as ``IDENTITY`` or ``AGGREGATION``; ``described`` is the
    expression. ``is_direct``: values are computed from the column, which does not only decide which rows are written.
    """

    topic: str
    column: str
    how: str = IDENTITY
    described: str = ""
    is_direct: bool = True


Origins = frozenset[Origin]


@dataclass(frozen=True, slots=True)
class FlowColumn:
    """A column of a key or value, and the log columns from which it is computed."""

    name: str
    origins: Origins


@dataclass(frozen=True, slots=True)
class Flow:
    """The columns of the records that a node sends.

    ``time`` has the origins of the records' timestamps. ``rows`` has the log columns that decide which records are sent.
    """

    key: tuple[FlowColumn, ...]
    value: tuple[FlowColumn, ...]
    time: Origins
    rows: Origins = frozenset()
    is_row: bool = True
    """Whether values are rows whose fields are the columns ``value``. If not, a value is the value of one column."""

    def field(self, name: str) -> FlowColumn | None:
        """Return the column of a field of the value, or None."""
        return next((column for column in self.value if column.name == name), None) if self.is_row else None

    def named(self, name: str) -> FlowColumn | None:
        """Return the column that a name in an expression refers to; None if the name does not refer to exactly one column."""
        field = self.field(name)
        if field is not None:
            return field
        if name == TIMESTAMP:
            return FlowColumn(name, self.time)
        columns = {"key": self.key, "value": self.value}.get(name, ())
        return columns[0] if len(columns) == 1 else None

    def evaluated(self, name: str, expression: Expression) -> FlowColumn | None:
        """Return the column ``name`` that an expression computes; None if the expression has a name without a column."""
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
        """Return this flow with ``columns`` added to those that decide which records are sent. For ``how`` see `Origin`."""
        origins = {
            Origin(origin.topic, origin.column, how, described, is_direct=False)
            for column in columns
            for origin in column.origins
        }
        return replace(self, rows=self.rows | origins)

    def merged(self, other: Flow) -> Flow | None:
        """Return the union of two flows; None if the names of their columns differ."""
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
    """Return the origins of a value that is computed from values with these origins.

    ``how`` and ``described`` are set in each origin, except that ``how`` stays ``AGGREGATION``.
    """
    return frozenset(
        replace(origin, how=origin.how if origin.how == "AGGREGATION" else how, described=described)
        for origin in origins
    )


def _both(mine: tuple[FlowColumn, ...], theirs: tuple[FlowColumn, ...]) -> tuple[FlowColumn, ...]:
    return tuple(
        FlowColumn(column.name, column.origins | other.origins) for column, other in zip(mine, theirs, strict=True)
    )
