"""Play a driver scenario with the naive twin: a task is a list of queues and two clocks in front of a graph of nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.graph import Graph, NotCoveredError
from tests.oracle.nodes import Origin
from tests.oracle.partitions import each_partition
from tests.oracle.queues import Queues
from tests.oracle.repartitions import Part, cut_at_repartitions
from tests.oracle.rules import Rules
from tests.oracle.scripts import STREAM, WALL, Clock, Message, ScriptError

APPLICATION = "oracle"
"""The recording application's id. Names of Kafka's internal topics start with it, and buffers count their bytes."""

Rows = list[dict[str, Any]]


@dataclass
class Result:
    """The result of a scenario.

    ``steps`` and ``buffers``: what each step sent, and what was then buffered. ``error_step``: -1 means while building.
    """

    init: Rows = field(default_factory=list)
    steps: list[Rows] = field(default_factory=list)
    buffers: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    error_step: int | None = None
    stores: dict[str, Rows] = field(default_factory=dict)


class TwinTask:
    """One sub-topology: its topics in order, their queues, and its clocks."""

    def __init__(self, part: Part, config: Mapping[str, Any], rules: Rules) -> None:
        self.topics, self.names = part.topics, part.names
        self.queues = Queues(len(part.topics), config.get("max_task_idle_ms", 0), rules, lag=0)
        self.clocks = {STREAM: Clock(-1, rules), WALL: Clock(config.get("wall_clock", 0), rules)}


def play(scenario: Mapping[str, Any], rules: Rules) -> Result:
    """Play a scenario under these rules. Raises `NotCoveredError` for what the twin does not know."""
    if any(source.keys() & {"history", "extractor"} for source in scenario["sources"]):
        raise NotCoveredError("versioned tables and extractors")
    if '"do": "forward_headers"' in json.dumps(scenario["nodes"]):
        raise NotCoveredError("headers")
    records = [one for step in scenario["steps"] for one in step.get("batch", [step])]
    if any(isinstance(one.get("key"), list) for one in records):
        raise NotCoveredError("composite keys")
    words, text = {node["op"] for node in scenario["nodes"]}, json.dumps(scenario["nodes"])
    waits = scenario.get("config", {}).get("max_task_idle_ms", 0) > 0
    if "foreign_key_join" in words and (waits or "processor" in words or '"max_bytes"' in text):
        raise NotCoveredError("the tasks of a foreign-key join, and the topics between them")
    if scenario.get("config", {}).get("partitions", 1) == 1:
        return _Twin(scenario, rules).result
    sources = {source["name"] for source in scenario["sources"]}
    if "foreign_key_join" in words or not sources.issuperset(
        topic for part in cut_at_repartitions(scenario, is_one_task=False) for topic in part.topics
    ):
        raise NotCoveredError("a repartition of several partitions")
    return _together([_Twin(one, rules).result for one in each_partition(scenario)])


def _together(results: list[Result]) -> Result:
    steps = [[row for rows in step for row in rows] for step in zip(*(one.steps for one in results), strict=False)]
    stores = {name: [row for one in results for row in one.stores.get(name, ())] for name in results[0].stores}
    errors = [one.error_step for one in results if one.error_step is not None]
    no_buffers: list[dict[str, Any]] = [{} for _ in steps]
    return Result([row for one in results for row in one.init], steps, no_buffers, min(errors, default=None), stores)


class _Twin:
    def __init__(self, scenario: Mapping[str, Any], rules: Rules) -> None:
        config = scenario.get("config", {})
        self.result = Result()
        self._offset = 0
        self._follows_records = config.get("clock") == "records"
        self._origin = Origin()
        is_one_task = rules.follow_kafka("D21") and config.get("tasks") != "separate"
        parts = cut_at_repartitions(scenario, is_one_task=is_one_task)
        sources = {source["name"] for source in scenario["sources"]}
        topics = {topic for part in parts for topic in part.topics}
        self._short_names = sources if rules.follow_kafka("D24") else topics
        self._tasks = [TwinTask(part, config, rules) for part in parts]
        self._task_of = {name: task for part, task in zip(parts, self._tasks, strict=True) for name in part.names}
        clocks_of = {name: task.clocks for name, task in self._task_of.items()}
        try:
            self._graph = Graph(scenario, rules, self._origin, clocks_of, self._enqueue)
            self._graph.start()
        except ScriptError:
            self.result.error_step = -1
            return
        self.result.init = self._graph.read_sent()
        self._play(scenario["steps"])
        self.result.stores = self._graph.stores()

    def _play(self, steps: list[Mapping[str, Any]]) -> None:
        for number, step in enumerate(steps):
            try:
                self._take(step)
            except (ScriptError, ValueError):
                self.result.error_step = number
            self.result.steps.append(self._graph.read_sent())
            self.result.buffers.append(self._graph.buffers())
            if self.result.error_step is not None:
                return

    def _take(self, step: Mapping[str, Any]) -> None:
        if self._follows_records:
            self._advance_to(max([-1, *(one["ts"] for one in step.get("batch", [step]))]))
        if "watermark" in step:
            self._end_epoch(step["watermark"])
        elif "advance_wall_clock" in step:
            self._origin.topic = ""
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

    def _advance_to(self, time: int) -> None:
        """Advance the wall clock with the records, so that each punctuation fires when it is due."""
        for task in self._tasks:
            while task.clocks[WALL].now < time:
                self._origin.topic = ""
                task.clocks[WALL].now += 1
                task.clocks[WALL].fire_due()

    def _process_one(self, task: TwinTask) -> bool:
        if not task.queues.size() or not task.queues.is_ready(task.clocks[WALL].now):
            return False
        self._process(task)
        return True

    def _process(self, task: TwinTask) -> None:
        taken = task.queues.take()
        assert taken is not None
        at, _, timestamp, message = taken
        stream = task.clocks[STREAM]
        stream.now = max(stream.now, timestamp)
        topic = task.topics[at]
        self._origin.topic = topic if topic in self._short_names else f"{APPLICATION}-{topic}"
        self._graph.send_on(topic, message)
        stream.fire_due()

    def _end_epoch(self, watermark: int) -> None:
        """End the epoch of each task, upstream first: it processes all that is queued, then the watermark.

        The largest time means the end of the input.
        """
        self._origin.topic = ""
        for task in self._tasks:
            while task.queues.size():
                self._process(task)
            self._graph.take_watermark(task.names, watermark)

    def _enqueue(self, topic: str, message: Message) -> None:
        task = self._task_of[topic]
        task.queues.add(task.topics.index(topic), [(self._offset, message[2], message)])
        self._offset += 1
