"""Tables: the newest value of each key, and the verbs on their updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rewindow.core.stores import BUFFER, StoreBuilder
from rewindow.core.windows import Windows
from rewindow.dsl.graph import Graph, returned_type
from rewindow.dsl.suppressed import Suppressed
from rewindow.errors import TopologyError
from rewindow.operators import stateless
from rewindow.operators.suppress import BufferTime, SuppressUntilTimeLimit, SuppressUntilWindowCloses

if TYPE_CHECKING:
    from rewindow.dsl.stream import KStream


@dataclass(frozen=True, slots=True)
class KTable:
    """A table. Every update goes downstream: there is no record cache. ``windows`` is set for windowed tables."""

    graph: Graph
    node: str
    key: Any = None
    value: Any = None
    windows: Windows | None = None

    def filter(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> KTable:
        """Keep the rows for which ``predicate(key, value)`` is true; one that fits no longer becomes a tombstone."""
        return replace(
            self, node=self.graph.add("table-filter", stateless.TableFilter(predicate), self.node, name=name)
        )

    def map_values(self, mapper: Callable[[Any], Any], *, value: Any = None, name: str | None = None) -> KTable:
        """Map the values; a tombstone stays one."""
        node = self.graph.add("table-map-values", stateless.TableMapValues(mapper), self.node, name=name)
        return replace(self, node=node, value=value or returned_type(mapper))

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> KTable:
        """Hold updates back as `until_window_closes` or `until_time_limit` says; only the newest of a key leaves (KIP-328).

        Time is the node's own: the highest timestamp of the updates that reach it. What leaves has the timestamp of its
        newest update, and its old value is what was last emitted of its key (D13). ``name`` (or the configuration's)
        is that of node and buffer; by default ``<parent>-suppress``. A named one may be put into a running job, where
        it begins empty, and taken out while it is empty; a time limit of zero disables it.
        Raises `TopologyError` if there is no window where one is needed, and for anything but these two.
        """
        given: object = suppressed  # it is up to the user
        if not isinstance(given, Suppressed):
            message = (
                f"suppress({suppressed!r}) after {self.node!r}: give it until_window_closes() or until_time_limit(...)"
            )
            raise TopologyError(message)
        store = name or suppressed.name or f"{self.node}-suppress"
        bounds, windows = suppressed.buffer.bounds, self.windows
        supplier: SuppressUntilTimeLimit | SuppressUntilWindowCloses
        if suppressed.limit_ms is not None and (windows or suppressed.buffer_time is not BufferTime.WINDOW_START):
            supplier = SuppressUntilTimeLimit(suppressed.limit_ms, store, suppressed.buffer_time, bounds)
            holds_ms = suppressed.limit_ms
        elif windows is not None:
            supplier = SuppressUntilWindowCloses(windows.final_after_end_ms, store, bounds)
            holds_ms = windows.holds_ms
        else:
            message = (
                f"suppress({store!r}) after {self.node!r}: there is no window; use windowed_by before, or a time limit"
            )
            raise TopologyError(message)
        records, size = bounds.memory
        self.graph.topology.add_store(
            StoreBuilder(store, BUFFER, self.key, self.value, memory_records=records, memory_bytes=size)
        )
        node = self.graph.add("suppress", supplier, self.node, name=store, stores=(store,), holds_ms=holds_ms)
        return replace(self, node=node)

    def to_stream(self, *, name: str | None = None) -> KStream:
        """Send the updates as records: the new value, null for a tombstone."""
        from rewindow.dsl.stream import KStream  # noqa: PLC0415 - streams and tables make each other

        node = self.graph.add("to-stream", stateless.TableToStream(), self.node, name=name)
        return KStream(self.graph, node, self.key, self.value)
