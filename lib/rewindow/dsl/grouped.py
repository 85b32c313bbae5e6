"""`KGroupedStream`: a stream grouped by key, to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

from rewindow.dsl.aggregating import (
    AddFunction,
    AggregateSpec,
    aggregator_of,
    check_functions,
    keyed,
    typed_by,
)
from rewindow.dsl.annotations import function_of
from rewindow.dsl.cogrouped import CogroupedKStream, cogroup_input
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.builtin_aggregates import Count
from rewindow.dsl.operators.compound import Reduce
from rewindow.dsl.operators.table_view import DerivedView, StoreView
from rewindow.dsl.operators.window_aggregate import StreamAggregate
from rewindow.dsl.table import KTable
from rewindow.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream, check_windows
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass(frozen=True, slots=True)
class KGroupedStream:
    """A stream grouped by key, to be aggregated over all time or by window.

    Without windows, no record is late. Each record updates the row of its key. Every update is sent downstream, with the
    largest timestamp of the key's records so far. A record without key or value is skipped and counted. If the keys were
    changed above, records go through a repartition named after the store.
    """

    stream: KStream

    @overload
    def windowed_by(self, windows: GridWindows | SlidingWindows) -> TimeWindowedKStream: ...

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream: ...

    def windowed_by(
        self, windows: GridWindows | SlidingWindows | SessionWindows
    ) -> TimeWindowedKStream | SessionWindowedKStream:
        """Aggregate by window. Raises `TopologyError` if ``windows`` is not a kind of windows."""
        check_windows(windows)
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self.stream, windows)
        return TimeWindowedKStream(self.stream, windows)

    def cogroup(self, aggregator: AddFunction) -> CogroupedKStream:
        """Aggregate this stream together with others into one table: see `CogroupedKStream` (KIP-150).

        ``aggregator(key, value, aggregate)`` adds one of this stream's values to the common aggregate.
        """
        return CogroupedKStream((cogroup_input(self, aggregator),))

    def count(self, *, store: StoreSpec, name: str | None = None) -> KTable:
        """Count the records of each key. Null values are not counted."""
        return self.aggregate(Count(), store=store, name=name)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None, name: str | None = None
    ) -> KTable:
        """Combine the values of each key with ``reducer(aggregate, value)``. The first value is the first aggregate.

        A result of None deletes the row.
        """
        stream = replace(self.stream, value=value) if value else self.stream
        return KGroupedStream(stream).aggregate(Reduce(function_of(reducer, "reduce")), store=store, name=name)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: AddFunction | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Aggregate the values of each key.

        ``aggregate`` is a built-in aggregate such as ``Sum("amount")``, a dictionary from names to such aggregates, or an
        initializer ``() -> aggregate``. An initializer needs an ``aggregator(key, value, aggregate) -> aggregate``; ``value``
        declares the type of its result. ``name`` names the node; the default is the store's name.
        """
        made = aggregator_of(aggregate, aggregator, value)
        kept = materialized(store)
        stream, own = keyed(self.stream, kept.name), kept.name
        state, result = made.state_type(stream.value), made.result_type(stream.value)
        stream.graph.topology.add_store(kept.key_values(stream.key, state))
        supplier = StreamAggregate(made, own)
        options: dict[str, Any] = {"stores": (own,), "typed_by": typed_by(made)}
        node = stream.graph.add("aggregate", supplier, stream.node, name=name or own, **options)
        check_functions(stream.graph, node, made, stream.key, stream.value)
        view = DerivedView(StoreView(own), lambda _key, state: made.result(state))
        return KTable(stream.graph, node, stream.key, result, view=view)
