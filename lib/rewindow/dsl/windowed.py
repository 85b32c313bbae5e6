"""Streams grouped by key and window: `TimeWindowedKStream` and `SessionWindowedKStream`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.aggregating import (
    AddFunction,
    AggregateSpec,
    aggregator_of,
    check_functions,
    keyed,
    merger_of,
    typed_by,
)
from rewindow.dsl.annotations import function_of
from rewindow.dsl.finals import keep_longer, keep_until_final
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.builtin_aggregates import Count
from rewindow.dsl.operators.compound import Reduce
from rewindow.dsl.operators.session_aggregate import Merger, SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.dsl.operators.table_view import DerivedView, StoreView
from rewindow.dsl.operators.window_aggregate import EmitStrategy, WindowAggregate
from rewindow.dsl.table import KTable
from rewindow.errors import TopologyError
from rewindow.streams.serde.types_to_columns import WindowedType
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, UnlimitedWindows, Windows

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass(frozen=True, slots=True)
class TimeWindowedKStream:
    """A stream grouped by key and window: tumbling, hopping, in local time, sliding or unlimited (KIP-328, KIP-450).

    The node's clock is the highest timestamp of its records so far; skipped records do not advance it. A window closes when
    the clock reaches end + grace. A sliding window closes only when the clock exceeds end + grace. A late record is dropped,
    and counted once for each closed window. Records with a null key are skipped. Records with a null value are skipped in
    sliding windows and aggregated in other windows. A result has the largest timestamp of its records.
    """

    stream: KStream
    windows: GridWindows | SlidingWindows
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def emit_strategy(self, emit: EmitStrategy) -> TimeWindowedKStream:
        """Choose whether each update is sent (the default), or only a window's final result when it closes (KIP-825).

        Final results are sent when a record or watermark closes their windows, in the order of window start and key bytes.
        Raises `TopologyError` for windows that never close.
        """
        if emit is EmitStrategy.ON_WINDOW_CLOSE and isinstance(self.windows, UnlimitedWindows):
            raise TopologyError(
                "unlimited-window-never-closes",
                "an unlimited window never closes: use emit_strategy(EmitStrategy.on_window_update())",
            )
        return replace(self, emit=_strategy(emit))

    def count(self, *, store: StoreSpec, name: str | None = None) -> KTable:
        """Count the records of each key and window."""
        return self.aggregate(Count(), store=store, name=name)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None, name: str | None = None
    ) -> KTable:
        """Combine the values of each window with ``reducer(aggregate, value)``. The first value is the first aggregate."""
        stream = replace(self.stream, value=value) if value else self.stream
        return replace(self, stream=stream).aggregate(Reduce(function_of(reducer, "reduce")), store=store, name=name)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: AddFunction | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Aggregate the values of each key and window: see `KGroupedStream.aggregate`.

        ``store`` is a name, a `Materialized` with a retention, or a ready-made store. ``name`` names the node; the default
        is the store's name.
        """
        made = aggregator_of(aggregate, aggregator, value)
        own, windows, emit = materialized(store).name, self.windows, self.emit
        if isinstance(windows, SlidingWindows):
            supplier: SlidingAggregate | WindowAggregate = SlidingAggregate(windows, made, own, emit)
        else:
            supplier = WindowAggregate(windows, made, own, emit)
        return _windowed_table(self.stream, supplier, store, name)


@dataclass(frozen=True, slots=True)
class SessionWindowedKStream:
    """A stream grouped by key and session: records that are at most the gap apart.

    A record merges all sessions that are at most the gap away from it. A tombstone is sent for each merged session, and then
    the new session. Each has the end of its session as timestamp. A record is late if the node's clock exceeds end + gap +
    grace, where end is that of the session that the record would make. A late record is dropped and counted. Records with a
    null key are skipped.
    """

    stream: KStream
    windows: SessionWindows
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def emit_strategy(self, emit: EmitStrategy) -> SessionWindowedKStream:
        """Choose whether each update is sent (the default), or only a session's final result when it closes (KIP-825).

        Final results are sent when a record or watermark closes their sessions, in the order of end, start and key bytes.
        """
        return replace(self, emit=_strategy(emit))

    def count(self, *, store: StoreSpec, name: str | None = None) -> KTable:
        """Count the records of each key and session."""
        return self.aggregate(Count(), store=store, name=name)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], *, store: StoreSpec, value: Any = None, name: str | None = None
    ) -> KTable:
        """Combine the values of each session, and the aggregates of merged sessions, with ``reducer(aggregate, value)``."""
        stream = replace(self.stream, value=value) if value else self.stream
        return replace(self, stream=stream).aggregate(Reduce(function_of(reducer, "reduce")), store=store, name=name)

    def aggregate(
        self,
        aggregate: AggregateSpec,
        aggregator: AddFunction | None = None,
        merger: Merger | None = None,
        *,
        store: StoreSpec,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """Aggregate the values of each key and session: see `KGroupedStream.aggregate`.

        A custom aggregate also needs ``merger(key, one, later)``, which returns the aggregate of two merged sessions. In its
        first call for a record, ``one`` is the initializer's result. Raises `TopologyError` if the merger is missing.
        """
        made = aggregator_of(aggregate, aggregator, value)
        merge = merger_of(aggregate, made, merger)
        supplier = SessionAggregate(self.windows, made, merge, materialized(store).name, self.emit)
        return _windowed_table(self.stream, supplier, store, name)


def _windowed_table(
    stream: KStream,
    supplier: WindowAggregate | SlidingAggregate | SessionAggregate,
    store: StoreSpec,
    name: str | None,
) -> KTable:
    own, made = supplier.store, supplier.aggregator
    windows: Windows = supplier.windows
    is_final = supplier.emit is EmitStrategy.ON_WINDOW_CLOSE
    stream = keyed(stream, own)
    state, result = made.state_type(stream.value), made.result_type(stream.value)
    stream.graph.topology.add_store(materialized(store).windowed(windows, stream.key, state))
    holds_ms = windows.holds_ms if is_final else 0
    options: dict[str, Any] = {"stores": (own,), "typed_by": typed_by(made), "holds_ms": holds_ms}
    node = stream.graph.add("window", supplier, stream.node, name=name or own, **options)
    check_functions(stream.graph, node, made, stream.key, stream.value)
    if isinstance(supplier, SessionAggregate):
        types = {"key": stream.key, "one": state, "later": state}
        stream.graph.calls(node, "aggregate(merger)", supplier.merger, **types)
    if is_final:
        # The window must still be in the store when it closes, as in Kafka.
        keep_longer(stream.graph, own)
        keep_until_final(stream.graph, node)
    view = DerivedView(StoreView(own), lambda _key, state: made.result(state))
    key = WindowedType(stream.key, isinstance(windows, SessionWindows))
    return KTable(stream.graph, node, key, result, windows, view)


def check_windows(windows: object) -> None:
    """Raise `TopologyError` if ``windows`` is not a kind of windows."""
    if not isinstance(windows, GridWindows | SlidingWindows | SessionWindows):
        raise TopologyError(
            "windows-invalid",
            "windowed_by({given}): give TimeWindows, CalendarWindows, SlidingWindows, SessionWindows or UnlimitedWindows",
            given=repr(windows),
        )
    check_made(windows)


def check_made(windows: Any) -> None:
    """Raise `TopologyError` for windows that were made without ``of``. Their durations are still texts."""
    times = (field.name for field in fields(windows) if field.name.endswith("_ms"))
    if any(not isinstance(getattr(windows, name), int | None) for name in times):
        raise TopologyError(
            "windows-made-without-of",
            '{windows} was not given milliseconds: use {windows}.of(...), as in {windows}.of("30m", grace="1h")',
            windows=type(windows).__name__,
        )


def _strategy(emit: Any) -> EmitStrategy:
    if not isinstance(emit, EmitStrategy):
        raise TopologyError(
            "emit-strategy-invalid",
            "emit_strategy({given}): give EmitStrategy.on_window_update() or EmitStrategy.on_window_close()",
            given=repr(emit),
        )
    return emit
