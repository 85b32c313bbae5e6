"""Joins of two streams: records with equal keys that are close enough in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.oracle.nodes import Node, Setting
from tests.oracle.queues import LARGEST
from tests.oracle.scripts import Message
from tests.oracle.vocabulary import text_of

LEFT, RIGHT = 0, 1


def joined(left: Any, right: Any) -> str:
    """Return the joined value."""
    return f"{text_of(left)}|{text_of(right)}"


@dataclass
class Lonely:
    """A record that has no partner yet. ``values``: one per such record with this key, side and timestamp."""

    timestamp: int
    side: int
    key: Any
    values: list[Any]

    def order(self) -> tuple[int, int, bytes]:
        """Return the sort key: time, then right before left, then key."""
        return self.timestamp, -self.side, str(self.key).encode()


class StreamStreamJoin(Node):
    """Joins each record with the stored ones of the other side. In outer joins, records without a partner get a null."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        spec = setting.spec
        before, after = spec["before"], spec["after"]
        self._grace: int = spec["grace"]
        self._retention = before + after + self._grace
        self._bounds: dict[int, tuple[int, int]] = {LEFT: (before, after), RIGHT: (after, before)}
        """By side: how far a partner's timestamp may be before and after the record's."""
        self._is_outer = {LEFT: spec["how"] != "inner", RIGHT: spec["how"] == "outer"}
        self._clock = -1
        self._kept: dict[int, list[Message]] = {LEFT: [], RIGHT: []}
        self._newest = {LEFT: -1, RIGHT: -1}
        self._lonely: list[Lonely] = []
        self._oldest_lonely = LARGEST

    def take(self, message: Message, side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        self._clock = max(self._clock, timestamp)
        if not self.follow_kafka("D12"):
            self._send_lonely(side, timestamp)
        if value is None or (key is None and not self._is_outer[side]):
            return
        if key is None:
            self._send(side, key, value, None, timestamp)
            return
        if self.follow_kafka("D12"):
            self._send_lonely(side, timestamp)
        partners = self._partners(side, key, timestamp)
        for _, other, at in partners:
            self._lonely = [o for o in self._lonely if (o.timestamp, o.side, o.key) != (at, 1 - side, key)]
            self._send(side, key, value, other, max(timestamp, at))
        if not partners and self._is_outer[side]:
            self._wait(side, key, value, timestamp)
        self._kept[side].append(message)
        self._newest[side] = max(self._newest[side], timestamp)

    def take_watermark(self, watermark: int) -> None:
        """See `Node`."""
        self._clock = max(self._clock, watermark)
        self._send_lonely(LEFT, watermark)

    def _partners(self, side: int, key: Any, timestamp: int) -> list[Message]:
        back, ahead = self._bounds[side]
        other = 1 - side
        seen_from = self._newest[other] - self._retention + 1
        near = [
            one
            for one in self._kept[other]
            if one[0] == key and max(0, timestamp - back, seen_from) <= one[2] <= max(0, timestamp + ahead)
        ]
        return sorted(near, key=lambda one: one[2])

    def _wait(self, side: int, key: Any, value: Any, timestamp: int) -> None:
        if self._is_too_late_to_wait(side, timestamp):
            self._send(side, key, value, None, timestamp)
            return
        self._oldest_lonely = min(self._oldest_lonely, timestamp)
        for one in self._lonely:
            if (one.timestamp, one.side, one.key) == (timestamp, side, key):
                one.values.append(value)
                return
        self._lonely.append(Lonely(timestamp, side, key, [value]))

    def _is_too_late_to_wait(self, side: int, timestamp: int) -> bool:
        if self.follow_kafka("D12"):
            return max(0, timestamp + self._bounds[side][1]) < self._clock
        return self._is_over(side, timestamp)

    def _is_over(self, side: int, timestamp: int) -> bool:
        after: int = self._bounds[side][1] + self._grace
        return timestamp + after < self._clock

    def _send_lonely(self, side: int, timestamp: int) -> None:
        """Send the records that have found no partner and can no longer find one."""
        if self.follow_kafka("D12"):
            if timestamp != self._clock or not self._is_over(side, self._oldest_lonely):
                return
            self._oldest_lonely = self._last_looked_at()
        over = [one for one in sorted(self._lonely, key=Lonely.order) if self._is_over(one.side, one.timestamp)]
        self._lonely = [one for one in self._lonely if one not in over]
        for one in over:
            for value in one.values:
                self._send(one.side, one.key, value, None, one.timestamp)

    def _last_looked_at(self) -> int:
        """Return the timestamp at which Kafka's search stops, which Kafka then regards as the oldest one left."""
        last = LARGEST
        is_open: set[int] = set()
        one_by_one = [one for one in sorted(self._lonely, key=Lonely.order) for _ in one.values]
        for one in one_by_one:  # Kafka keeps a list of values for a key, and its iterator stops at each
            last = one.timestamp
            if len(is_open) == 2:
                break
            if not self._is_over(one.side, one.timestamp):
                is_open.add(one.side)
        return last

    def _send(self, side: int, key: Any, value: Any, other: Any, timestamp: int) -> None:
        self.send((key, joined(value, other) if side == LEFT else joined(other, value), timestamp))
