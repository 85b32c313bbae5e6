"""What every operator of the twin is given, and those that remember nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.memory import Entry
from tests.oracle.rules import Rules
from tests.oracle.scripts import Message
from tests.oracle.vocabulary import key_selector, predicate, value_mapper

Handler = Callable[[Message], None]


@dataclass
class Origin:
    """Where the record at hand comes from: Kafka counts the name of its topic among the bytes of a buffer."""

    topic: str = ""


@dataclass(frozen=True)
class Setting:
    """One node of a scenario and what it needs to know of the others."""

    spec: Mapping[str, Any]
    parents: list[Node]
    send: Handler
    rules: Rules
    origin: Origin
    windows: Mapping[str, Any] | None = None
    """The window node above it, if there is one."""
    sends_old: bool = False
    """Whether Kafka would have it send old values."""
    in_memory: bool = False
    has_finals: bool = False
    """Whether it sends final results only, or a suppress below does."""


class Node:
    """An operator. A table's message has a pair for a value: new and old."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.send = setting.send

    def take(self, message: Message, side: int, /) -> None:
        """Process a message of the parent with this number."""
        raise NotImplementedError

    def take_watermark(self, watermark: int) -> None:
        """Learn that nothing up to a time comes any more (D22)."""

    def get(self, key: Any) -> Entry | None:
        """Return what the table has for a key, as a join below it sees it."""
        raise NotImplementedError

    def contents(self) -> list[dict[str, Any]] | None:
        """Return what the node's store shows at the end; None if it has none."""
        return None

    def follow_kafka(self, number: str) -> bool:
        """Say whether Kafka's rule holds."""
        return self.setting.rules.follow_kafka(number)


class Source(Node):
    """A topic, a merge, or the way through a repartition: what comes goes on."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        self.send(message)


class StreamFilter(Node):
    """Lets through what a predicate says."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        if predicate(self.setting.spec["pred"])(message[1]):
            self.send(message)


class StreamMap(Node):
    """Gives each record another value."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        self.send((key, value_mapper(self.setting.spec["fn"])(value), timestamp))


class SelectKey(Node):
    """Gives each record another key."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        self.send((key_selector(self.setting.spec["by"])(key, value), value, timestamp))


class ToStream(Node):
    """Makes records of a table's updates: the new values."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, (new, _old), timestamp = message
        self.send((key, new, timestamp))
