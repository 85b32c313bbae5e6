"""A driver scenario, played by definition: nodes are functions, a task is a list of queues and two clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rewindow.core.record import Windowed
from rewindow.testing.naive.cuts import cut_at_repartitions
from rewindow.testing.naive.queues import Queues
from rewindow.testing.naive.rules import Rules
from rewindow.testing.naive.scripts import STREAM, WALL, Clock, Message, ScriptError, ScriptNode
from rewindow.testing.naive.tables import Aggregate, UntilWindowCloses
from rewindow.testing.vocabulary import key_selector, predicate, value_mapper

Handler = Callable[[Message], None]


class NotCoveredError(Exception):
    """An operator that the twin does not know."""


@dataclass
class Result:
    """What each step sent, what the stores hold, and the step of an error (-1: while building)."""

    steps: list[list[dict[str, Any]]] = field(default_factory=list)
    error_step: int | None = None
    stores: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


@dataclass
class TwinTask:
    """One sub-topology: its topics in order, what waits in them, its clocks and the names of its nodes."""

    topics: list[str]
    queues: Queues
    clocks: dict[str, Clock]
    names: list[str]


def play(scenario: Mapping[str, Any], rules: Rules) -> Result:
    """Play a scenario under some rules. Raises `NotCoveredError` for an operator that is not here."""
    return _Twin(scenario, rules).result


class _Twin:
    def __init__(self, scenario: Mapping[str, Any], rules: Rules) -> None:
        config = scenario.get("config", {})
        self._rules = rules
        self._children: dict[str, list[tuple[str, Handler]]] = {}
        self._scripts: dict[str, ScriptNode] = {}
        self._aggregates: dict[str, Aggregate] = {}
        self._nodes = {node["name"]: node for node in scenario["nodes"]}
        self._sent: list[dict[str, Any]] = []
        self._offset = 0
        self.result = Result()
        self._tasks = [
            TwinTask(
                part.topics,
                Queues(len(part.topics), config.get("max_task_idle_ms", 0), rules, lag=0),
                {STREAM: Clock(-1, rules), WALL: Clock(config.get("wall_clock", 0), rules)},
                part.names,
            )
            for part in cut_at_repartitions(scenario, is_one_task=rules.follow_kafka("D21"))
        ]
        self._task_of = {name: task for task in self._tasks for name in task.names}
        for source in scenario["sources"]:
            self._children[source["name"]] = []
            if source["kind"] == "table":
                raise NotCoveredError("table")
        for node in scenario["nodes"]:
            self._children[node["name"]] = []
            self._add(node)
        for sink in scenario["sinks"]:
            self._attach(sink["in"], sink["name"], self._sink(sink["name"]))
        try:
            for script in self._scripts.values():
                script.start()
        except ScriptError:
            self.result.error_step = -1
            return
        self._play(scenario["steps"])
        self.result.stores = self._stores()

    def _play(self, steps: list[Mapping[str, Any]]) -> None:
        for number, step in enumerate(steps):
            self._sent = []
            self.result.steps.append(self._sent)
            try:
                self._take(step)
            except (ScriptError, ValueError):
                self.result.error_step = number
                return

    def _take(self, step: Mapping[str, Any]) -> None:
        if "advance_wall_clock" in step:
            for task in self._tasks:
                task.clocks[WALL].now += step["advance_wall_clock"]
                task.clocks[WALL].fire_due()
        elif "pipe" in step:
            self._enqueue(step["pipe"], (step["key"], step["value"], step["ts"]))
        else:
            for one in step["batch"]:
                self._enqueue(one["topic"], (one["key"], one["value"], one["ts"]))
        while any(self._process_one(task) for task in reversed(self._tasks)):
            pass

    def _process_one(self, task: TwinTask) -> bool:
        if not task.queues.size() or not task.queues.is_ready(task.clocks[WALL].now):
            return False
        taken = task.queues.take()
        assert taken is not None
        stream = task.clocks[STREAM]
        stream.now = max(stream.now, taken[2])
        self._send_on(task.topics[taken[0]], taken[3], None)
        stream.fire_due()
        return True

    def _enqueue(self, topic: str, message: Message) -> None:
        task = self._task_of[topic]
        task.queues.add(task.topics.index(topic), [(self._offset, message[2], message)])
        self._offset += 1

    def _send_on(self, name: str, message: Message, to: str | None) -> None:
        children = self._children[name]
        if to is not None:
            children = [child for child in children if child[0] == to]
            if not children:
                raise ScriptError(to)
        for _, handler in children:
            handler(message)

    def _attach(self, parent: str, name: str, handler: Handler) -> None:
        self._children[parent].append((name, handler))

    def _sink(self, name: str) -> Handler:
        def send(message: Message) -> None:
            key, value, timestamp = message
            if isinstance(key, Windowed):
                key = {"key": key.key, "start": key.window.start_ms, "end": key.window.end_ms}
            new = value[0] if isinstance(value, tuple) else value
            self._sent.append({"sink": name, "key": key, "value": new, "ts": timestamp})

        return send

    def _add(self, node: Mapping[str, Any]) -> None:
        name, op = node["name"], node["op"]
        if op in ("group_by", "group_by_key", "window"):
            return
        make = getattr(self, f"_make_{op}", None)
        if make is None:
            raise NotCoveredError(op)
        handler = make(node, lambda message: self._send_on(name, message, None))
        parents = node["in"] if isinstance(node["in"], list) else [node["in"]]
        if op == "aggregate":
            self._attach_aggregate(node, handler)
        else:
            for parent in parents:
                self._attach(parent, name, handler)

    def _attach_aggregate(self, node: Mapping[str, Any], handler: Handler) -> None:
        grouped = self._grouping(node)
        name = node["name"]
        topic = f"{name}-repartition"
        if topic not in self._task_of:
            self._attach(grouped["in"], name, handler)
            return
        select = key_selector(grouped["by"]) if grouped["op"] == "group_by" else lambda key, _value: key
        self._children[topic] = [(name, handler)]

        def cross(message: Message) -> None:
            key = select(message[0], message[1])
            if key is not None:
                self._enqueue(topic, (key, message[1], message[2]))

        self._attach(grouped["in"], name, cross)

    def _grouping(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        while node["op"] not in ("group_by", "group_by_key"):
            node = self._nodes[node["in"]]
        return node

    def _make_filter(self, node: Mapping[str, Any], forward: Handler) -> Handler:
        test = predicate(node["pred"])

        def handle(message: Message) -> None:
            key, value, timestamp = message
            if isinstance(value, tuple):
                new, old = (one if one is not None and test(one) else None for one in value)
                if new is not None or old is not None:
                    forward((key, (new, old), timestamp))
            elif test(value):
                forward(message)

        return handle

    def _make_map_values(self, node: Mapping[str, Any], forward: Handler) -> Handler:
        mapper = value_mapper(node["fn"])

        def handle(message: Message) -> None:
            key, value, timestamp = message
            mapped = (mapper(value[0]), mapper(value[1])) if isinstance(value, tuple) else mapper(value)
            forward((key, mapped, timestamp))

        return handle

    def _make_select_key(self, node: Mapping[str, Any], forward: Handler) -> Handler:
        select = key_selector(node["by"])
        return lambda message: forward((select(message[0], message[1]), message[1], message[2]))

    def _make_merge(self, _node: Mapping[str, Any], forward: Handler) -> Handler:
        return forward

    def _make_to_stream(self, _node: Mapping[str, Any], forward: Handler) -> Handler:
        return lambda message: forward((message[0], message[1][0], message[2]))

    def _make_processor(self, node: Mapping[str, Any], _forward: Handler) -> Handler:
        name = node["name"]
        script = ScriptNode(
            node, self._task_of[name].clocks, lambda message, to: self._send_on(name, message, to), self._rules
        )
        self._scripts[name] = script
        return script.process

    def _make_aggregate(self, node: Mapping[str, Any], forward: Handler) -> Handler:
        windows = self._windows(node)
        if "retention" in node or self._nodes[node["in"]].get("emit", "update") != "update":
            raise NotCoveredError("retention or emit on close")
        if windows is not None and windows["type"] not in ("tumbling", "hopping"):
            raise NotCoveredError(f"window {windows['type']}")
        aggregate = self._aggregates[node["name"]] = Aggregate(node["fn"], windows, forward)
        return aggregate.process

    def _make_suppress(self, node: Mapping[str, Any], forward: Handler) -> Handler:
        if node["until"] != "window_closes" or node.get("buffer"):
            raise NotCoveredError("suppress")
        windows = self._windows(node)
        assert windows is not None
        return UntilWindowCloses(windows["grace"], forward).process

    def _windows(self, node: Mapping[str, Any]) -> Mapping[str, Any] | None:
        while node["op"] not in ("group_by", "group_by_key"):
            if node["op"] == "window":
                return node
            node = self._nodes[node["in"]]
        return None

    def _stores(self) -> dict[str, list[dict[str, Any]]]:
        stores = {
            node["store"]: [{"key": key, "value": value} for key, value in self._scripts[name].store.items()]
            for name, node in self._nodes.items()
            if node["op"] == "processor" and "store" in node
        }
        for name, aggregate in self._aggregates.items():
            stores[name] = [
                {
                    "key": {"key": key.key, "start": key.window.start_ms} if isinstance(key, Windowed) else key,
                    "value": value,
                    "ts": timestamp,
                }
                for key, (value, timestamp) in aggregate.contents().items()
            ]
        return stores
