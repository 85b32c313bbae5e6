"""Streams of records. Each verb adds one named node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rewindow.core.binding import EqualType
from rewindow.core.duration import to_ms
from rewindow.core.processor import Processor
from rewindow.core.stores import StoreBuilder
from rewindow.dsl.graph import Graph, returned_pair, returned_type
from rewindow.dsl.grouped import KGroupedStream
from rewindow.operators import stateless

if TYPE_CHECKING:
    from rewindow.core.record import Record  # noqa: F401 - named in docstrings


@dataclass(frozen=True, slots=True)
class KStream:
    """A stream: each record stands for itself.

    ``key`` and ``value`` are the types as far as they are known: from the log, from the annotation of a function's
    result, or declared with ``key=`` / ``value=``. What is not known is written as JSON text.
    """

    graph: Graph
    node: str
    key: Any = None
    value: Any = None
    is_rekeyed: bool = False

    def filter(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> KStream:
        """Keep the records for which ``predicate(key, value)`` is true."""
        return self._then("filter", stateless.Filter(predicate), name)

    def filter_not(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> KStream:
        """Keep the records for which ``predicate(key, value)`` is false."""
        return self._then("filter", stateless.Filter(predicate, negate=True), name)

    def map(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> KStream:
        """Make a new key and value, ``mapper(key, value) -> (key, value)``. Grouping after it crosses a repartition."""
        known = returned_pair(mapper)
        return self._then("map", stateless.Map(mapper), name, key=key or known[0], value=value or known[1])

    def flat_map(
        self,
        mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> KStream:
        """Make any number of keys and values, ``mapper(key, value) -> [(key, value), ...]``."""
        return self._then("flat-map", stateless.FlatMap(mapper), name, key=key, value=value)

    def map_values(self, mapper: Callable[[Any], Any], *, value: Any = None, name: str | None = None) -> KStream:
        """Make a new value, ``mapper(value)``. The key, and with it the partition, stays."""
        stream = self._then("map-values", stateless.MapValues(mapper), name)
        return replace(stream, value=value or returned_type(mapper))

    def select_key(self, mapper: Callable[[Any, Any], Any], *, key: Any = None, name: str | None = None) -> KStream:
        """Make a new key, ``mapper(key, value)``. Grouping after it crosses a repartition."""
        node = stateless.SelectKey(mapper)
        return self._then("select-key", node, name, key=key or returned_type(mapper), value=self.value)

    def merge(self, *others: KStream, name: str | None = None) -> KStream:
        """Put streams together; records keep the order in which the task takes them."""
        streams = (self, *others)
        node = self.graph.add("merge", stateless.PassThrough(), *(stream.node for stream in streams), name=name)
        return KStream(
            self.graph,
            node,
            _common(stream.key for stream in streams),
            _common(stream.value for stream in streams),
            any(stream.is_rekeyed for stream in streams),
        )

    def peek(self, action: Callable[[Any, Any], None], *, name: str | None = None) -> KStream:
        """Call ``action(key, value)`` for each record and pass it on. A task that is retried calls it again."""
        return self._then("peek", stateless.Peek(action), name)

    def process(
        self,
        supplier: Callable[[], Processor],
        *,
        name: str,
        stores: Iterable[StoreBuilder | str] = (),
        key: Any = None,
        value: Any = None,
        holds: str | timedelta = "0s",
    ) -> KStream:
        """Run a processor of your own. ``name`` identifies its schedules and clock in checkpoints.

        ``stores`` gives new stores, or the names of stores that other nodes have too. ``key`` and ``value`` declare the
        types that it forwards. ``holds``: the longest it holds a result back, where time follows the watermark.
        """
        stores = tuple(stores)
        for store in stores:
            if isinstance(store, StoreBuilder):
                self.graph.topology.add_store(store)
        names = tuple(store.name if isinstance(store, StoreBuilder) else store for store in stores)
        node = self.graph.add("process", supplier, self.node, name=name, stores=names, holds_ms=to_ms(holds))
        return KStream(self.graph, node, key, value, is_rekeyed=True)

    def repartition(self, *, name: str, key: Any = None, value: Any = None) -> KStream:
        """Send each record to the partition of its key, through an internal log."""
        key, value = key or self.key, value or self.value
        node = self.graph.topology.add_repartition(name, self.node, key=key, value=value)
        return KStream(self.graph, node, key, value)

    def group_by_key(self) -> KGroupedStream:
        """Group by the key; where it was changed, through a repartition that is named after the store."""
        return KGroupedStream(self)

    def group_by(self, mapper: Callable[[Any, Any], Any], *, key: Any = None) -> KGroupedStream:
        """Group by a new key, ``mapper(key, value)``; a record whose new key is null is dropped."""
        return KGroupedStream(self.select_key(mapper, key=key))

    def to(self, topic: str, *, key: Any = None, value: Any = None) -> None:
        """Write an output; the job's configuration says to which table. ``key`` and ``value`` declare column types."""
        self.graph.topology.add_sink(f"{topic}-sink", topic, self.node, key=key or self.key, value=value or self.value)

    def _then(self, verb: str, supplier: Callable[[], Processor], name: str | None, **changed: Any) -> KStream:
        node = self.graph.add(verb, supplier, self.node, name=name)
        stream = replace(self, node=node)
        return replace(stream, **changed, is_rekeyed=True) if changed else stream


def _common(types: Iterable[Any]) -> Any:
    """Return the type of streams that meet. Whether two logs have the same columns is known when types are bound."""
    different = list(dict.fromkeys(types))
    return different[0] if len(different) == 1 else EqualType(tuple(different))
