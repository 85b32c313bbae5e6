"""The topology: a graph of sources, processors, sinks and stores, checked as it is built and split at repartitions.

A topology is data and runs nothing. A node forwards records to its children in the order in which the children were added. If
records of two topics have equal order keys, the record of the topic whose source was added first is processed first.

A run processes the sub-topologies one after the other. A global table has two nodes: an internal source, and the node that
maintains the table's store. These two nodes do not connect sub-topologies. Instead, each sub-topology that reads the store
has a copy of them.

The lag of a node says how long nodes above it may hold results back. The watermark that the node gets is lowered by its lag
(D22). Lags are computed from `Topology.describe`, whose result the ledger stores for each run. So another job that reads an
output can compute the lag of a run whose code no longer exists.

Key pruning determines which keys a sub-topology can read from its stores. A run restores only these keys. A supplier may
declare two properties of its processor. Both are false by default, and for every user processor:

* ``keeps_key``: the processor forwards records only while it handles a record, and only with that record's key.
* ``asks_own_key``: the processor accesses its stores only while it handles a record, and only with that record's key.

If all nodes of a store declare ``asks_own_key``, and all nodes between the sources and these nodes declare ``keeps_key``,
then the store is read only with keys of the sources' records.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rewindow.errors import TopologyError
from rewindow.streams.duration import in_words
from rewindow.streams.nodes import PROCESS, Node, Partitioner, ProcessorNode, SinkNode, SourceNode, TypedBy
from rewindow.streams.processor import Processor
from rewindow.streams.settings import FAIL, OnError
from rewindow.streams.state.stores import SESSION, WINDOW, StoreBuilder
from rewindow.streams.timing import TimedNode, Timing, timings_of

REPARTITION_SUFFIX = "-repartition"
_OURS = "rewindow."
_GLOBAL_SUFFIX = "-global"
_Topics = frozenset[str]


@dataclass(frozen=True, slots=True)
class SubTopology:
    """The part of a topology that one task runs: connected nodes and their stores. A run processes parts by ``index``."""

    index: int
    nodes: tuple[Node, ...]
    stores: tuple[StoreBuilder, ...]
    copies: frozenset[str] = frozenset()
    """The stores of global tables whose changelog an earlier sub-topology writes."""

    def kind_of(self, store: str) -> str:
        """Return the kind of the store with this name."""
        return next(builder.kind for builder in self.stores if builder.name == store)

    @property
    def global_stores(self) -> frozenset[str]:
        """The stores of global tables in this part. Every task keeps all their rows, and one task writes their changelogs."""
        return frozenset(_global_tables(self.nodes))

    def writes_changelog(self, store: str, partition: int) -> bool:
        """Return whether the task of a partition writes the changelog of a store. For a global store only one task does."""
        return store not in self.global_stores or (partition == 0 and store not in self.copies)

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        """The source nodes. If order keys of two topics are equal, the record of the earlier source is processed first (L1)."""
        return tuple(node for node in self.nodes if isinstance(node, SourceNode))

    @property
    def sinks(self) -> tuple[SinkNode, ...]:
        """The sink nodes."""
        return tuple(node for node in self.nodes if isinstance(node, SinkNode))


@dataclass
class Topology:
    """A graph of named nodes and stores."""

    nodes: dict[str, Node] = field(default_factory=dict)
    stores: dict[str, StoreBuilder] = field(default_factory=dict)
    reads: list[tuple[str, _Reads]] = field(default_factory=list)
    """For each node by name, the columns that its code reads (to be checked); not part of the fingerprint."""
    lines: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Maps ``node NAME`` or ``store NAME`` to the ``file:line`` of user code that added the node or store, for messages."""

    def add_source(self, name: str, topic: str) -> Topology:
        """Add a source for a topic of the feed. Raises `TopologyError` if another source already reads the topic."""
        self._check_topic_is_read_once(topic)
        return self._add(SourceNode(name, topic=topic))

    def add_processor(
        self,
        name: str,
        supplier: Callable[[], Processor],
        *parents: str,
        stores: tuple[str, ...] = (),
        holds_ms: int = 0,
        on_error: OnError = FAIL,
        typed_by: TypedBy = PROCESS,
    ) -> Topology:
        """Add a processor. ``stores`` has names of stores that were added before. Other arguments: see `ProcessorNode`."""
        # User code may pass any object.
        given: object = supplier
        if not callable(given):
            raise TopologyError(
                "supplier-not-callable",
                "processor {node!r} was given {supplier}: pass the class, or a function that makes one",
                node=name,
                supplier=repr(supplier),
            )
        if holds_ms < 0:
            raise TopologyError(
                "node-hold-time-negative",
                "processor {node!r} holds results for {duration}: give 0 or more",
                node=name,
                duration=in_words(holds_ms),
            )
        for store in stores:
            if store not in self.stores:
                raise TopologyError(
                    "node-store-missing",
                    "processor {node!r} needs the store {store!r}, which was not added: give the store itself, "
                    "stores=[store], or call add_store(store) first",
                    node=name,
                    store=store,
                )
        return self._add(ProcessorNode(name, parents, supplier, stores, holds_ms, on_error, typed_by))

    def add_store(self, builder: StoreBuilder) -> Topology:
        """Declare a store. Processors added with the store's name are connected to it."""
        if self.stores.get(builder.name, builder) != builder:
            raise _named_twice("stores", builder.name)
        self.stores[builder.name] = builder
        self.lines.setdefault(f"store {builder.name}", _call_line())
        return self

    def add_sink(self, name: str, topic: str, *parents: str, key: Any = None, value: Any = None) -> Topology:
        """Add a sink for a topic, which the job's configuration maps to a table."""
        return self._add(SinkNode(name, parents, topic, key, value))

    def add_repartition(
        self, name: str, *parents: str, key: Any = None, value: Any = None, partitioner: Partitioner | None = None
    ) -> str:
        """Add a repartition. It sends each record to the partition of its key, or to the one that ``partitioner`` returns.

        Returns the name of the repartition's source, which is the parent of the nodes below.
        """
        topic = name + REPARTITION_SUFFIX
        self._check_topic_is_read_once(topic)
        self._add(SinkNode(f"{topic}-sink", parents, topic, key, value, is_internal=True, partitioner=partitioner))
        self._add(SourceNode(f"{topic}-source", topic=topic, is_internal=True))
        return f"{topic}-source"

    def add_global_table(self, name: str, supplier: Callable[[], Processor], builder: StoreBuilder, parent: str) -> str:
        """Add a global table. In every task, the node ``name`` stores all records of ``parent`` in the store of ``builder``.

        Returns ``name``. Joins in any sub-topology can read the store by its name.
        """
        topic = builder.name + _GLOBAL_SUFFIX
        self._check_topic_is_read_once(topic)
        kind: dict[str, Any] = {"topic": topic, "is_internal": True, "is_global": True}
        self._add(SinkNode(f"{topic}-sink", (parent,), key=builder.key, value=builder.value, **kind))
        self._add(SourceNode(f"{topic}-source", **kind))
        self.add_store(builder).add_processor(name, supplier, f"{topic}-source", stores=(builder.name,))
        return name

    def sub_topologies(self) -> tuple[SubTopology, ...]:
        """Return the sub-topologies in the order in which a run processes them.

        Raises `TopologyError` for a cycle, a node that could change a global table, or a topology without a
        source.
        """
        if not any(isinstance(node, SourceNode) for node in self.nodes.values()):
            raise TopologyError("topology-without-source", "a topology must read at least one topic: add a source")
        _check_global_tables(self.nodes.values())
        parts = _in_run_order(_connected(self.nodes.values()))
        made: list[SubTopology] = []
        for index, part in enumerate(parts):
            earlier = frozenset(store for sub_topology in made for store in sub_topology.global_stores)
            made.append(SubTopology(index, tuple(part), self._stores_of(part), earlier))
        return tuple(made)

    def describe(self) -> list[dict[str, Any]]:
        """Return the graph as data, for `explain` and for the fingerprint."""
        return [
            {
                "sub_topology": part.index,
                "nodes": [_describe_node(node) for node in part.nodes],
                "stores": [_describe_store(store) for store in part.stores],
            }
            for part in self.sub_topologies()
        ]

    def timed_nodes(self) -> tuple[TimedNode, ...]:
        """Return a `TimedNode` for each store that depends on its node's clock, in the order of `describe`."""
        return tuple(node for part in self.sub_topologies() for node in _timed_nodes(part))

    def above(self, node: Node) -> Iterator[Node]:
        """Yield a node and all nodes above it, nearest first. Nodes above repartitions are included."""
        waiting, reached = [node], {node.name}
        while waiting:
            nearest = waiting.pop(0)
            yield nearest
            parents = list(nearest.parents)
            if isinstance(nearest, SourceNode) and nearest.is_internal:
                sinks = (sink for sink in self.nodes.values() if isinstance(sink, SinkNode))
                parents += [sink.name for sink in sinks if sink.topic == nearest.topic]
            waiting += [self.nodes[name] for name in parents if name not in reached]
            reached.update(parents)

    def fingerprint(self) -> str:
        """Return a hash of `describe`. Topologies with the same fingerprint can resume from the same checkpoint."""
        text = json.dumps(self.describe(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def watermark_lags(self) -> dict[str, int]:
        """Return each node's lag in ms: how long its ancestors may hold results back. The lag lowers its watermark (D22)."""
        return _node_lags(self.describe())

    def _add(self, node: Node) -> Topology:
        topics = [sink.topic for sink in self.nodes.values() if isinstance(sink, SinkNode) and not sink.is_internal]
        if isinstance(node, SinkNode) and node.topic in topics:
            raise TopologyError(
                "topic-written-twice",
                "topic {topic!r} is written twice: merge the streams before .to({topic!r})",
                topic=node.topic,
            )
        if not isinstance(node.name, str):
            raise TopologyError("node-name-invalid", "{given} cannot name a node: give a string", given=repr(node.name))
        if node.name in self.nodes:
            raise _named_twice("nodes", node.name)
        if not node.parents and not isinstance(node, SourceNode):
            raise TopologyError(
                "node-without-parent",
                "node {node!r} has no parent: name the nodes whose records it should get",
                node=node.name,
            )
        for parent in node.parents:
            if not isinstance(self.nodes.get(parent), SourceNode | ProcessorNode):
                raise TopologyError(
                    "node-parent-unknown",
                    "node {node!r} names the parent {parent!r}, which is not a source or processor added before it",
                    node=node.name,
                    parent=parent,
                )
        self.nodes[node.name] = node
        self.lines[f"node {node.name}"] = _call_line()
        return self

    def _check_topic_is_read_once(self, topic: str) -> None:
        if any(isinstance(node, SourceNode) and node.topic == topic for node in self.nodes.values()):
            raise TopologyError(
                "topic-read-twice",
                "topic {topic!r} has a source already: use that source's name as the parent of both",
                topic=topic,
            )

    def _stores_of(self, part: list[Node]) -> tuple[StoreBuilder, ...]:
        names = [name for node in part if isinstance(node, ProcessorNode) for name in node.stores]
        return tuple(self.stores[name] for name in dict.fromkeys(names))


def describe_supplier(supplier: Any) -> str:
    """Return the result of the supplier's ``describe()``; without such a method, the name of the class or function."""
    describe = getattr(supplier, "describe", None)
    return describe() if callable(describe) else getattr(supplier, "__name__", type(supplier).__name__)


def output_lags(topology: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how long (ms) results may be held back, by output topic. ``topology`` is a result of `Topology.describe`."""
    lags, internal = _node_lags(topology), _internal_topics(topology)
    sinks = (node for part in topology for node in part["nodes"] if "sink" in node)
    return {sink["sink"]: lags[sink["name"]] for sink in sinks if sink["sink"] not in internal}


def key_topics(part: SubTopology) -> dict[str, _Topics]:
    """For each store (by name) that is read only with keys of source records, return the topics of these sources."""
    # For each node, `below` has the topics from which the keys of the records below the node come; None if these are unknown.
    below: dict[str, _Topics | None] = {}
    topics_of: dict[str, _Topics | None] = {store.name: frozenset() for store in part.stores}
    for node in part.nodes:
        if isinstance(node, SourceNode):
            below[node.name] = frozenset((node.topic,))
            continue
        above = _union([below[parent] for parent in node.parents])
        below[node.name] = above if _declares(node, "keeps_key") else None
        if isinstance(node, ProcessorNode):
            own = above if _declares(node, "asks_own_key") else None
            for store in node.stores:
                topics_of[store] = _union([topics_of[store], own])
    return {store: topics for store, topics in topics_of.items() if topics}


class _Reads(Protocol):
    """The columns that a node's function or condition reads from its records."""

    def check(self, logs: Mapping[str, Any]) -> None:
        """Raise `ConfigError` if the records lack a column that is read. ``logs`` maps a topic to its key and value shapes."""
        ...


def _describe_node(node: Node) -> dict[str, Any]:
    described: dict[str, Any] = {"name": node.name, "parents": list(node.parents)}
    if isinstance(node, ProcessorNode):
        described |= {"processor": describe_supplier(node.supplier), "stores": list(node.stores)}
        if node.holds_ms:
            described["holds_ms"] = node.holds_ms
    elif isinstance(node, SinkNode):
        described |= {"sink": node.topic, "key": _type_name(node.key), "value": _type_name(node.value)}
        if node.partitioner is not None:
            described["partitioner"] = describe_supplier(node.partitioner)
    elif isinstance(node, SourceNode):
        described |= {"source": node.topic}
    if isinstance(node, SourceNode | SinkNode) and node.is_global:
        described["is_global"] = True
    return described


def _timed_nodes(part: SubTopology) -> Iterator[TimedNode]:
    topics = tuple(sorted(source.topic for source in part.sources))
    for node in part.nodes:
        for timing in timings_of(getattr(node, "supplier", None)):
            above = _windows_above(part, node)
            yield TimedNode(
                node.name,
                part.index,
                timing.store,
                part.kind_of(timing.store),
                timing.final_after_ms,
                dict(timing.durations),
                timing.sends_nulls,
                topics,
                {} if timing.final_after_ms is None or above is None else dict(above.durations),
                timing.calendar,
                "" if timing.final_after_ms is None or above is None else above.zone,
            )


def _windows_above(part: SubTopology, node: Node) -> Timing | None:
    """Return the timing of a node's windows or, if it has none, of the nearest windowed aggregate above; None if none."""
    nodes, due = {above.name: above for above in part.nodes}, [node]
    while due:
        above = due.pop()
        for timing in timings_of(getattr(above, "supplier", None)):
            if part.kind_of(timing.store) in (WINDOW, SESSION):
                return timing
        due += [nodes[parent] for parent in above.parents if parent in nodes]
    return None


def _describe_store(store: StoreBuilder) -> dict[str, Any]:
    return {
        "name": store.name,
        "kind": store.kind,
        "key": _type_name(store.key),
        "value": _type_name(store.value),
        "window_size_ms": store.window_size_ms,
        "retention_ms": store.retention_ms,
    }


def _type_name(declared: Any) -> str:
    if declared is None:
        return "json"
    return declared.__name__ if isinstance(declared, type) else str(declared)


def _call_line() -> str:
    """Return ``file:line`` of the innermost caller outside rewindow; empty if there is no such caller."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _connected(nodes: Collection[Node]) -> list[list[Node]]:
    """Return groups of nodes that edges or stores connect. Each group also has the nodes of the global tables that it reads."""
    tables = _global_tables(nodes)
    shared = {name for names in tables.values() for name in names}
    groups = _group_nodes([node for node in nodes if node.name not in shared], tables)
    read = [{store for node in group for store in _stores(node)} for group in groups]
    unread = [store for store in tables if not any(store in stores for stores in read)]
    groups_in_order = []
    for group, stores in [*zip(groups, read, strict=True), *(([], {store}) for store in unread)]:
        names = {node.name for node in group}.union(*(tables[store] for store in tables if store in stores))
        groups_in_order.append([node for node in nodes if node.name in names])
    return groups_in_order


def _global_tables(nodes: Collection[Node]) -> dict[str, tuple[str, ...]]:
    """Return, for each store of a global table, the names of the table's source and of the node that maintains the store."""
    sources = {node.name for node in nodes if isinstance(node, SourceNode) and node.is_global}
    owners = [node for node in nodes if isinstance(node, ProcessorNode) and sources.intersection(node.parents)]
    return {store: (*node.parents, node.name) for node in owners for store in node.stores}


def _check_global_tables(nodes: Collection[Node]) -> None:
    """Raise `TopologyError` for a node that could change a global table, because the table's copies in the tasks would differ."""
    tables = _global_tables(nodes)
    for node in nodes:
        for store in _stores(node):
            if store in tables and node.name not in tables[store] and not _declares(node, "only_reads"):
                raise TopologyError(
                    "global-table-store-shared",
                    "node {node!r} uses the store {store!r} of a global table, which only joins with that table "
                    "read: give the node a store of its own",
                    node=node.name,
                    store=store,
                )


def _stores(node: Node) -> tuple[str, ...]:
    return node.stores if isinstance(node, ProcessorNode) else ()


def _group_nodes(nodes: Collection[Node], excluded: Collection[str]) -> list[list[Node]]:
    """Return groups of nodes that are connected by edges or by stores other than the ``excluded`` stores."""
    group_of: dict[str, int] = {}

    def join(left: str, right: str) -> None:
        low, high = sorted((group_of[left], group_of[right]))
        for member, group in group_of.items():
            if group == high:
                group_of[member] = low

    users: dict[str, str] = {}
    for number, node in enumerate(nodes):
        group_of[node.name] = number
        for parent in node.parents:
            join(parent, node.name)
        for store in (store for store in _stores(node) if store not in excluded):
            join(users.setdefault(store, node.name), node.name)
    return [[node for node in nodes if group_of[node.name] == group] for group in dict.fromkeys(group_of.values())]


def _in_run_order(parts: list[list[Node]]) -> list[list[Node]]:
    """Order the parts so that an internal topic is written before it is read. Raises `TopologyError` for a cycle."""
    ordered: list[list[Node]] = []
    waiting = parts
    while waiting:
        unwritten = {node.topic for part in waiting for node in part if isinstance(node, SinkNode) and node.is_internal}
        ready = [part for part in waiting if not any(isinstance(n, SourceNode) and n.topic in unwritten for n in part)]
        if not ready:
            raise TopologyError(
                "repartitions-form-cycle",
                "the repartitions {repartitions} form a cycle, but a run processes sub-topologies one after the "
                "other: send each stream that is joined below them through its own .repartition(name=...)",
                repartitions=", ".join(sorted(unwritten)),
            )
        ordered.append(ready[0])
        waiting = [part for part in waiting if part is not ready[0]]
    return ordered


def _node_lags(topology: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return each node's lag: for how many ms its ancestors may hold results back. The path with the largest lag counts."""
    internal = _internal_topics(topology)
    lags: dict[str, int] = {}
    below: dict[str, int] = {}
    written: dict[str, int] = {}
    for part in topology:
        for node in part["nodes"]:
            name, topic = node["name"], node.get("source")
            if topic is None:
                lags[name] = max(below[parent] for parent in node["parents"])
            else:
                lags[name] = written.get(topic, 0) if topic in internal else 0
            below[name] = lags[name] + node.get("holds_ms", 0)
            if "sink" in node:
                written[node["sink"]] = max(written.get(node["sink"], 0), lags[name])
    return lags


def _internal_topics(topology: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the topics between sub-topologies."""
    # The name of an output may end with the same suffix, but no source of this topology reads an output.
    read = [node["source"] for part in topology for node in part["nodes"] if node.get("source") is not None]
    return frozenset(topic for topic in read if topic.endswith((REPARTITION_SUFFIX, _GLOBAL_SUFFIX)))


def _declares(node: Node, declaration: str) -> bool:
    return isinstance(node, ProcessorNode) and getattr(node.supplier, declaration, False) is True


def _union(some: list[_Topics | None]) -> _Topics | None:
    certain = [topics for topics in some if topics is not None]
    return frozenset().union(*certain) if len(certain) == len(some) else None


def _named_twice(kind: str, name: str) -> TopologyError:
    return TopologyError(
        "named-twice", "two {kind} are called {name!r}: change a `name=` or `store=`", kind=kind, name=name
    )
