"""Decide which sub-topologies vectorized execution can run, from the graph and its types. Pure.

It runs joins (`joins.planner`), and one form with windows: a log or a repartition topic -> where, select, Python functions ->
group by key -> time or session windows -> built-in aggregates -> final results -> where, select, Python functions -> a table
or a repartition topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from rewindow.contracts.tasks import Execution
from rewindow.dsl.operators.aggregate import EmitStrategy, WindowAggregate
from rewindow.dsl.operators.compound import Several
from rewindow.dsl.operators.select import Select, Where
from rewindow.dsl.operators.session_aggregate import Merging, SessionAggregate
from rewindow.dsl.operators.suppress import NO_BOUNDS, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_verbs import TableToStream
from rewindow.engine.worker.vectorized.arrays import NotVectorizableError, fixed_size
from rewindow.engine.worker.vectorized.batches import name_at
from rewindow.engine.worker.vectorized.folds import ValueFold
from rewindow.engine.worker.vectorized.joins.join_planner import joins_in, plan_join
from rewindow.engine.worker.vectorized.kernels import fold_for, indexes_of
from rewindow.engine.worker.vectorized.plans import (
    OPERATORS,
    FinalResultsPlan,
    JoinPlan,
    Suppressing,
    shape_of_results,
    source_types,
    suffix_of,
)
from rewindow.engine.worker.vectorized.prefix_operators import bind_prefix, prune_prefix
from rewindow.engine.worker.vectorized.result_sizes import only_grow
from rewindow.engine.worker.vectorized.row_functions import FUNCTIONS
from rewindow.streams.error_policy import policies_of
from rewindow.streams.nodes import SinkNode, SourceNode
from rewindow.streams.serde.binding import LogShapes, bind_sink, bind_store
from rewindow.streams.serde.schema import Column, windowed_shape
from rewindow.streams.settings import OnError, Settings
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import SubTopology, Topology, describe_supplier
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows

Plan = FinalResultsPlan | JoinPlan
FORM = (
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
    """Return which settings make a sub-topology take its records one by one, whatever its nodes do; empty if none does.

    These settings handle single records: they put them aside, retry them or leave them out. ``has_quarantine``: the job writes to
    a quarantine.
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
    """Return the plan of a part of a topology. Raises `NotVectorizableError` with the reason if there is none."""
    return plan_join(topology, part, logs) if joins_in(part) else _plan_windows(topology, part, logs)


def _plan_windows(topology: Topology, part: SubTopology, logs: LogShapes) -> FinalResultsPlan:
    source, prefix, window, suppress, behind = _chain(part)
    sink = behind[-1]
    aggregate: Any = window.supplier
    if type(aggregate.windows) not in (TimeWindows, SessionWindows):
        raise NotVectorizableError(f"{window.name}: its windows are neither TimeWindows nor SessionWindows")
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
                f"{plan.window_node}: collect in sessions above a suppress can be combined only with count and collect"
            )
    elif plan.suppress and any(fixed_size(fold.result_type) is None for fold in plan.folds):
        raise NotVectorizableError(
            f"{plan.window_node}: results of sessions above a suppress may not be decimals, texts or bytes"
        )


def _chain(part: SubTopology) -> tuple[SourceNode, list[Any], Any, Any, list[Any]]:
    """Return the source, the nodes in front of the windows, the window node, the suppress node or None, and those behind.

    The nodes behind the windows begin behind `to_stream` and end with the sink.
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
            raise NotVectorizableError(f"{node.name} is {describe_supplier(node.supplier)}; {FORM}")
    suffix = inner[len(wanted) :]
    for node in suffix:
        if type(node.supplier) not in OPERATORS:
            raise NotVectorizableError(f"{node.name} is {describe_supplier(node.supplier)}; {FORM}")
    if len(inner) < len(wanted) or not isinstance(sink, SinkNode):
        raise NotVectorizableError(FORM)
    return source, prefix, inner[0], None if closes else inner[1], [*suffix, sink]


def _suppressing(node: Any, stores: Mapping[str, StoreBuilder], logs: LogShapes) -> Suppressing:
    store: str = node.supplier.store
    return Suppressing(node.name, store, bind_store(stores[store], logs))


def _check_types(plan: FinalResultsPlan) -> None:
    """Check that the tables have the columns that the kernels produce: a sink may declare others."""
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
