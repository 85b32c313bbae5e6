"""The processor node of a scenario, and its schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.heap import Queue
from tests.oracle.rules import Rules
from tests.oracle.vocabulary import predicate

STREAM, WALL = "STREAM_TIME", "WALL_CLOCK_TIME"
Message = tuple[Any, Any, int]
"""Key, value, timestamp."""


class ScriptError(Exception):
    """An error that ends a scenario, such as a script that throws, an unknown child or a negative timestamp."""


@dataclass
class Planned:
    """One schedule: when it is next due, and whether it was cancelled."""

    number: int
    due: int
    interval: int
    fire: Callable[[int], None]
    is_cancelled: bool = False
    counts_from_first: bool = False
    """Whether the intervals count from its first firing, not from 0 (D2)."""


class Clock:
    """A clock and its schedules."""

    def __init__(self, now: int, rules: Rules) -> None:
        self.now = now
        self.made = 0
        self._planned: Queue[Planned] = Queue(
            lambda one: one.due, lambda one: one.number, is_java=rules.follow_kafka("D6")
        )

    def plan(self, due: int, interval: int, fire: Callable[[int], None]) -> Planned:
        """Add a schedule."""
        planned = Planned(self.made, due, interval, fire)
        self.made += 1
        self._planned.push(planned)
        return planned

    def fire_due(self) -> None:
        """Fire the schedules that are due, at the current time. A jump over several intervals fires a schedule once."""
        while (planned := self._planned.first()) is not None and planned.due <= self.now:
            self._planned.pop()
            if planned.is_cancelled:
                continue
            if planned.counts_from_first:
                planned.due, planned.counts_from_first = self.now, False
            planned.fire(self.now)
            if not planned.is_cancelled:
                while planned.due <= self.now:
                    planned.due += planned.interval
                self._planned.push(planned)


class ScriptNode:
    """Runs the actions of one processor node."""

    def __init__(
        self,
        node: Mapping[str, Any],
        clocks: Mapping[str, Clock],
        forward: Callable[[Message, str | None], None],
        rules: Rules,
    ) -> None:
        self._node = node
        self._clocks = clocks
        self._forward = forward
        self._is_due_at_once = rules.follow_kafka("D2")
        self._handles: dict[str, Planned] = {}
        self.store: dict[Any, Any] = {}

    def start(self) -> None:
        """Run ``on_init``."""
        self._run(self._node.get("on_init", []), (None, None, -1))

    def process(self, message: Message) -> None:
        """Run ``on_record``."""
        self._run(self._node.get("on_record", [{"do": "forward"}]), message)

    def _punctuate(self, id_: str, now: int) -> None:
        actions = self._node.get("on_punctuate", {}).get(id_, [{"do": "forward"}])
        self._run(actions, (id_, f"{id_}@{now}", now))

    def _run(self, actions: list[Mapping[str, Any]], message: Message) -> None:
        key, value, timestamp = message
        for action in actions:
            do = action["do"]
            if key is None and do in ("forward_count", "store_count", "store_put", "store_delete"):
                raise ScriptError("a store has no null key")
            if do == "forward":
                self._send(action, message)
            elif do == "forward_times":
                times = f"ts={timestamp},stream={self._clocks[STREAM].now},system={self._clocks[WALL].now}"
                self._send(action, (key, times, timestamp))
            elif do == "forward_count":
                self._send(action, (key, self.store.get(key), timestamp))
            elif do == "forward_store_all":
                for stored, number in sorted(self.store.items(), key=lambda item: item[0].encode()):
                    self._send(action, (stored, number, timestamp))
                    if action.get("clear"):
                        del self.store[stored]
            elif do == "store_count":
                self.store[key] = self.store.get(key, 0) + 1
            elif do == "store_put":
                self.store[key] = action.get("value", value)
            elif do == "store_delete":
                self.store.pop(key, None)
            elif do == "schedule":
                self._handles[action["id"]] = self._schedule(action)
            elif do == "cancel":
                if action["id"] in self._handles:
                    self._handles[action["id"]].is_cancelled = True
            elif do == "if":
                self._run(action.get("then" if predicate(action["pred"])(value) else "else", []), message)
            else:
                raise ScriptError(do)

    def _send(self, action: Mapping[str, Any], message: Message) -> None:
        key, value, timestamp = message
        timestamp = action.get("ts_set", timestamp + action.get("ts_add", 0))
        if timestamp < 0:
            message_text = f"timestamp {timestamp}"
            raise ScriptError(message_text)
        self._forward((action.get("key", key), action.get("value", value), timestamp), action.get("to"))

    def _schedule(self, action: Mapping[str, Any]) -> Planned:
        clock, interval, start = self._clocks[action["type"]], action["interval"], action.get("start")
        if interval < 1 or (start is not None and start < 0):
            message = f"interval {interval}, start {start}"
            raise ScriptError(message)
        if start is not None:
            due = start
            while due < clock.now or (due == clock.now and due != start):
                due += interval
        elif action["type"] == STREAM and (clock.now == -1 or self._is_due_at_once):
            due = 0
        else:
            due = clock.now + interval
        planned = clock.plan(due, interval, lambda now: self._punctuate(action["id"], now))
        planned.counts_from_first = not (self._is_due_at_once or action.get("aligned", True) or clock.now >= 0)
        return planned
