"""Streams by key: what is aggregated, as a whole or by window. A grouped stream makes tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

from rewindow.dsl.aggregating import AddFunction, AggregateSpec, aggregator_of, keyed
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.aggregate import StreamAggregate
from rewindow.dsl.operators.aggregates import Count
from rewindow.dsl.operators.compound import Reduce
from rewindow.dsl.operators.table_view import DerivedView, StoreView
from rewindow.dsl.table import KTable
from rewindow.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream
from rewindow.errors import TopologyError
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass(frozen=True, slots=True)
class KGroupedStream:
    """Records by key, to be aggregated, as a whole or by window.

    Without windows no record is late: each update goes downstream in the order in which the task takes the records, with
    the largest timestamp of its row so far. A record without key or value is skipped and counted. Where the key was
    changed, records cross a repartition that is named after the store.
    """

    stream: KStream

    @overload
    def windowed_by(self, windows: GridWindows | SlidingWindows) -> TimeWindowedKStream: ...

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream: ...

    def windowed_by(
        self, windows: GridWindows | SlidingWindows | SessionWindows
    ) -> TimeWindowedKStream | SessionWindowedKStream:
        """Aggregate by window. Raises `TopologyError` for anything but windows."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self.stream, windows)
        given: object = windows  # it is up to the user
        if not isinstance(given, GridWindows | SlidingWindows):
            message = f"windowed_by({windows!r}): give TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows"
            raise TopologyError(message)
        return TimeWindowedKStream(self.stream, windows)

    def count(self, *, store: StoreSpec) -> KTable:
        """Count the records of each key. Null values are skipped."""
        return self.aggregate(Count(), store=store)

    def reduce(self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None) -> KTable:
        """Combine values, ``reducer(aggregate, value)``; the first value starts. A null that it gives deletes the row."""
        stream = replace(self.stream, value=value) if value else self.stream
        return KGroupedStream(stream).aggregate(Reduce(reducer), store=store)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: AddFunction | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
    ) -> KTable:
        """Aggregate: a built-in one, a dictionary of named ones, or ``initializer, aggregator(key, value, aggregate)``.

        ``value`` declares the type of a custom aggregate.
        """
        made = aggregator_of(aggregate, aggregator, value)
        kept = materialized(store)
        stream, name = keyed(self.stream, kept.name), kept.name
        state, result = made.state_type(stream.value), made.result_type(stream.value)
        stream.graph.topology.add_store(kept.key_values(stream.key, state))
        supplier = StreamAggregate(made, name)
        node = stream.graph.add("aggregate", supplier, stream.node, name=name, stores=(name,))
        view = DerivedView(StoreView(name), lambda _key, state: made.result(state))
        return KTable(stream.graph, node, stream.key, result, view=view)
