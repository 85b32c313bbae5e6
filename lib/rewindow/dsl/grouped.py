"""Streams by key, and by key and window: what is aggregated. A grouped stream makes tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rewindow.core.binding import WindowedType
from rewindow.core.windows import TimeWindows
from rewindow.dsl.graph import returned_type
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.table import KTable
from rewindow.errors import TopologyError
from rewindow.operators import stateless
from rewindow.operators.aggregate import StreamAggregate, WindowAggregate
from rewindow.operators.aggregates import Aggregator, Count
from rewindow.operators.compound import Custom, Reduce, several
from rewindow.operators.table_view import DerivedView, StoreView

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream

Initializer = Callable[[], Any]
AggregateSpec = Aggregator | Mapping[str, Aggregator] | Initializer


@dataclass(frozen=True, slots=True)
class KGroupedStream:
    """Records by key, to be aggregated, as a whole or by window."""

    stream: KStream

    def windowed_by(self, windows: TimeWindows) -> TimeWindowedKStream:
        """Aggregate by window."""
        return TimeWindowedKStream(self.stream, windows)

    def count(self, *, store: StoreSpec) -> KTable:
        """Count the records of each key. Null values are skipped."""
        return self.aggregate(Count(), store=store)

    def reduce(self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None) -> KTable:
        """Combine values, ``reducer(aggregate, value)``; the first value starts."""
        stream = replace(self.stream, value=value) if value else self.stream
        return KGroupedStream(stream).aggregate(Reduce(reducer), store=store)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: Callable[[Any, Any, Any], Any] | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
    ) -> KTable:
        """Aggregate: a built-in one, a dictionary of named ones, or ``initializer, aggregator(key, value, aggregate)``.

        ``value`` declares the type of a custom aggregate.
        """
        made = _aggregator(aggregate, aggregator, value)
        kept = materialized(store)
        stream, name = keyed(self.stream, kept.name), kept.name
        state, result = made.state_type(stream.value), made.result_type(stream.value)
        stream.graph.topology.add_store(kept.key_values(stream.key, state))
        supplier = StreamAggregate(made, name)
        node = stream.graph.add("aggregate", supplier, stream.node, name=name, stores=(name,))
        view = DerivedView(StoreView(name), lambda _key, state: made.result(state))
        return KTable(stream.graph, node, stream.key, result, view=view)


@dataclass(frozen=True, slots=True)
class TimeWindowedKStream:
    """Records by key and window."""

    stream: KStream
    windows: TimeWindows

    def count(self, *, store: StoreSpec) -> KTable:
        """Count the records of each key and window."""
        return self.aggregate(Count(), store=store)

    def reduce(self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None) -> KTable:
        """Combine values, ``reducer(aggregate, value)``; the first value of a window starts."""
        stream = replace(self.stream, value=value) if value else self.stream
        return TimeWindowedKStream(stream, self.windows).aggregate(Reduce(reducer), store=store)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: Callable[[Any, Any, Any], Any] | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
    ) -> KTable:
        """Aggregate each window: see `KGroupedStream.aggregate`. Late records are dropped and counted."""
        made = _aggregator(aggregate, aggregator, value)
        kept, windows = materialized(store), self.windows
        stream, name = keyed(self.stream, kept.name), kept.name
        state, result = made.state_type(stream.value), made.result_type(stream.value)
        stream.graph.topology.add_store(kept.windowed(windows, stream.key, state))
        supplier = WindowAggregate(windows, made, name)
        node = stream.graph.add("window", supplier, stream.node, name=name, stores=(name,))
        view = DerivedView(StoreView(name), lambda _key, state: made.result(state))
        return KTable(stream.graph, node, WindowedType(stream.key), result, windows, view)


def keyed(stream: KStream, store: str) -> KStream:
    """Return the stream with its records in the partitions of their keys, without those that have none."""
    if not stream.is_rekeyed:
        return stream
    node = stream.graph.add("keyed-only", stateless.KeyedOnly(), stream.node)
    return replace(stream, node=node).repartition(name=store)


def _aggregator(aggregate: AggregateSpec, aggregator: Callable[[Any, Any, Any], Any] | None, value: Any) -> Aggregator:
    if isinstance(aggregate, Mapping):
        return several(aggregate)
    if aggregator is not None and callable(aggregate):
        return Custom(aggregate, aggregator, value or returned_type(aggregator))
    if isinstance(aggregate, Aggregator):
        return aggregate
    message = (
        f"aggregate({aggregate!r}): give a built-in aggregate, a dict of them, or an initializer and an aggregator"
    )
    raise TopologyError(message)
