"""Which sub-topologies vectorized execution can run, and why not the others. Pure: it looks at the graph and at types.

One form: a log -> where, select -> group by key -> time or session windows -> built-in aggregates -> final results -> a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from rewindow.contracts.tasks import Execution
from rewindow.dsl.operators.compound import Several
from rewindow.dsl.operators.select import Select
from rewindow.dsl.operators.session_aggregate import Merging, SessionAggregate
from rewindow.dsl.operators.suppress import NO_BOUNDS, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_verbs import TableToStream
from rewindow.dsl.operators.where import Where
from rewindow.dsl.operators.window_aggregate import WindowAggregate
from rewindow.dsl.operators.windowed import EmitStrategy
from rewindow.engine.worker.vectorized.arrays import fixed_size
from rewindow.engine.worker.vectorized.choose_kernel import NotVectorizableError, fold_for, places_of
from rewindow.engine.worker.vectorized.encoded_sizes import ResultSizes
from rewindow.engine.worker.vectorized.folds import Fold, ValueFold
from rewindow.engine.worker.vectorized.prefix_operators import PrefixError, PrefixOperator, name_at, needed, read_prefix
from rewindow.engine.worker.vectorized.session_list_sizes import only_grow
from rewindow.streams.nodes import SinkNode, SourceNode
from rewindow.streams.serde.binding import LogShapes, bind_sink, bind_store
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import SubTopology, describe_supplier
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows

KEY_TYPES = frozenset(("string", "long", "boolean", "binary"))
FORM = (
    "a log, where, select, group_by_key, time or session windows, built-in aggregates, "
    "suppress(until_window_closes()) or emit_strategy(on_window_close()), to_stream, a table"
)


@dataclass(frozen=True, slots=True)
class Suppressing:
    """A suppress below the windows: its node and its buffer."""

    node: str
    store: str
    shapes: tuple[Shape, Shape]


@dataclass(frozen=True, slots=True)
class Finals:
    """Final results of windowed aggregates: what the execution has to know, all of it plain."""

    topic: str
    window_node: str
    suppress: Suppressing | None
    """None: the windows send their results by themselves when they close."""
    sink: SinkNode
    windows: TimeWindows | SessionWindows
    store: StoreBuilder
    key: Shape
    log_value: Shape
    """The values of the log."""
    value: Shape
    """The values that reach the windows."""
    folds: tuple[Fold, ...]
    prefix: tuple[PrefixOperator, ...]
    """What a record must fulfil to reach the windows, and what its value becomes."""
    reads: frozenset[str]
    """The names that the heads, and the folds without any, look at."""
    names: tuple[str, ...]
    """Those of the aggregates; none for a bare one."""
    store_shapes: tuple[Shape, Shape]
    sink_shapes: tuple[Shape, Shape]

    @property
    def places(self) -> list[int]:
        """The places of the log's value columns that are read."""
        count = len(self.log_value.columns)
        return [place for place in range(count) if name_at(self.log_value, place) in self.reads]

    @property
    def is_single(self) -> bool:
        """One bare aggregate, whose result may be null, and not a row of several."""
        return not self.names

    @property
    def sizes(self) -> ResultSizes:
        """What the results take in the documented encoding."""
        return ResultSizes(self.folds, self.names)

    @property
    def closing_node(self) -> str:
        """The node whose clock says what is final, and that sends it."""
        return self.suppress.node if self.suppress else self.window_node

    @property
    def starts_at_first_value(self) -> bool:
        """Whether a group has no state before its first operand that is not null."""
        return self.is_single and self.folds[0].is_null_at_first

    @property
    def takes_nulls(self) -> bool:
        """Whether nulls among the operands are the execution's too.

        A session without a value is in no store, and what others leave in a suppress has the size of results without nulls.
        """
        if not isinstance(self.windows, SessionWindows):
            return True
        return not self.starts_at_first_value and (self.suppress is None or self.sizes.are_texts)


def choose_execution(execution: Execution, part: SubTopology, logs: LogShapes, *, keeps_dropped: bool) -> Finals | str:
    """Return how a sub-topology runs in vectorized execution, or why it takes record execution.

    ``keeps_dropped``: the job wants a row for each record that goes no further (``dropped: quarantine``).
    """
    if execution is Execution.RECORD:
        return "the target says execution: record"
    try:
        plan = plan_of(part, logs)
    except NotVectorizableError as reason:
        return str(reason)
    return "the job keeps what it drops (dropped: quarantine)" if keeps_dropped else plan


def describe_execution(execution: Execution, part: SubTopology, logs: LogShapes, *, keeps_dropped: bool) -> str:
    """Return which execution a sub-topology takes and why, for `explain`."""
    plan = choose_execution(execution, part, logs, keeps_dropped=keeps_dropped)
    if isinstance(plan, str):
        return f"record execution (Python, record by record): {plan}"
    return (
        "vectorized execution (whole Arrow batches): every node is declarative. It takes no samples of the suppress buffer "
        "(suppression-buffer-count and -size); sums beyond 64 bits and extremes of NaN "
        f"{'' if plan.takes_nulls else 'and, in sessions, nulls '}send a task to record execution"
    )


def plan_of(part: SubTopology, logs: LogShapes) -> Finals:
    """Return how vectorized execution runs a sub-topology. Raises `NotVectorizableError` with the reason if it does not."""
    source, prefix, window, suppress, sink = _chain(part)
    aggregate: Any = window.supplier
    if type(aggregate.windows) not in (TimeWindows, SessionWindows):
        raise NotVectorizableError(f"{window.name}: windows that are neither TimeWindows nor SessionWindows")
    if suppress and suppress.supplier.bounds != NO_BOUNDS:
        raise NotVectorizableError(f"{suppress.name}: its buffer is bounded")
    stores = {store.name: store for store in part.stores}
    key, log_value = logs[source.topic]
    for column in key.columns:
        if column.type not in KEY_TYPES:
            raise NotVectorizableError(
                f"the key column {column.name} is {column.type}, not one of {', '.join(sorted(KEY_TYPES))}"
            )
    parts = aggregate.aggregator.parts if isinstance(aggregate.aggregator, Several) else ((None, aggregate.aggregator),)
    try:
        asked, value = read_prefix(prefix, key, log_value)
    except PrefixError as problem:
        raise NotVectorizableError(str(problem)) from None
    folds = tuple(fold_for(one, value, f"part-{n}") for n, (_, one) in enumerate(parts))
    done, reads = needed(asked, {name_at(value, place) for fold in folds for place in places_of(fold)})
    plan = Finals(
        topic=source.topic,
        window_node=window.name,
        suppress=_suppressing(suppress, stores, logs) if suppress else None,
        sink=sink,
        windows=aggregate.windows,
        store=stores[aggregate.store],
        key=key,
        log_value=log_value,
        value=value,
        folds=folds,
        prefix=done,
        reads=frozenset(reads),
        names=tuple(name for name, _ in parts if name),
        store_shapes=bind_store(stores[aggregate.store], logs),
        sink_shapes=bind_sink(sink, logs),
    )
    if plan.suppress and plan.sizes.are_texts:
        for fold in folds:
            if isinstance(fold, ValueFold):
                fold.keeps_before = True
    if isinstance(plan.windows, SessionWindows):
        _check_sessions(plan, plan.windows, aggregate)
    _check_types(plan)
    return plan


def _check_sessions(plan: Finals, windows: SessionWindows, aggregate: SessionAggregate) -> None:
    made, merger = aggregate.aggregator, aggregate.merger
    if not isinstance(merger, Merging) or merger.aggregate is not made:
        raise NotVectorizableError(f"{plan.window_node}: a merger of its own")
    if plan.store.retention_ms != windows.gap_ms + windows.grace_ms + 1:
        raise NotVectorizableError(f"{plan.window_node}: its store keeps sessions for longer than they may change")
    if plan.suppress and plan.sizes.are_texts:
        if not only_grow(plan.folds):
            raise NotVectorizableError(
                f"{plan.window_node}: collect in sessions above a suppress beside what is neither count nor collect: "
                "the sizes of its entries"
            )
    elif plan.suppress and any(fixed_size(fold.result_type) is None for fold in plan.folds):
        raise NotVectorizableError(
            f"{plan.window_node}: decimals, texts or bytes in sessions above a suppress: the sizes of its entries"
        )


def _chain(part: SubTopology) -> tuple[SourceNode, list[Any], Any, Any, SinkNode]:
    """Return source, `where` and `select` nodes, window node, suppress node (None if there is none) and sink."""
    if len(part.sources) > 1:
        raise NotVectorizableError(f"it merges {len(part.sources)} topics")
    (source,) = part.sources
    if source.is_internal:
        raise NotVectorizableError(f"it reads the internal log {source.topic}")
    chain: list[Any] = [source]
    while children := [node for node in part.nodes if chain[-1].name in node.parents]:
        if len(children) > 1:
            raise NotVectorizableError(f"{chain[-1].name} has {len(children)} children: it is no chain")
        chain += children
    inner, sink = chain[1:-1], chain[-1]
    prefix = list(takewhile(lambda node: type(getattr(node, "supplier", None)) in (Where, Select), inner))
    inner = inner[len(prefix) :]
    closes = any(getattr(node.supplier, "emit", None) is EmitStrategy.ON_WINDOW_CLOSE for node in inner)
    middle = () if closes else (SuppressUntilWindowCloses,)
    wanted = ((WindowAggregate, SessionAggregate), *((one,) for one in middle), (TableToStream,))
    for node, suppliers in zip(inner, wanted, strict=False):
        if type(node.supplier) not in suppliers:
            raise NotVectorizableError(f"{node.name} is {describe_supplier(node.supplier)}; the form is {FORM}")
    if len(inner) != len(wanted) or not isinstance(sink, SinkNode) or sink.is_internal:
        raise NotVectorizableError(f"the form is {FORM}")
    return source, prefix, inner[0], None if closes else inner[1], sink


def _suppressing(node: Any, stores: Mapping[str, StoreBuilder], logs: LogShapes) -> Suppressing:
    store: str = node.supplier.store
    return Suppressing(node.name, store, bind_store(stores[store], logs))


def _check_types(plan: Finals) -> None:
    """Check that the tables have the columns that the kernels give: a sink may declare others."""
    state = [kind for fold in plan.folds for kind in fold.state_types]
    result = [fold.result_type for fold in plan.folds]
    key, bounds = _types(plan.key.columns), ["long", "long"]
    wanted = [
        ("the store", plan.store_shapes[0].columns, [*key, *bounds]),
        ("the store", plan.store_shapes[1].columns, [*state, *(["long"] if plan.store.is_stamped else [])]),
        ("the table", plan.sink_shapes[0].columns, [*key, *bounds]),
        ("the table", plan.sink_shapes[1].columns, result),
    ]
    if plan.suppress:
        entry = [*result, "boolean", "long", "long", "long", *result, "boolean"]
        wanted.append(("the buffer", plan.suppress.shapes[0].columns, [*key, *bounds]))
        wanted.append(("the buffer", plan.suppress.shapes[1].columns, entry))
    for what, columns, types in wanted:
        if _types(columns) != types:
            raise NotVectorizableError(f"{what} declares other types than the log and the aggregates have")


def _types(columns: Sequence[Column]) -> list[str]:
    return [column.type for column in columns]
