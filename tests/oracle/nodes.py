"""The base class of the twin's operators, and the stateless ones."""

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
    """The topic of the current record. Kafka counts the topic's name among the bytes of a buffer."""

    topic: str = ""


@dataclass(frozen=True)
class Setting:
    """One node of a scenario, and what it needs to know about the others."""

    spec: Mapping[str, Any]
    parents: list[Node]
    send: Handler
    rules: Rules
    origin: Origin
    windows: Mapping[str, Any] | None = None
    """The window node above the node, if any."""
    sends_old: bool = False
    """Whether the node sends old values in Kafka."""
    in_memory: bool = False
    cogroup: Mapping[str, Any] | None = None
    """The cogroup node above the node, if any."""
    has_finals: bool = False
    """Whether the node, or a node below it, sends final results only."""


class Node:
    """An operator. In a table's message, the value is a pair of new and old value."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.send = setting.send

    def take(self, message: Message, side: int, /) -> None:
        """Process a message of the parent with the index ``side``."""
        raise NotImplementedError

    def take_watermark(self, watermark: int) -> None:
        """Learn that all records up to a time have arrived (D22)."""

    def get(self, key: Any) -> Entry | None:
        """Return the table's entry for a key, as a join below it sees it."""
        raise NotImplementedError

    def contents(self) -> list[dict[str, Any]] | None:
        """Return the entries of the node's store, or None if it has none."""
        return None

    def follow_kafka(self, number: str) -> bool:
        """Return whether Kafka's rule is in effect."""
        return self.setting.rules.follow_kafka(number)


class Source(Node):
    """A topic, a merge or a repartition: it forwards every message."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        self.send(message)


class StreamFilter(Node):
    """Forwards the records whose value satisfies a predicate."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        if predicate(self.setting.spec["pred"])(message[1]):
            self.send(message)


class StreamMap(Node):
    """Maps the value of each record."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        self.send((key, value_mapper(self.setting.spec["fn"])(value), timestamp))


class SelectKey(Node):
    """Changes the key of each record."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        self.send((key_selector(self.setting.spec["by"])(key, value), value, timestamp))


class ToStream(Node):
    """Turns a table's updates into records with the new values."""

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, (new, _old), timestamp = message
        self.send((key, new, timestamp))
