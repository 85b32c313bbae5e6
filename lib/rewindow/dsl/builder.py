"""Where a topology begins: `StreamsBuilder`."""

from __future__ import annotations

from rewindow.core.binding import LogType
from rewindow.core.stores import KEY_VALUE, StoreBuilder
from rewindow.core.topology import SourceNode, Topology
from rewindow.dsl.graph import Graph
from rewindow.dsl.stream import KStream
from rewindow.dsl.table import KTable
from rewindow.operators.aggregate import TableSource


class StreamsBuilder:
    """Reads topics and gives them verbs; `build` returns the topology.

    Topics are served in the order in which they are first read here: of two records with the same order key, the one
    of the earlier topic goes first. So read a table's topic before the streams that look things up in it.
    """

    def __init__(self) -> None:
        self._graph = Graph()

    def stream(self, topic: str) -> KStream:
        """Read a log of the feed as a stream of records. Reading it twice gives the same source."""
        return KStream(self._graph, self._source(topic), LogType(topic, "key"), LogType(topic, "value"))

    def table(self, topic: str, *, store: str) -> KTable:
        """Read a log of the feed as a table, kept in a store: the last value a key, in offset order."""
        source = self._source(topic)
        name = f"{store}-table" if store == topic else store
        key, value = LogType(topic, "key"), LogType(topic, "value")
        self._graph.topology.add_store(StoreBuilder(store, KEY_VALUE, key, value, is_stamped=True))
        node = self._graph.add("table", TableSource(store), source, name=name, stores=(store,))
        return KTable(self._graph, node, key, value)

    def add_store(self, builder: StoreBuilder) -> None:
        """Declare a store that several processors share; they name it in ``process(..., stores=(name,))``."""
        self._graph.topology.add_store(builder)

    def build(self) -> Topology:
        """Return the topology. Raises `TopologyError` if it cannot work."""
        self._graph.topology.sub_topologies()
        return self._graph.topology

    def _source(self, topic: str) -> str:
        for node in self._graph.topology.nodes.values():
            if isinstance(node, SourceNode) and node.topic == topic:
                return node.name
        self._graph.topology.add_source(topic, topic)
        return topic
