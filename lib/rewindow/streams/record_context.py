"""The event that a task is handling: a record, a punctuation, or the start or end of an epoch."""

from __future__ import annotations

from typing import Any

from rewindow.streams.record import UNKNOWN, RecordMetadata


class RecordContext:
    """Source, timestamp and order key of the current event. The task owns one and updates it in place."""

    __slots__ = ("firing", "last_offset", "offset", "order_ms", "scheduled_ms", "timestamp", "topic")

    def __init__(self) -> None:
        self.topic: str | None = None
        """The topic of the record; None outside a record."""
        self.offset = UNKNOWN
        self.last_offset = UNKNOWN
        """The offset of the last record of a batch while its processor runs; -1 elsewhere."""
        self.timestamp: Any = UNKNOWN
        """The timestamp that forwarded records inherit, an int: the very object, which `Forwarding.forward` looks for."""
        self.scheduled_ms = UNKNOWN
        """When the punctuation was due; -1 outside a punctuation."""
        self.order_ms = UNKNOWN
        """The order key within the epoch (L1, D21)."""
        self.firing: tuple[str, int] | None = None
        """The schedule and due time of a punctuation, or the epoch that is ending; None for a record."""

    def leave_event(self, timestamp: int, order_ms: int) -> None:
        """Forget the last record or punctuation: an epoch begins or ends."""
        self.topic, self.offset, self.scheduled_ms, self.firing = None, UNKNOWN, UNKNOWN, None
        self.timestamp, self.order_ms = timestamp, order_ms

    def metadata(self, partition: int) -> RecordMetadata:
        """Return the source of the record, ``(None, -1, -1)`` outside a record."""
        return RecordMetadata(self.topic, partition if self.topic else UNKNOWN, self.offset if self.topic else UNKNOWN)

    def __str__(self) -> str:
        """Describe the event for an error message."""
        if self.topic and self.last_offset > self.offset:
            return f"{self.topic}, a batch of the offsets {self.offset} to {self.last_offset}"
        if self.topic:
            return f"{self.topic} offset {self.offset}"
        return "an epoch's bounds" if self.scheduled_ms == UNKNOWN else f"the punctuation due at {self.scheduled_ms} ms"
