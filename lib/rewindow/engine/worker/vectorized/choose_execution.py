"""Decide which sub-topologies vectorized execution can run, from the graph and its types alone.

Such a sub-topology has one of two forms. The form with windows: a log or a repartition topic -> where, select, Python
functions -> group by key -> time or session windows -> built-in aggregates -> final results -> where, select, Python
functions -> a table or a repartition topic.

The form with a join: two logs or repartition topics -> where, select, Python functions -> a join of two streams, of a stream
with a table that a topic fills, or of two such tables -> where, select, Python functions -> a table or a repartition topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from rewindow.contracts.tasks import Execution
from rewindow.dsl.operators.compound import Several
from rewindow.dsl.operators.select import Select, Where
from rewindow.dsl.operators.session_aggregate import Merging, SessionAggregate
from rewindow.dsl.operators.stream_join import JoinSide, StreamJoin
from rewindow.dsl.operators.stream_table_join import StreamTableJoin
from rewindow.dsl.operators.suppress import NO_BOUNDS, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_join import TableJoinResult
from rewindow.dsl.operators.table_verbs import TableSource, TableToStream
from rewindow.dsl.operators.table_view import StoreView
from rewindow.dsl.operators.window_aggregate import EmitStrategy, WindowAggregate
from rewindow.engine.worker.vectorized.arrays import NotVectorizableError, fixed_size
from rewindow.engine.worker.vectorized.batches import name_at
from rewindow.engine.worker.vectorized.folds import ValueFold
from rewindow.engine.worker.vectorized.plans import (
    OPERATORS,
    FinalResultsPlan,
    JoinedTable,
    JoinInput,
    JoinPlan,
    JoinStore,
    Suppressing,
    shape_of_results,
    source_types,
    suffix_of,
)
from rewindow.engine.worker.vectorized.prefix_operators import bind_prefix, prune_prefix
from rewindow.engine.worker.vectorized.result_sizes import only_grow
from rewindow.engine.worker.vectorized.row_functions import FUNCTIONS
from rewindow.engine.worker.vectorized.value_folds import fold_for, indexes_of
from rewindow.streams.error_policy import policies_of
from rewindow.streams.nodes import Node, SinkNode, SourceNode
from rewindow.streams.serde.schema import Column, Shape, windowed_shape
from rewindow.streams.serde.types_to_columns import LogShapes, bind, bind_sink, bind_store
from rewindow.streams.settings import OnError, Settings
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import SubTopology, Topology, describe_supplier
from rewindow.streams.windows.calendar import CalendarWindows
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows

Plan = FinalResultsPlan | JoinPlan
_FORM = (
    "vectorized execution takes a chain: a log or a repartition; where, select, filter, map_values, flat_map_values and peek; "
    "group_by_key; time or session windows with built-in aggregates; suppress(until_window_closes()) or "
    "emit_strategy(on_window_close()); to_stream; where, select, filter, map and other verbs with functions; a table or a "
    "repartition"
)


def choose_execution(
    execution: Execution, topology: Topology, part: SubTopology, logs: LogShapes, *, one_by_one: str
) -> Plan | str:
    """Return the plan of vectorized execution of a part of a topology, or the reason for record execution.

    ``one_by_one``: see `why_one_by_one`.
    """
    if execution is Execution.RECORD:
        return "the target sets execution: record"
    try:
        plan = plan_vectorized(topology, part, logs)
    except NotVectorizableError as reason:
        return str(reason)
    return one_by_one or plan


def why_one_by_one(topology: Topology, part: SubTopology, settings: Settings, *, has_quarantine: bool) -> str:
    """Return, as text, the settings that force a sub-topology to process records one by one; empty if there are none.

    These settings quarantine, retry or skip single records, so they matter whatever the nodes do. ``has_quarantine``: whether
    the job writes to a quarantine.
    """
    reasons = [_policy_words(name, policy) for name, policy in policies_of(part, settings.on_error).items()]
    if has_quarantine:
        reasons += ["the job has `dropped: quarantine`"] if settings.keeps_dropped else []
        reasons = reasons or [
            f"the job quarantines records: {setting}" for setting in _quarantining(topology, settings)[:1]
        ]
    return ", and ".join(reasons)


def _quarantining(topology: Topology, settings: Settings) -> list[str]:
    policies = [policies_of(part, settings.on_error).items() for part in topology.sub_topologies()]
    return [_policy_words(name, policy) for of_nodes in policies for name, policy in of_nodes if policy.quarantines]


def _policy_words(node: str, policy: OnError) -> str:
    words = [*([f"retry {policy.retries}"] if policy.retries else []), *(["quarantine"] if policy.quarantines else [])]
    return f"node {node} has `on_error: {' '.join(words)}`"


def describe_execution(
    execution: Execution, topology: Topology, part: SubTopology, logs: LogShapes, *, one_by_one: str
) -> str:
    """Return the execution of a sub-topology and the reason, for `explain`. ``one_by_one``: see `why_one_by_one`."""
    plan = choose_execution(execution, topology, part, logs, one_by_one=one_by_one)
    if isinstance(plan, str):
        return f"record execution (Python, record by record): {plan}"
    return (
        f"vectorized execution (whole Arrow batches): {_how_joined(plan) if isinstance(plan, JoinPlan) else _how(plan)}"
    )


def _how(plan: FinalResultsPlan) -> str:
    how = [] if plan.has_functions else ["every node is declarative"]
    how += _calls_in_front(plan.functions_in_front)
    if names := plan.functions_behind:
        how.append(f"{', '.join(names)}: Python functions, called for each final result")
    return (
        f"{'; '.join(how)}. It does not sample the suppress buffer "
        "(suppression-buffer-count and -size). A task falls back to record execution for sums beyond 64 bits, extremes of "
        f"NaN{'' if plan.takes_nulls else ', and nulls in sessions'}"
        f"{', and for a function that raises or returns another type than declared' if plan.has_functions else ''}"
    )


def _how_joined(plan: JoinPlan) -> str:
    how = [f"{plan.node}: partners are found on columns, and the joiner is called for each result"]
    how += _calls_in_front([name for join_input in plan.inputs for name in join_input.functions])
    if plan.suffix and (names := plan.suffix.functions):
        how.append(f"{', '.join(names)}: Python functions, called for each result")
    return (
        f"{'; '.join(how)}. A task falls back to record execution for a function that raises or returns another type than "
        "declared, for null keys behind a repartition, and for stores larger than store_memory, which spill there"
    )


def _calls_in_front(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    text = (
        f"{', '.join(names)}: Python functions, called record by record on decoded batches, which costs more "
        "than all the rest (where and select do not); everything behind them runs on columns"
    )
    return [text]


def plan_vectorized(topology: Topology, part: SubTopology, logs: LogShapes) -> Plan:
    """Return the plan of a part of a topology. Raises `NotVectorizableError`, with the reason, if there is no plan."""
    return _plan_join(topology, part, logs) if _joins_in(part) else _plan_windows(topology, part, logs)


def _plan_windows(topology: Topology, part: SubTopology, logs: LogShapes) -> FinalResultsPlan:
    source, prefix, window, suppress, behind = _chain(part)
    sink = behind[-1]
    aggregate: Any = window.supplier
    if type(aggregate.windows) not in (TimeWindows, CalendarWindows, SessionWindows):
        raise NotVectorizableError(
            f"{window.name}: its windows are neither TimeWindows nor CalendarWindows nor SessionWindows"
        )
    if suppress and suppress.supplier.bounds != NO_BOUNDS:
        raise NotVectorizableError(f"{suppress.name}: its buffer is bounded")
    stores = {store.name: store for store in part.stores}
    internal, key, log_value = source_types(topology, source, logs)
    parts = aggregate.aggregator.parts if isinstance(aggregate.aggregator, Several) else ((None, aggregate.aggregator),)
    operators, value = bind_prefix(prefix, key, log_value, logs)
    folds = tuple(fold_for(aggregate, value, f"part-{n}") for n, (_, aggregate) in enumerate(parts))
    pruned, reads = prune_prefix(operators, {name_at(value, index) for fold in folds for index in indexes_of(fold)})
    names = tuple(name for name, _ in parts if name)
    sink_shapes = bind_sink(sink, logs)
    suffix = suffix_of(part, behind, sink_shapes) if len(behind) > 1 or sink.is_internal else None
    of_key = windowed_shape(key, session=isinstance(aggregate.windows, SessionWindows))
    plan = FinalResultsPlan(
        topic=source.topic,
        lag_ms=topology.watermark_lags()[source.name],
        window_node=window.name,
        suppress=_suppressing(suppress, stores, logs) if suppress else None,
        sink=sink,
        internal=internal,
        windows=aggregate.windows,
        store=stores[aggregate.store],
        key=key,
        log_value=log_value,
        value=value,
        folds=folds,
        prefix=pruned,
        reads=frozenset(reads),
        names=names,
        store_shapes=bind_store(stores[aggregate.store], logs),
        sink_shapes=sink_shapes,
        suffix=suffix,
        result_shapes=(of_key, shape_of_results(folds, names)) if suffix else None,
    )
    if plan.suppress and plan.sizes.are_texts:
        for fold in folds:
            if isinstance(fold, ValueFold):
                fold.keeps_before = True
    if isinstance(plan.windows, SessionWindows):
        _check_sessions(plan, plan.windows, aggregate)
    _check_types(plan)
    return plan


def _check_sessions(plan: FinalResultsPlan, windows: SessionWindows, aggregate: SessionAggregate) -> None:
    made, merger = aggregate.aggregator, aggregate.merger
    if not isinstance(merger, Merging) or merger.aggregate is not made:
        raise NotVectorizableError(f"{plan.window_node}: it has a custom merger")
    if plan.store.retention_ms != windows.gap_ms + windows.grace_ms + 1:
        raise NotVectorizableError(f"{plan.window_node}: its store keeps sessions longer than they can change")
    if plan.suppress and plan.sizes.are_texts:
        if not only_grow(plan.folds):
            raise NotVectorizableError(
                f"{plan.window_node}: if a suppress follows sessions, collect can be combined only with count and collect"
            )
    elif plan.suppress and any(fixed_size(fold.result_type) is None for fold in plan.folds):
        raise NotVectorizableError(
            f"{plan.window_node}: if a suppress follows sessions, their results may not be decimals, texts or bytes"
        )


def _chain(part: SubTopology) -> tuple[SourceNode, list[Any], Any, Any, list[Any]]:
    """Return the source, the nodes before the windows, the window node, the suppress node (or None), and the nodes after them.

    The last list has the nodes that follow `to_stream`, with the sink as its last node.
    """
    if len(part.sources) > 1:
        raise NotVectorizableError(f"it merges {len(part.sources)} topics")
    (source,) = part.sources
    chain: list[Any] = [source]
    while children := [node for node in part.nodes if chain[-1].name in node.parents]:
        if len(children) > 1:
            raise NotVectorizableError(f"{chain[-1].name} has {len(children)} children, so it is not a chain")
        chain += children
    inner, sink = chain[1:-1], chain[-1]
    prefix = list(takewhile(lambda node: type(getattr(node, "supplier", None)) in (Where, Select, *FUNCTIONS), inner))
    inner = inner[len(prefix) :]
    closes = any(getattr(node.supplier, "emit", None) is EmitStrategy.ON_WINDOW_CLOSE for node in inner)
    middle = () if closes else (SuppressUntilWindowCloses,)
    wanted = ((WindowAggregate, SessionAggregate), *((supplier,) for supplier in middle), (TableToStream,))
    for node, suppliers in zip(inner, wanted, strict=False):
        if type(node.supplier) not in suppliers:
            raise NotVectorizableError(f"{node.name} is {describe_supplier(node.supplier)}; {_FORM}")
    suffix = inner[len(wanted) :]
    for node in suffix:
        if type(node.supplier) not in OPERATORS:
            raise NotVectorizableError(f"{node.name} is {describe_supplier(node.supplier)}; {_FORM}")
    if len(inner) < len(wanted) or not isinstance(sink, SinkNode):
        raise NotVectorizableError(_FORM)
    return source, prefix, inner[0], None if closes else inner[1], [*suffix, sink]


def _suppressing(node: Any, stores: Mapping[str, StoreBuilder], logs: LogShapes) -> Suppressing:
    store: str = node.supplier.store
    return Suppressing(node.name, store, bind_store(stores[store], logs))


def _check_types(plan: FinalResultsPlan) -> None:
    """Check that the tables have the columns that the plan produces, because a sink may declare columns of other types."""
    state = [kind for fold in plan.folds for kind in fold.state_types]
    result = [fold.result_type for fold in plan.folds]
    key, bounds = _types(plan.key.columns), ["long", "long"]
    wanted = [
        ("the store", plan.store_shapes[0].columns, [*key, *bounds]),
        ("the store", plan.store_shapes[1].columns, [*state, *(["long"] if plan.store.is_stamped else [])]),
    ]
    if not plan.suffix:
        wanted.append(("the table", plan.sink_shapes[0].columns, [*key, *bounds]))
        wanted.append(("the table", plan.sink_shapes[1].columns, result))
    if plan.suppress:
        entry = [*result, "boolean", "long", "long", "long", *result, "boolean"]
        wanted.append(("the buffer", plan.suppress.shapes[0].columns, [*key, *bounds]))
        wanted.append(("the buffer", plan.suppress.shapes[1].columns, entry))
    for owner, columns, types in wanted:
        if _types(columns) != types:
            raise NotVectorizableError(f"{owner} declares other types than those of the log and the aggregates")


def _types(columns: Sequence[Column]) -> list[str]:
    return [column.type for column in columns]


_JOINS = (StreamJoin, StreamTableJoin, TableJoinResult)
_FORM_OF_JOINS = (
    "vectorized execution takes a join of two streams, of a stream with a table, or of two tables with to_stream() behind it. "
    "Each side is a log or a repartition, with where, select, filter, map_values, flat_map_values and peek before the join. "
    "Behind it may be where, select, filter, map and other verbs with functions, then a table or a repartition"
)


def _joins_in(part: SubTopology) -> list[Any]:
    """Return the nodes that join streams or tables."""
    return [node for node in part.nodes if type(_supplier(node)) in _JOINS]


def _plan_join(topology: Topology, part: SubTopology, logs: LogShapes) -> JoinPlan:
    """Return the plan of a part with a join. Raises `NotVectorizableError`, with the reason, if there is no plan."""
    joins = _joins_in(part)
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
    """Walks the nodes of a sub-topology with a join. Raises `NotVectorizableError` if it does not have the form with a join."""

    def __init__(self, part: SubTopology) -> None:
        self._nodes: dict[str, Any] = {node.name: node for node in part.nodes}
        self._used: set[str] = set()

    def ends_of_streams(self, join: Any) -> list[Any]:
        """Return the last nodes of the two chains of nodes (left, right) that lead to a join of streams."""
        self._use(join)
        parents = [self._nodes[name] for name in join.parents]
        marks = {node.supplier.is_left: node for node in parents if isinstance(_supplier(node), JoinSide)}
        for mark in marks.values():
            self._use(mark)
        return [self._nodes[marks[is_left].parents[0]] for is_left in (True, False)]

    def ends_of_table(self, join: Any) -> tuple[list[Any], tuple[JoinedTable, ...]]:
        """Return the last nodes of the chains that lead to a join (of the stream, of the table), and the table."""
        self._use(join)
        if join.supplier.waiting is not None:
            raise NotVectorizableError(f"{join.name} has a grace period: its records wait for updates of the table")
        owner = self._owner(join, join.supplier.table)
        self._use(owner, children=0)
        ends = [self._nodes[join.parents[0]], self._nodes[owner.parents[0]]]
        return ends, (JoinedTable(owner.name, owner.supplier.store, is_left=False),)

    def ends_of_tables(self, join: Any) -> tuple[list[Any], tuple[JoinedTable, ...]]:
        """Return the last nodes of the two chains (left, right) that lead to a join of tables, and the tables."""
        if join.supplier.store is not None:
            raise NotVectorizableError(f"{join.name} keeps its rows in a store")
        self._use(join)
        left, right = (self._nodes[name] for name in join.parents)
        ends, tables = [], []
        for updates, other, is_left in ((left, right, True), (right, left, False)):
            owner = self._owner(updates, other.supplier.other)
            if updates.parents != (owner.name,):
                raise NotVectorizableError(
                    f"the updates of {owner.name} do not come from its topic alone; {_FORM_OF_JOINS}"
                )
            for node in (updates, owner):
                self._use(node)
            ends.append(self._nodes[owner.parents[0]])
            tables.append(JoinedTable(owner.name, owner.supplier.store, is_left, updates.supplier))
        return ends, tuple(tables)

    def _owner(self, join: Any, view: Any) -> Any:
        """Return the node that writes the store which ``view`` reads."""
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
        """Return the nodes on the way from the source down to ``node``, both included."""
        if isinstance(node, SourceNode):
            self._use(node)
            return [node]
        if type(_supplier(node)) not in (Where, Select, *FUNCTIONS):
            raise NotVectorizableError(f"{node.name} is {describe_supplier(_supplier(node))}; {_FORM_OF_JOINS}")
        self._use(node)
        return [*self.chain_to(self._nodes[node.parents[0]]), node]

    def behind(self, join: Any) -> list[Any]:
        """Return the nodes that follow a join. The last node is the sink."""
        nodes: list[Any] = []
        node = join
        while not isinstance(node, SinkNode):
            (node,) = self._children(node)
            if not isinstance(node, SinkNode) and type(_supplier(node)) not in OPERATORS:
                raise NotVectorizableError(f"{node.name} is {describe_supplier(_supplier(node))}; {_FORM_OF_JOINS}")
            self._use(node, children=0 if isinstance(node, SinkNode) else 1)
            nodes.append(node)
        return nodes

    def to_stream(self, join: Any) -> Any:
        """Return the node that sends the updates of a joined table as a stream."""
        (node,) = self._children(join)
        if not isinstance(_supplier(node), TableToStream):
            raise NotVectorizableError(f"{node.name} is {describe_supplier(_supplier(node))}; {_FORM_OF_JOINS}")
        self._use(node)
        return node

    def check_all_used(self) -> None:
        """Raise `NotVectorizableError` if the sub-topology has nodes that do not belong to the join."""
        others = [name for name in self._nodes if name not in self._used]
        if others:
            raise NotVectorizableError(f"{', '.join(others)} is in the same sub-topology; {_FORM_OF_JOINS}")

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
    if not value.columns:
        raise NotVectorizableError(f"values of {source.topic} that are joined have no columns")
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
    """Check that each store declares the types of the records that it keeps. ``inputs``: the left and the right input."""
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
    """Return whether two shapes have the same Python classes and the same column types."""
    same_class = (shape.is_bare and other.is_bare) or (shape.row_type is not None and shape.row_type is other.row_type)
    return same_class and _types(shape.columns) == _types(other.columns)


def _supplier(node: Any) -> Any:
    return getattr(node, "supplier", None)
