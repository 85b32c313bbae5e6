"""`CogroupedKStream`: several streams grouped by the same key, to be aggregated into one table, also by window (KIP-150)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from rewindow.dsl.aggregating import AddFunction, Initializer, check_functions, keyed, typed_by
from rewindow.dsl.annotations import function_of, returned_type
from rewindow.dsl.joins import check_builders, check_keys
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.compound import Custom
from rewindow.dsl.operators.session_aggregate import Merger, SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.dsl.operators.table_view import StoreView
from rewindow.dsl.operators.window_aggregate import CogroupMerge, StreamAggregate, WindowAggregate
from rewindow.dsl.table import KTable
from rewindow.dsl.windowed import check_windows
from rewindow.errors import TopologyError
from rewindow.streams.processor import Processor
from rewindow.streams.serde.types_to_columns import EqualType, WindowedType
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, Windows

if TYPE_CHECKING:
    from rewindow.dsl.grouped import KGroupedStream


@dataclass(frozen=True, slots=True)
class CogroupedKStream:
    """Several streams grouped by the same key, to be aggregated into one table (`KGroupedStream.cogroup`).

    All streams update the same aggregate in the same store, each with its own function, in the order in which the task
    processes their records. Nulls are treated as in the aggregate of a single stream. Equal keys must be in the same
    partition, as for a join, so a stream whose keys were changed goes through a repartition. The first stream is aggregated
    by the node ``<store>-cogroup-agg-0``, the second by ``<store>-cogroup-agg-1``, and so on. A stream's repartition has the
    same name as its node. The node ``<store>-cogroup-merge`` sends the results.
    """

    inputs: tuple[_Input, ...]

    def cogroup(self, grouped: KGroupedStream, aggregator: AddFunction) -> CogroupedKStream:
        """Add a grouped stream. ``aggregator(key, value, aggregate)`` adds one of its values to the aggregate.

        Raises `TopologyError` if ``grouped`` is not a grouped stream of the same `StreamsBuilder`, if its keys have another type,
        or if it was added before.
        """
        _check_input(self.inputs, grouped)
        return CogroupedKStream((*self.inputs, cogroup_input(grouped, aggregator)))

    @overload
    def windowed_by(self, windows: GridWindows | SlidingWindows) -> TimeWindowedCogroupedKStream: ...

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream: ...

    def windowed_by(
        self, windows: GridWindows | SlidingWindows | SessionWindows
    ) -> TimeWindowedCogroupedKStream | SessionWindowedCogroupedKStream:
        """Aggregate by window. Raises `TopologyError` if ``windows`` is not a kind of windows."""
        check_windows(windows)
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self, windows)
        return TimeWindowedCogroupedKStream(self, windows)

    def aggregate(self, initializer: Initializer, *, store: StoreSpec, value: Any = None) -> KTable:
        """Aggregate the values of each key, starting with ``initializer()``.

        ``value`` declares the aggregate's type. The default is the annotated result type of the aggregators. Raises
        `TopologyError` if their annotations differ.
        """
        name = materialized(store).name
        return _table(self, lambda made: StreamAggregate(made, name), initializer, store, value)


@dataclass(frozen=True, slots=True)
class TimeWindowedCogroupedKStream:
    """Cogrouped streams by tumbling, hopping, sliding or unlimited window: see `TimeWindowedKStream`.

    The highest timestamp of a record's own stream decides whether the record is late, as in Kafka. If another stream is
    further ahead in time, the common store may have expired the record's window already. The record then starts the window
    again. The result is sent but not stored (``expired-window-record-drop``). A longer retention of the store prevents this.

    If a suppress below (`KTable.suppress`) sends final results, the highest timestamp of all the streams decides instead
    (D10). This changes results. So adding such a suppress to a running job, or removing it, needs ``--accept-changes``.
    """

    cogrouped: CogroupedKStream
    windows: GridWindows | SlidingWindows

    def aggregate(self, initializer: Initializer, *, store: StoreSpec, value: Any = None) -> KTable:
        """Aggregate the values of each key and window: see `CogroupedKStream.aggregate`."""
        name, windows = materialized(store).name, self.windows

        def supplier(made: Custom) -> WindowAggregate | SlidingAggregate:
            if isinstance(windows, SlidingWindows):
                return SlidingAggregate(windows, made, name)
            return WindowAggregate(windows, made, name)

        return _table(self.cogrouped, supplier, initializer, store, value, windows)


@dataclass(frozen=True, slots=True)
class SessionWindowedCogroupedKStream:
    """Cogrouped streams by session. Records of all the streams extend a session: see `SessionWindowedKStream`.

    Lateness is decided as in `TimeWindowedCogroupedKStream`.
    """

    cogrouped: CogroupedKStream
    windows: SessionWindows

    def aggregate(self, initializer: Initializer, merger: Merger, *, store: StoreSpec, value: Any = None) -> KTable:
        """Aggregate the values of each key and session: see `CogroupedKStream.aggregate`.

        ``merger(key, one, later)`` returns the aggregate of two merged sessions. In its first call for a record, ``one`` is the
        initializer's result.
        """
        name, windows = materialized(store).name, self.windows
        table = _table(
            self.cogrouped,
            lambda made: SessionAggregate(windows, made, merger, name),
            initializer,
            store,
            value,
            windows,
        )
        types = {"key": table.key.key, "one": table.value, "later": table.value}
        table.graph.calls(table.node, "aggregate(merger)", merger, **types)
        return table


class _Input(NamedTuple):
    """A grouped stream, and the function that adds its values to the common aggregate."""

    grouped: KGroupedStream
    aggregator: AddFunction


def cogroup_input(grouped: KGroupedStream, aggregator: AddFunction) -> _Input:
    """Return an input of a cogroup. Raises `TopologyError` if the aggregator does not accept ``(key, value, aggregate)``."""
    return _Input(grouped, function_of(aggregator, "cogroup", "key", "value", "aggregate"))


def _check_input(inputs: tuple[_Input, ...], grouped: KGroupedStream) -> None:
    first = inputs[0].grouped
    # User code may pass any object.
    given: object = grouped
    if not isinstance(given, type(first)):
        raise TopologyError(
            "cogroup-input-not-grouped",
            "cogroup({given}, ...): give it a grouped stream, stream.group_by_key() or stream.group_by(...)",
            given=repr(grouped),
        )
    cogroup = f"cogroup of {first.stream.node!r} with {grouped.stream.node!r}"
    check_builders(grouped.stream.graph, first.stream.graph, cogroup)
    if any(cogrouped.grouped is grouped for cogrouped in inputs):
        raise TopologyError(
            "cogroup-stream-twice",
            "{cogroup}: the grouped stream is in it already: give it one aggregator that does what both do",
            cogroup=cogroup,
        )
    check_keys(first.stream.key, grouped.stream.key, cogroup)


def _table(
    cogrouped: CogroupedKStream,
    supplier_of: Callable[[Custom], Callable[[], Processor]],
    initializer: Initializer,
    store: StoreSpec,
    value: Any,
    windows: Windows | None = None,
) -> KTable:
    """Add an aggregate node for each stream, the common store, and the node that passes on the results of all of them."""
    kept, inputs = materialized(store), cogrouped.inputs
    function_of(initializer, "aggregate")
    value = value or _common_result(kept.name, [cogrouped_input.aggregator for cogrouped_input in inputs])
    graph = inputs[0].grouped.stream.graph
    nodes = [f"{kept.name}-cogroup-agg-{number}" for number in range(len(inputs))]
    streams = [keyed(cogrouped_input.grouped.stream, node) for cogrouped_input, node in zip(inputs, nodes, strict=True)]
    keys = tuple(dict.fromkeys(stream.key for stream in streams))
    key = keys[0] if len(keys) == 1 else EqualType(keys)
    builder = kept.key_values(key, value) if windows is None else kept.windowed(windows, key, value)
    graph.topology.add_store(builder)
    for cogrouped_input, stream, node in zip(inputs, streams, nodes, strict=True):
        made = Custom(initializer, cogrouped_input.aggregator, value)
        graph.add("cogroup", supplier_of(made), stream.node, name=node, stores=(kept.name,), typed_by=typed_by(made))
        check_functions(graph, node, made, stream.key, stream.value, verb="cogroup")
    merge = graph.add("cogroup", CogroupMerge(), *nodes, name=f"{kept.name}-cogroup-merge", typed_by=typed_by(made))
    table_key = key if windows is None else WindowedType(key, isinstance(windows, SessionWindows))
    return KTable(graph, merge, table_key, value, windows, StoreView(kept.name))


def _common_result(store: str, aggregators: list[AddFunction]) -> Any:
    declared = dict.fromkeys(kind for kind in map(returned_type, aggregators) if kind is not None)
    if len(declared) > 1:
        raise TopologyError(
            "cogroup-types-differ",
            "cogroup {store!r}: its aggregators return {types}: declare the type of the aggregate, value=...",
            store=store,
            types=", ".join(getattr(kind, "__name__", str(kind)) for kind in declared),
        )
    return next(iter(declared), None)
