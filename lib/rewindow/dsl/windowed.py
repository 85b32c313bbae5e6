"""Streams by key and window: what is aggregated, and when the results leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.aggregating import AddFunction, AggregateSpec, aggregator_of, keyed, merger_of
from rewindow.dsl.finals import keep_longer, keep_until_final
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.aggregates import Count
from rewindow.dsl.operators.compound import Reduce
from rewindow.dsl.operators.session_aggregate import Merger, SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.dsl.operators.table_view import DerivedView, StoreView
from rewindow.dsl.operators.window_aggregate import WindowAggregate
from rewindow.dsl.operators.windowed import EmitStrategy
from rewindow.dsl.table import KTable
from rewindow.errors import TopologyError
from rewindow.streams.serde.binding import WindowedType
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, UnlimitedWindows, Windows

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass(frozen=True, slots=True)
class TimeWindowedKStream:
    """Records by key and window: tumbling, hopping, sliding or unlimited.

    The node's clock is the highest timestamp of the records with a key that it has seen. A window takes no record any
    more once the clock has reached its end + grace (sliding: passed it); a record that is late is dropped, and counted
    for each window that does not take it. A null key is skipped; so is a null value by sliding windows, while the others
    count it. The timestamp of a result is the largest of its records. (KIP-328, KIP-450)
    """

    stream: KStream
    windows: GridWindows | SlidingWindows
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def emit_strategy(self, emit: EmitStrategy) -> TimeWindowedKStream:
        """Send each update, which is the default, or only what is final, once a window closes (KIP-825).

        Finals leave at the record or watermark that closes their window, by window start, then key bytes.
        Raises `TopologyError` for windows that never close.
        """
        if emit is EmitStrategy.ON_WINDOW_CLOSE and isinstance(self.windows, UnlimitedWindows):
            message = "an unlimited window never closes: use emit_strategy(EmitStrategy.on_window_update())"
            raise TopologyError(message)
        return replace(self, emit=_strategy(emit))

    def count(self, *, store: StoreSpec) -> KTable:
        """Count the records of each key and window."""
        return self.aggregate(Count(), store=store)

    def reduce(self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None) -> KTable:
        """Combine values, ``reducer(aggregate, value)``; the first value of a window starts."""
        stream = replace(self.stream, value=value) if value else self.stream
        return replace(self, stream=stream).aggregate(Reduce(reducer), store=store)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: AddFunction | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
    ) -> KTable:
        """Aggregate each window: a built-in one, a dictionary of named ones, or ``initializer, aggregator``.

        See `KGroupedStream.aggregate`. ``store`` is a name, a `Materialized` with a retention, or a store made before.
        """
        made = aggregator_of(aggregate, aggregator, value)
        name, windows, emit = materialized(store).name, self.windows, self.emit
        if isinstance(windows, SlidingWindows):
            return _windowed_table(self.stream, SlidingAggregate(windows, made, name, emit), store)
        return _windowed_table(self.stream, WindowAggregate(windows, made, name, emit), store)


@dataclass(frozen=True, slots=True)
class SessionWindowedKStream:
    """Records by key and session: those with no longer pause between them than the gap.

    A record joins all sessions that it touches, exactly the gap apart too; they become one. For each that it touched a
    tombstone is sent, and then the new session; the timestamp of both is the session's end. The joined session is late,
    and its record dropped and counted, once the node's clock has passed its end + gap + grace. A null key is skipped.
    """

    stream: KStream
    windows: SessionWindows
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def emit_strategy(self, emit: EmitStrategy) -> SessionWindowedKStream:
        """Send each update, which is the default, or only what is final, once a session is over (KIP-825).

        Finals leave at the record or watermark that closes their session, by end, start, then key bytes.
        """
        return replace(self, emit=_strategy(emit))

    def count(self, *, store: StoreSpec) -> KTable:
        """Count the records of each key and session."""
        return self.aggregate(Count(), store=store)

    def reduce(self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None) -> KTable:
        """Combine values, ``reducer(aggregate, value)``, and so the aggregates of sessions that become one."""
        stream = replace(self.stream, value=value) if value else self.stream
        return replace(self, stream=stream).aggregate(Reduce(reducer), store=store)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: AddFunction | None = None,
        merger: Merger | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
    ) -> KTable:
        """Aggregate each session: a built-in one, a dictionary of them, or ``initializer, aggregator, merger``.

        ``merger(key, one, later)`` gives the aggregate of two sessions that become one; the first ``one`` is what the
        initializer gives. Raises `TopologyError` if it is missing.
        """
        made = aggregator_of(aggregate, aggregator, value)
        merge = merger_of(aggregate, made, merger)
        supplier = SessionAggregate(self.windows, made, merge, materialized(store).name, self.emit)
        return _windowed_table(self.stream, supplier, store)


def _windowed_table(
    stream: KStream, supplier: WindowAggregate | SlidingAggregate | SessionAggregate, store: StoreSpec
) -> KTable:
    name, made = supplier.store, supplier.aggregator
    windows: Windows = supplier.windows
    is_final = supplier.emit is EmitStrategy.ON_WINDOW_CLOSE
    stream = keyed(stream, name)
    state, result = made.state_type(stream.value), made.result_type(stream.value)
    stream.graph.topology.add_store(materialized(store).windowed(windows, stream.key, state))
    holds_ms = windows.holds_ms if is_final else 0
    node = stream.graph.add("window", supplier, stream.node, name=name, stores=(name,), holds_ms=holds_ms)
    if is_final:
        keep_longer(stream.graph, name)  # it is still there at the very moment in which it closes, as in Kafka
        keep_until_final(stream.graph, node)
    view = DerivedView(StoreView(name), lambda _key, state: made.result(state))
    key = WindowedType(stream.key, isinstance(windows, SessionWindows))
    return KTable(stream.graph, node, key, result, windows, view)


def _strategy(emit: Any) -> EmitStrategy:
    if not isinstance(emit, EmitStrategy):
        message = f"emit_strategy({emit!r}): give EmitStrategy.on_window_update() or EmitStrategy.on_window_close()"
        raise TopologyError(message)
    return emit
