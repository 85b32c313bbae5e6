"""The origins of the columns of a topology's outputs: the columns of logs from which they are computed, and how.

A `Flow` describes the records on an edge of the topology: the columns of keys and values, each with its origins. Origins are
known only for declarative operators, not below a node that calls a Python function of the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewindow.dsl.operators.builtin_aggregates import Collect, Count, First, Last, Max, Mean, Min, Sum, described
from rewindow.dsl.operators.compound import Several
from rewindow.dsl.operators.conditions import names_in
from rewindow.dsl.operators.expressions import Expression, Literal, Name, names_of_expression
from rewindow.dsl.operators.select import Select, Where
from rewindow.dsl.operators.session_aggregate import Merging, SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.dsl.operators.stateless import KeyedOnly, PassThrough
from rewindow.dsl.operators.suppress import SuppressUntilTimeLimit, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_verbs import TableSource, TableToStream
from rewindow.dsl.operators.window_aggregate import StreamAggregate, WindowAggregate
from rewindow.streams.nodes import Node, ProcessorNode, SourceNode
from rewindow.streams.serde.types_to_columns import LogShapes, bind_sink
from rewindow.streams.topology import Topology

_PASSING = (PassThrough, KeyedOnly, TableSource, TableToStream, SuppressUntilWindowCloses, SuppressUntilTimeLimit)
_WINDOWED = (WindowAggregate, SlidingAggregate, SessionAggregate)
_BUILT_IN = (Count, Sum, Min, Max, Mean, First, Last, Collect)
IDENTITY, TRANSFORMATION = "IDENTITY", "TRANSFORMATION"
TIMESTAMP = "timestamp"
"""The log column that contains the records' timestamps."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of a log, and how a column or the rows of an output depend on this column.

    ``how`` is a word of OpenLineage, such as ``IDENTITY`` or ``AGGREGATION``; ``described`` is the expression. ``is_direct``:
    whether values are computed from the column. If not, the column only decides which rows are written.
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
        """Return the column of a field of the value; None if there is none."""
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
        """Return this flow with ``columns`` added to the columns that decide which records are sent. ``how``: see `Origin`."""
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


@dataclass(frozen=True, slots=True)
class OutputOrigins:
    """The origins of an output's columns, by column name. ``rows``: the log columns that decide which rows are written."""

    columns: Mapping[str, frozenset[Origin]]
    rows: frozenset[Origin]


def column_origins(topology: Topology, logs: LogShapes) -> dict[str, OutputOrigins]:
    """Return, by output topic, the origins of its columns. Outputs below a Python function of the user are left out."""
    walk = _Walk(topology, logs)
    origins = {}
    for sink in walk.sinks:
        flow = walk.into(sink)
        if sink.is_internal or flow is None:
            continue
        shapes = bind_sink(sink, logs)
        names = [name for shape in shapes for name in shape.names]
        columns = (*flow.key, *flow.value)
        if len(names) != len(columns):
            # The sink declares another type, so its columns cannot be matched with those of the flow.
            continue
        by_name = {name: column.origins for name, column in zip(names, columns, strict=True)}
        origins[sink.topic] = OutputOrigins(by_name | {"_timestamp": computed(flow.time, "event time")}, flow.rows)
    return origins


class _Walk:
    """Computes the flow out of each node, from the sources downwards. Each node is computed once."""

    def __init__(self, topology: Topology, logs: LogShapes) -> None:
        self._logs = logs
        parts = topology.sub_topologies()
        self._nodes = {(part.index, node.name): node for part in parts for node in part.nodes}
        self._part_of = {id(node): part.index for part in parts for node in part.nodes}
        self.sinks = [sink for part in parts for sink in part.sinks]
        self._known: dict[int, Flow | None] = {}

    def into(self, node: Node) -> Flow | None:
        """Return the flow into a node: the union of the flows out of its parents; None if it is not known."""
        part = self._part_of[id(node)]
        return _union([self._out_of(self._nodes[part, name]) for name in node.parents])

    def _out_of(self, node: Node) -> Flow | None:
        if id(node) not in self._known:
            self._known[id(node)] = self._sent_by(node)
        return self._known[id(node)]

    def _sent_by(self, node: Node) -> Flow | None:
        if isinstance(node, SourceNode):
            if node.is_internal:
                return _union([self.into(sink) for sink in self.sinks if sink.topic == node.topic])
            return self._log(node.topic)
        flow = self.into(node)
        return _applied(node.supplier, flow) if isinstance(node, ProcessorNode) and flow else None

    def _log(self, topic: str) -> Flow | None:
        if topic not in self._logs:
            return None
        key, value = (
            tuple(FlowColumn(name, frozenset([Origin(topic, name)])) for name in shape.names)
            for shape in self._logs[topic]
        )
        return Flow(key, value, frozenset([Origin(topic, TIMESTAMP)]), is_row=self._logs[topic][1].row_type is not None)


def _applied(supplier: Any, flow: Flow) -> Flow | None:
    if isinstance(supplier, _PASSING):
        return flow
    if isinstance(supplier, Where):
        names = [flow.named(name) for name in names_in(supplier.condition)]
        if any(column is None for column in names):
            return None
        return flow.depending_on([column for column in names if column], "FILTER", str(supplier.condition))
    if isinstance(supplier, Select):
        fields = [flow.evaluated(name, expression) for name, expression in supplier.fields]
        certain = tuple(field for field in fields if field is not None)
        return replace(flow, value=certain, is_row=True) if len(certain) == len(fields) else None
    if isinstance(supplier, SessionAggregate) and not isinstance(supplier.merger, Merging):
        return None
    if isinstance(supplier, (*_WINDOWED, StreamAggregate)):
        return _aggregated(supplier, flow)
    return None


def _aggregated(supplier: Any, flow: Flow) -> Flow | None:
    made = supplier.aggregator
    parts = made.parts if isinstance(made, Several) else (("value", made),)
    columns = [_of_aggregate(name, part, flow) for name, part in parts]
    certain = tuple(column for column in columns if column is not None)
    if len(certain) != len(columns):
        return None
    grouped = flow.depending_on(flow.key, "GROUP_BY", "key")
    key = flow.key
    if isinstance(supplier, _WINDOWED):
        bounds = (FlowColumn(name, computed(flow.time, name)) for name in ("window_start", "window_end"))
        key = (*key, *bounds)
    return replace(grouped, key=key, value=certain, is_row=isinstance(made, Several))


def _of_aggregate(name: str, part: Any, flow: Flow) -> FlowColumn | None:
    if type(part) not in _BUILT_IN:
        return None
    if isinstance(part, Count):
        return FlowColumn(name, frozenset())
    if part.field is None and flow.is_row:
        return None
    operand = flow.value[0] if part.field is None else flow.field(part.field)
    if operand is None:
        return None
    return FlowColumn(name, computed(operand.origins, described(part), "AGGREGATION"))


def _union(flows: Sequence[Flow | None]) -> Flow | None:
    merged, *others = flows or [None]
    for other in others:
        if merged is None or other is None:
            return None
        merged = merged.merged(other)
    return merged
