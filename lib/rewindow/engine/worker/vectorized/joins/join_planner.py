"""Decide which joins vectorized execution can run, from the graph and its types. Pure.

It runs one form: two logs or repartition topics -> where, select, Python functions -> a join of two streams, of a stream with
a table that a topic fills, or of two such tables -> where, select, Python functions -> a table or a repartition topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.dsl.operators.select import Select, Where
from rewindow.dsl.operators.stream_join import JoinSide, StreamJoin
from rewindow.dsl.operators.stream_table_join import StreamTableJoin
from rewindow.dsl.operators.table_join import TableJoinResult
from rewindow.dsl.operators.table_verbs import TableSource, TableToStream
from rewindow.dsl.operators.table_view import StoreView
from rewindow.engine.worker.vectorized.arrays import NotVectorizableError
from rewindow.engine.worker.vectorized.batches import name_at
from rewindow.engine.worker.vectorized.plans import (
    OPERATORS,
    JoinedTable,
    JoinInput,
    JoinPlan,
    JoinStore,
    source_types,
    suffix_of,
)
from rewindow.engine.worker.vectorized.prefix_operators import bind_prefix, prune_prefix
from rewindow.engine.worker.vectorized.row_functions import FUNCTIONS
from rewindow.streams.nodes import Node, SinkNode, SourceNode
from rewindow.streams.serde.binding import LogShapes, bind, bind_sink, bind_store
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.topology import SubTopology, Topology, describe_supplier

JOINS = (StreamJoin, StreamTableJoin, TableJoinResult)
FORM = (
    "vectorized execution takes a join of two streams, of a stream with a table, or of two tables with to_stream() behind it. "
    "Each side is a log or a repartition, with where, select, filter, map_values, flat_map_values and peek before the join. "
    "Behind it may be where, select, filter, map and other verbs with functions, then a table or a repartition"
)


def joins_in(part: SubTopology) -> list[Any]:
    """Return the nodes that join streams with streams or tables."""
    return [node for node in part.nodes if type(_supplier(node)) in JOINS]


def plan_join(topology: Topology, part: SubTopology, logs: LogShapes) -> JoinPlan:
    """Return the plan of a part with a join. Raises `NotVectorizableError` with the reason if there is none."""
    joins = joins_in(part)
    if len(joins) > 1:
        raise NotVectorizableError(f"it has {len(joins)} joins: {', '.join(node.name for node in joins)}")
    (join,) = joins
    graph = _Graph(part)
    supplier = None if isinstance(join.supplier, TableJoinResult) else join.supplier
    tables: tuple[JoinedTable, ...] = ()
    if supplier is None:
        ends, tables = graph.ends_of_tables(join)
    elif isinstance(supplier, StreamJoin):
        ends = graph.ends_of_streams(join)
    else:
        ends, tables = graph.ends_of_table(join)
    chains = [graph.chain_to(end) for end in ends]
    behind = graph.behind(join if supplier else graph.to_stream(join))
    sink = behind[-1]
    graph.check_all_used()
    sources = [chain[0] for chain in chains]
    left, right = (_input(topology, chain, logs) for chain in chains)
    if not _are_equal(left.key, right.key):
        raise NotVectorizableError(f"the keys of {left.topic} and {right.topic} have different types")
    stores = {store.name: JoinStore(store, bind_store(store, logs)) for store in part.stores}
    _check_stores(supplier, tables, stores, (left, right), logs)
    sink_shapes = bind_sink(sink, logs)
    is_direct = len(behind) == 1 and not sink.is_internal and _are_equal(sink_shapes[0], left.key)
    is_reversed = part.sources.index(sources[0]) > part.sources.index(sources[1])
    return JoinPlan(
        node=join.name,
        supplier=supplier,
        tables=tables,
        lag_ms=max(topology.watermark_lags()[source.name] for source in sources),
        inputs=(right, left) if is_reversed else (left, right),
        left=int(is_reversed),
        stores=stores,
        sink=sink,
        sink_shapes=sink_shapes,
        suffix=None if is_direct else suffix_of(part, behind, sink_shapes),
    )


class _Graph:
    """Walks the nodes of a part. Each method raises `NotVectorizableError` for nodes in another form."""

    def __init__(self, part: SubTopology) -> None:
        self._nodes: dict[str, Any] = {node.name: node for node in part.nodes}
        self._used: set[str] = set()

    def ends_of_streams(self, join: Any) -> list[Any]:
        """Return the last nodes of the left and the right chain of a join of streams."""
        self._use(join)
        parents = [self._nodes[name] for name in join.parents]
        marks = {node.supplier.is_left: node for node in parents if isinstance(_supplier(node), JoinSide)}
        for mark in marks.values():
            self._use(mark)
        return [self._nodes[marks[is_left].parents[0]] for is_left in (True, False)]

    def ends_of_table(self, join: Any) -> tuple[list[Any], tuple[JoinedTable, ...]]:
        """Return the last nodes of the chains of a stream and of its table, and the table."""
        self._use(join)
        if join.supplier.waiting is not None:
            raise NotVectorizableError(f"{join.name} has a grace period: its records wait for updates of the table")
        owner = self._owner(join, join.supplier.table)
        self._use(owner, children=0)
        ends = [self._nodes[join.parents[0]], self._nodes[owner.parents[0]]]
        return ends, (JoinedTable(owner.name, owner.supplier.store, is_left=False),)

    def ends_of_tables(self, join: Any) -> tuple[list[Any], tuple[JoinedTable, ...]]:
        """Return the last nodes of the chains of two tables, and the tables."""
        if join.supplier.store is not None:
            raise NotVectorizableError(f"{join.name} keeps its rows in a store")
        self._use(join)
        left, right = (self._nodes[name] for name in join.parents)
        ends, tables = [], []
        for updates, other, is_left in ((left, right, True), (right, left, False)):
            owner = self._owner(updates, other.supplier.other)
            if updates.parents != (owner.name,):
                raise NotVectorizableError(f"the updates of {owner.name} do not come from its topic alone; {FORM}")
            for node in (updates, owner):
                self._use(node)
            ends.append(self._nodes[owner.parents[0]])
            tables.append(JoinedTable(owner.name, owner.supplier.store, is_left, updates.supplier))
        return ends, tuple(tables)

    def _owner(self, join: Any, view: Any) -> Any:
        """Return the node that keeps the table of a view."""
        if type(view) is not StoreView or view.history_ms is not None:
            raise NotVectorizableError(
                f"the table of {join.name} is versioned, or has verbs between its store and the join"
            )
        owners = [node for node in self._nodes.values() if view.store in getattr(node, "stores", ())]
        owner = next((node for node in owners if isinstance(node.supplier, TableSource)), None)
        if owner is None:
            raise NotVectorizableError(f"the table of {join.name} is made by {owners[0].name}, not read from a topic")
        return owner

    def chain_to(self, node: Any) -> list[Any]:
        """Return the source above a node and the nodes from there to it."""
        if isinstance(node, SourceNode):
            self._use(node)
            return [node]
        if type(_supplier(node)) not in (Where, Select, *FUNCTIONS):
            raise NotVectorizableError(f"{node.name} is {describe_supplier(_supplier(node))}; {FORM}")
        self._use(node)
        return [*self.chain_to(self._nodes[node.parents[0]]), node]

    def behind(self, join: Any) -> list[Any]:
        """Return the nodes behind a join. The last is the sink."""
        nodes: list[Any] = []
        node = join
        while not isinstance(node, SinkNode):
            (node,) = self._children(node)
            if not isinstance(node, SinkNode) and type(_supplier(node)) not in OPERATORS:
                raise NotVectorizableError(f"{node.name} is {describe_supplier(_supplier(node))}; {FORM}")
            self._use(node, children=0 if isinstance(node, SinkNode) else 1)
            nodes.append(node)
        return nodes

    def to_stream(self, join: Any) -> Any:
        """Return the node that sends the updates of a joined table as a stream."""
        (node,) = self._children(join)
        if not isinstance(_supplier(node), TableToStream):
            raise NotVectorizableError(f"{node.name} is {describe_supplier(_supplier(node))}; {FORM}")
        self._use(node)
        return node

    def check_all_used(self) -> None:
        """Raise `NotVectorizableError` if there are other nodes."""
        others = [name for name in self._nodes if name not in self._used]
        if others:
            raise NotVectorizableError(f"{', '.join(others)} is in the same sub-topology; {FORM}")

    def _use(self, node: Any, *, children: int = 1) -> None:
        count = len(self._children(node))
        if count != children:
            raise NotVectorizableError(f"{node.name} has {count} children, so it is not a chain")
        self._used.add(node.name)

    def _children(self, node: Node) -> list[Any]:
        return [child for child in self._nodes.values() if node.name in child.parents]


def _input(topology: Topology, chain: Sequence[Any], logs: LogShapes) -> JoinInput:
    source, *prefix = chain
    internal, key, log_value = source_types(topology, source, logs)
    operators, value = bind_prefix(prefix, key, log_value, logs)
    if value.has_json or (value.row_type is None and not value.is_bare):
        raise NotVectorizableError(
            f"values of {source.topic} that are joined contain JSON: declare their types, as in map_values(..., value=...)"
        )
    names = {name_at(value, index) for index in range(len(value.columns))}
    pruned, reads = prune_prefix(operators, names)
    return JoinInput(source.topic, internal, key, log_value, value, pruned, frozenset(reads))


def _check_stores(
    supplier: Any,
    tables: Sequence[JoinedTable],
    stores: Mapping[str, JoinStore],
    inputs: tuple[JoinInput, JoinInput],
    logs: LogShapes,
) -> None:
    """Check that stores keep records as they are: a store may declare other types. ``inputs``: left and right."""
    left, right = inputs
    kept = [(table.store, left if table.is_left else right) for table in tables]
    if isinstance(supplier, StreamJoin):
        kept += [(name, left) for name in supplier.left if name] + [(name, right) for name in supplier.right if name]
    for name, side in kept:
        builder = stores[name].builder
        key, value = bind(builder.key, "key", logs), bind(builder.value, "value", logs)
        if not _are_equal(key, side.key) or not _are_equal(value, side.value):
            raise NotVectorizableError(f"the store {name} declares other types than those of {side.topic}")


def _are_equal(shape: Shape, other: Shape) -> bool:
    """Return whether two shapes have the same Python values in columns of the same types."""
    same_class = (shape.is_bare and other.is_bare) or (shape.row_type is not None and shape.row_type is other.row_type)
    return same_class and _types(shape.columns) == _types(other.columns)


def _types(columns: Sequence[Column]) -> list[str]:
    return [column.type for column in columns]


def _supplier(node: Any) -> Any:
    return getattr(node, "supplier", None)
