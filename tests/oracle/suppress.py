"""Suppress (KIP-328): a buffer holds one update per key until a time limit passes or the buffer is full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewindow.streams.record import Windowed
from tests.oracle.memory import Entry, key_bytes
from tests.oracle.nodes import Node, Setting
from tests.oracle.queues import LARGEST
from tests.oracle.scripts import Message, ScriptError

UNKNOWN = -1


@dataclass
class Held:
    """The buffered update of a key.

    ``since``: its buffer time; ``prior``: the value sent before it; ``new`` and ``old``: the newest update, which came from
    ``topic``.
    """

    since: int
    prior: Any
    new: Any
    old: Any
    timestamp: int
    topic: str


def byte_size(value: Any) -> int:
    """Return the length of a value in bytes, as Kafka serializes it."""
    if value is None:
        return 0
    return 8 if isinstance(value, int) else len(str(value).encode())


def held_size(key: Any, held: Held) -> int:
    """Return the size of an entry in bytes: time, key, context (timestamp, offset, partition, topic) and values."""
    values = byte_size(held.prior) + byte_size(held.new)
    if held.old is not None and held.old != held.prior:
        values += byte_size(held.old)
    return 8 + len(key_bytes(key)) + 8 + 8 + 4 + len(held.topic) + values


def upstream_grace(node: Node) -> int | None:
    """Return the longest grace period of the aggregates above; for sessions, gap plus grace. None if there are none."""
    windows = node.setting.windows
    if node.setting.spec["op"] == "aggregate" and windows is not None:
        grace: int = windows.get("grace", 0)
        return grace + (windows["gap"] if windows["type"] == "session" else 0)
    graces = [upstream_grace(parent) for parent in node.setting.parents]
    return max((one for one in graces if one is not None), default=None)


def windows_above(node: Node) -> Mapping[str, Any] | None:
    """Return the window node of the nearest aggregate at or above a node, if any."""
    if node.setting.spec["op"] == "aggregate":
        return node.setting.windows
    found = [windows_above(parent) for parent in node.setting.parents]
    return next((one for one in found if one is not None), None)


class Suppress(Node):
    """Holds updates back. They leave in the order of time and key bytes."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        spec = setting.spec
        self._is_final = spec["until"] == "window_closes"
        grace = upstream_grace(setting.parents[0]) if self._is_final else None
        if self._is_final and grace is None:
            raise ScriptError("no windows above")
        self._limit = spec.get("ms", grace)
        windows = windows_above(setting.parents[0]) or {}
        if self._is_final and windows.get("type") in ("session", "sliding") and not self.follow_kafka("D10"):
            # The end belongs to these windows, so they close 1 ms later.
            self._limit += 1
        buffer = spec.get("buffer", {})
        self._max_records, self._max_bytes = buffer.get("max_records"), buffer.get("max_bytes")
        self._shuts_down = buffer.get("full") == "shutdown"
        if self._is_final and not self._shuts_down and (self._max_records, self._max_bytes) != (None, None):
            raise ScriptError("final results need a strict buffer")
        self._clock = -1
        self.held: dict[Any, Held] = {}

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, (new, old), timestamp = message
        self._clock = max(self._clock, timestamp)
        since = key.window.end_ms if self._is_final else timestamp
        topic = self.setting.origin.topic
        held = self.held.get(key)
        if held is None:
            self.held[key] = Held(since, old, new, old, timestamp, topic)
        else:
            self.held[key] = Held(held.since, held.prior, new, old, timestamp, topic)
        self._emit_due()
        if self._is_full() and self._shuts_down:
            raise ScriptError("buffer full")
        while self._is_full():
            self._emit_oldest()

    def take_watermark(self, watermark: int) -> None:
        """See `Node`."""
        self._clock = max(self._clock, watermark)
        self._emit_due()

    def get(self, key: Any) -> Entry | None:
        """See `Node`. While an update is buffered, return the value sent before it."""
        held = self.held.get(key)
        if held is None:
            return self.setting.parents[0].get(key)
        return None if held.prior is None else (held.prior, UNKNOWN)

    def entries(self) -> list[dict[str, Any]]:
        """Return the buffered updates in the order in which they leave."""
        return [
            {"key": as_written(key), "value": held.new, "buffer_time": held.since, "ts": held.timestamp}
            for key, held in sorted(self.held.items(), key=self._order)
        ]

    def size(self) -> int:
        """Return the size of all buffered updates in bytes."""
        return sum(held_size(key, held) for key, held in self.held.items())

    def _emit_due(self) -> None:
        due = LARGEST if self._clock == LARGEST else self._clock - self._limit
        while self.held and min(one.since for one in self.held.values()) <= due:
            self._emit_oldest()

    def _is_full(self) -> bool:
        too_many = self._max_records is not None and len(self.held) > self._max_records
        return too_many or (self._max_bytes is not None and self.size() > self._max_bytes)

    def _emit_oldest(self) -> None:
        key, held = min(self.held.items(), key=self._order)
        if held.new is not None or not self._is_final:
            origin = self.setting.origin
            topic, origin.topic = origin.topic, held.topic
            old = held.old if self.follow_kafka("D13") else held.prior
            self.send((key, (held.new, old), held.timestamp))
            origin.topic = topic
        del self.held[key]

    @staticmethod
    def _order(one: tuple[Any, Held]) -> tuple[int, bytes]:
        return one[1].since, key_bytes(one[0])


def as_written(key: Any) -> Any:
    """Return a key in the format of the recordings."""
    if isinstance(key, Windowed):
        return {"key": key.key, "start": key.window.start_ms, "end": key.window.end_ms}
    return key
