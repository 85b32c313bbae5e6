"""The nodes of a scenario. Records pass through them depth first, in the order in which children were attached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tests.oracle.cogroups import CogroupedRows, CogroupedSessions, CogroupedSliding, CogroupedWindows
from tests.oracle.joins import StreamStreamJoin
from tests.oracle.lookups import ForeignKeyJoin, GlobalTableJoin, StreamTableJoin, TableTableJoin
from tests.oracle.nodes import Node, Origin, SelectKey, Setting, Source, StreamFilter, StreamMap, ToStream
from tests.oracle.olds import tables_that_send_old_values
from tests.oracle.queues import LARGEST
from tests.oracle.repartitions import answer_topic, keyed_repartitions, repartition_topic
from tests.oracle.rules import Rules
from tests.oracle.scripts import Clock, Message, ScriptError, ScriptNode
from tests.oracle.sessions import SessionAggregate
from tests.oracle.sliding import SlidingAggregate
from tests.oracle.suppress import Suppress, as_written
from tests.oracle.tables import StreamAggregate, TableAggregate, TableMap, TableSource, TableTransform, regrouped
from tests.oracle.vocabulary import key_selector, routed
from tests.oracle.watermarks import lag
from tests.oracle.windows import WindowAggregate

OPERATORS = {
    "filter": StreamFilter,
    "map_values": StreamMap,
    "select_key": SelectKey,
    "merge": Source,
    "repartition": Source,
    "to_stream": ToStream,
    "to_table": TableSource,
    "suppress": Suppress,
    "transform_values": TableTransform,
    "stream_stream_join": StreamStreamJoin,
    "stream_table_join": StreamTableJoin,
    "table_table_join": TableTableJoin,
    "global_table_join": GlobalTableJoin,
    "foreign_key_join": ForeignKeyJoin,
}
WINDOWED = {"sliding": SlidingAggregate, "session": SessionAggregate}
COGROUPED = {None: CogroupedRows, "sliding": CogroupedSliding, "session": CogroupedSessions}
TABLES = (
    *(TableSource, TableMap, TableTransform, StreamAggregate, WindowAggregate, SessionAggregate),
    *(Suppress, TableTableJoin, ForeignKeyJoin),
)


class NotCoveredError(Exception):
    """The twin does not implement an operator."""


class ScriptedNode(Node):
    """A processor node, which runs a script."""

    def __init__(self, setting: Setting, script: ScriptNode) -> None:
        super().__init__(setting)
        self.script = script

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        self.script.process(message)


class Graph:
    """All nodes, their children, and the records sent to sinks."""

    def __init__(
        self,
        scenario: Mapping[str, Any],
        rules: Rules,
        origin: Origin,
        clocks_of: Mapping[str, Mapping[str, Clock]],
        enqueue: Callable[[str, Message], None],
    ) -> None:
        self._rules, self._origin, self._clocks_of, self._enqueue = rules, origin, clocks_of, enqueue
        self._in_memory = scenario.get("config", {}).get("store") == "in_memory"
        self._sends_old = tables_that_send_old_values(scenario)
        self._specs = {node["name"]: node for node in scenario["nodes"]}
        self._with_finals = self._above_finals(scenario["nodes"])
        self._keyed = keyed_repartitions(scenario["nodes"])
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, list[tuple[str, Callable[[Message], None]]]] = {}
        self._sent: list[dict[str, Any]] = []
        for source in scenario["sources"]:
            spec = {**source, "op": "source", "in": []}
            self._put(spec, TableSource if source["kind"] in ("table", "global") else Source, [])
        for node in scenario["nodes"]:
            if node["op"] not in ("group_by", "group_by_key", "cogroup", "window"):
                self._add(node)
        for sink in scenario["sinks"]:
            self._children[sink["in"]].append((sink["name"], self._sink(sink)))

    def start(self) -> None:
        """Run the ``on_init`` actions of the processors."""
        for node in self._nodes.values():
            if isinstance(node, ScriptedNode):
                node.script.start()

    def send_on(self, name: str, message: Message) -> None:
        """Process a message of a topic."""
        if name in self._nodes:
            self._nodes[name].take(message, 0)
        else:
            self._forward(name, message)

    def take_watermark(self, names: list[str], watermark: int) -> None:
        """Pass the watermark, lowered by each node's lag, to the nodes of a task, upstream first."""
        for name in names:
            node = self._nodes.get(name)
            lowered = watermark if node is None or watermark == LARGEST else watermark - lag(node)
            if node is not None and lowered >= 0:
                node.take_watermark(lowered)

    def read_sent(self) -> list[dict[str, Any]]:
        """Return what was sent since the last call."""
        sent, self._sent = self._sent, []
        return sent

    def buffers(self) -> dict[str, dict[str, Any]]:
        """Return the content of each suppress buffer."""
        held = {name: node for name, node in self._nodes.items() if isinstance(node, Suppress)}
        return {name: {"entries": node.entries(), "bytes": node.size()} for name, node in held.items()}

    def stores(self) -> dict[str, list[dict[str, Any]]]:
        """Return the content of each store."""
        stores = {}
        for name, node in self._nodes.items():
            if isinstance(node, ScriptedNode) and "store" in node.setting.spec:
                rows = node.script.store.items()
                stores[node.setting.spec["store"]] = [{"key": key, "value": value} for key, value in rows]
            if isinstance(node, TableTransform) and node.calls is not None:
                rows = node.calls.items()
                stores[node.setting.spec["store"]] = [{"key": key, "value": value} for key, value in rows]
            contents = node.contents()
            if contents is not None:
                stores[name] = contents
        return stores

    def _forward(self, name: str, message: Message, to: str | None = None) -> None:
        children = [child for child in self._children[name] if to is None or child[0] == to]
        if to is not None and not children:
            raise ScriptError(to)
        for _, handler in children:
            handler(message)

    @staticmethod
    def _take(node: Node, side: int, message: Message) -> None:
        node.take(message, side)

    def _sink(self, spec: Mapping[str, Any]) -> Callable[[Message], None]:
        topic_of = routed(spec) if "route" in spec else lambda _key, _value: spec["name"]

        def send(message: Message) -> None:
            key, value, timestamp = message
            new = value[0] if isinstance(value, tuple) else value
            self._sent.append({"sink": topic_of(key, new), "key": as_written(key), "value": new, "ts": timestamp})

        return send

    def _put(self, spec: Mapping[str, Any], kind: type[Node], parents: list[str]) -> Node:
        name = spec["name"]
        above = [self._nodes[parent] for parent in parents]
        setting = Setting(
            spec,
            above,
            partial(self._enqueue, answer_topic(name)) if kind is ForeignKeyJoin else partial(self._forward, name),
            self._rules,
            self._origin,
            self._windows(spec),
            name in self._sends_old,
            self._in_memory,
            self._cogroup(spec),
            name in self._with_finals,
        )
        self._children[name] = []
        if kind is ForeignKeyJoin:
            self._children[answer_topic(name)] = self._children[name]
        self._nodes[name] = self._scripted(setting) if kind is ScriptedNode else kind(setting)
        return self._nodes[name]

    def _scripted(self, setting: Setting) -> ScriptedNode:
        name = setting.spec["name"]
        script = ScriptNode(
            setting.spec, self._clocks_of[name], lambda message, to: self._forward(name, message, to), self._rules
        )
        return ScriptedNode(setting, script)

    def _add(self, spec: Mapping[str, Any]) -> None:
        name, op = spec["name"], spec["op"]
        groupings = self._groupings(spec) if op == "aggregate" else []
        parents = [one["in"] for one in groupings] or (spec["in"] if isinstance(spec["in"], list) else [spec["in"]])
        cogroup = self._cogroup(spec)
        is_table = isinstance(self._nodes[parents[0]], TABLES)
        node = self._put(spec, self._kind(spec, is_table=is_table), parents)
        for side, parent in enumerate(parents):
            handler = partial(self._take, node, side)
            grouping = groupings[side] if groupings else {}
            topic = repartition_topic(cogroup["name"] if cogroup else name, side)
            if topic not in self._clocks_of and grouping and is_table:
                topic = repartition_topic(grouping["name"], side)
            if topic not in self._clocks_of:
                self._children[parent].append((name, handler))
                continue
            if topic not in self._children:
                self._children[topic] = []
                cross = self._crossing(
                    topic, grouping, is_table=is_table, keeps_null=op != "aggregate" and name not in self._keyed
                )
                self._children[parent].append((topic, cross))
            self._children[topic].append((name, handler))

    def _kind(self, spec: Mapping[str, Any], *, is_table: bool) -> type[Node]:
        op = spec["op"]
        if op == "processor":
            return ScriptedNode
        if op == "aggregate":
            windows = self._windows(spec)
            if self._cogroup(spec) is not None:
                return COGROUPED.get(windows["type"] if windows else None, CogroupedWindows)
            if windows is None:
                return TableAggregate if is_table else StreamAggregate
            return WINDOWED.get(windows["type"], WindowAggregate)
        if op in ("filter", "map_values") and is_table:
            return TableMap
        if op not in OPERATORS:
            raise NotCoveredError(op)
        return OPERATORS[op]

    def _crossing(
        self, topic: str, grouping: Mapping[str, Any], *, is_table: bool, keeps_null: bool
    ) -> Callable[[Message], None]:
        """Return a function that sends records to a repartition topic. Null keys cross only in front of a join."""

        def cross(message: Message) -> None:
            key, value, timestamp = message
            if "by" not in grouping:
                messages = [message]
            elif is_table:
                messages = regrouped(grouping["by"], message)
            else:
                messages = [(key_selector(grouping["by"])(key, value), value, timestamp)]
            for one in messages:
                if one[0] is not None or keeps_null:
                    self._enqueue(topic, one)

        return cross

    def _groupings(self, spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the nodes that group the streams of an aggregate: several, if it is of a cogroup."""
        while spec["op"] not in ("group_by", "group_by_key", "cogroup"):
            spec = self._specs[spec["in"]]
        return [self._specs[one] for one in spec["in"]] if spec["op"] == "cogroup" else [spec]

    def _cogroup(self, spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
        while spec["op"] in ("aggregate", "window"):
            spec = self._specs[spec["in"]]
        return spec if spec["op"] == "cogroup" else None

    def _above_finals(self, nodes: list[Mapping[str, Any]]) -> set[str]:
        """Return the aggregates that emit on close, and all nodes above them or above a suppress that sends finals only."""
        found = {node["name"] for node in nodes if (self._windows(node) or {}).get("emit") == "window_close"}
        for node in reversed(nodes):
            if node["name"] in found or node.get("until") == "window_closes":
                above = node["in"] if isinstance(node["in"], list) else [node["in"]]
                found |= {one for one in above if one in self._specs}
        return found

    def _windows(self, spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if spec["op"] != "aggregate":
            return None
        above = self._specs[spec["in"]]
        return above if above["op"] == "window" else None
