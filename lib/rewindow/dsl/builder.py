"""`StreamsBuilder`, where every topology starts."""

from __future__ import annotations

from rewindow.dsl.graph import FluentClasses, Graph
from rewindow.dsl.grouped_table import KGroupedTable
from rewindow.dsl.joins import GlobalKTable, kept_everywhere
from rewindow.dsl.materialized import StoreSpec
from rewindow.dsl.stream import KStream
from rewindow.dsl.table import KTable, kept_table
from rewindow.streams.nodes import SourceNode
from rewindow.streams.serde.types_to_columns import LogType
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import Topology


class StreamsBuilder:
    """Reads topics as streams and tables, and builds the topology.

    If two records have the same order key, the record of the topic that is read first here is processed first. So read a
    table's topic before the topics of streams that join the table.
    """

    def __init__(self) -> None:
        self._graph = Graph(FluentClasses(KStream, KGroupedTable))

    def stream(self, topic: str) -> KStream:
        """Read a topic of the feed as a stream of records. Reading a topic again uses the same source node."""
        return KStream(self._graph, self._source(topic), LogType(topic, "key"), LogType(topic, "value"))

    def table(self, topic: str, *, store: StoreSpec, name: str | None = None) -> KTable:
        """Read a topic of the feed as a table: a key has the value of its last record, in offset order.

        The rows are kept in ``store``. A null value is a tombstone: it deletes the row and is sent downstream. A record with
        a null key is skipped and counted. An update also replaces a row with a later timestamp; the row then has the update's
        timestamp. With ``store=versioned_store(name, history=...)`` the table keeps its history, and the current row of a key
        is that with the highest timestamp (KIP-889): see `versioned_store` and `KStream.join`. ``name`` names the node; the
        default is the store's name.
        """
        source = self._source(topic)
        key, value = LogType(topic, "key"), LogType(topic, "value")
        return kept_table(self._graph, source, key, value, store, name=name)

    def global_table(self, topic: str, *, store: StoreSpec, name: str | None = None) -> GlobalKTable:
        """Read a topic of the feed as a global table: every task keeps the rows of all partitions of the topic, in ``store``.

        A stream joins the table by any key that it selects, without a repartition: see `KStream.join`. Each task processes
        the table's records from all partitions together with its other records, in the order of timestamps. So a record is
        joined with the state that the table has at the record's place in this order (ADR-86). If timestamps are equal, the
        record of the topic that the topology reads first comes first. The table's records advance no clock. A null value
        deletes the row; a record with a null key is skipped and counted.

        Each run sends the table's new records to all tasks, and each task restores the whole table. ``name`` names the node.
        Raises `TopologyError` for a store that is not key-value.
        """
        key, value = LogType(topic, "key"), LogType(topic, "value")
        return kept_everywhere(self._graph, self._source(topic), key, value, store, name=name)

    def add_store(self, builder: StoreBuilder) -> None:
        """Declare a store that several processors share. Connect each with ``process(..., stores=(name,))``."""
        self._graph.topology.add_store(builder)

    def build(self) -> Topology:
        """Return the topology. Raises `TopologyError` if it is invalid."""
        self._graph.topology.sub_topologies()
        return self._graph.topology

    def _source(self, topic: str) -> str:
        for node in self._graph.topology.nodes.values():
            if isinstance(node, SourceNode) and node.topic == topic:
                return node.name
        self._graph.topology.add_source(topic, topic)
        return topic
