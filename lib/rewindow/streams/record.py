"""The data: a record, where it came from, where it goes, and the values that tables send downstream."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from rewindow.errors import DataError

Made = TypeVar("Made")

UNKNOWN = -1
"""A time that is not known yet. Timestamps are never negative."""

MAX_MS = 2**63 - 1
"""Saturated time: the end of an unlimited window, and what `run --final` calls infinity."""


class Record(NamedTuple):
    """A key, a value and a timestamp in epoch milliseconds.

    A record that is made without a timestamp gets, when it is forwarded, that of the record or punctuation being
    handled (KIP-251): what a processor is given always has one.
    """

    key: Any
    value: Any
    timestamp: int = None  # type: ignore[assignment] # only between a record's making and its forwarding
    headers: tuple[tuple[str, bytes], ...] = ()

    def with_key(self, key: Any) -> Record:
        """Return the same record under another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record:
        """Return the same record with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record:
        """Return the same record at another time (epoch milliseconds)."""
        return Record(self.key, self.value, timestamp, self.headers)


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """Where the record being handled came from. In a punctuation: ``(None, -1, -1)``, as in Kafka."""

    topic: str | None
    partition: int
    offset: int


@cache
def row_class(fields: tuple[str, ...]) -> type[Any]:
    """Return the named tuple of these fields: the value of a log of several columns. The same class for the same fields."""
    return namedtuple("Row", fields)  # noqa: PYI024 - the fields are data


def as_log_row(value: Any) -> Any:
    """Return a key or value as a log of several columns has it: a named tuple of any class as a row of its fields."""
    fields = getattr(value, "_fields", None)
    return value if fields is None or value.__class__ is Windowed else row_class(fields)(*value)


class Window(NamedTuple):
    """An interval of time in epoch milliseconds: ``[start, end)``, for sessions ``[start, end]``."""

    start_ms: int
    end_ms: int
    is_session: bool = False


class Windowed(NamedTuple):
    """A key within a window: what windowed tables have for keys."""

    key: Any
    window: Window


class Change(NamedTuple):
    """An update of a table on its way downstream: the new value, and the one last emitted (D13)."""

    new: Any
    old: Any = None

    @property
    def is_latest(self) -> bool:
        """Whether it changes what the table says now. `PastChange` does not."""
        return True


class PastChange(Change):
    """An update of a versioned table that came late: a newer version was there, ``old`` is that one's value (KIP-914)."""

    __slots__ = ()

    @property
    def is_latest(self) -> bool:
        """See `Change`."""
        return False


@dataclass(frozen=True, slots=True)
class To:
    """Where a record is forwarded, and at what time (KIP-251)."""

    child_name: str | None = None
    timestamp: int | None = None

    @classmethod
    def all(cls) -> To:
        """To every child, in the order in which they were attached."""
        return cls()

    @classmethod
    def child(cls, name: str) -> To:
        """To the child of that name only."""
        return cls(child_name=name)

    def with_timestamp(self, timestamp: int) -> To:
        """At this time (epoch milliseconds), whatever the record says.

        Raises `DataError` if it is negative or no integer.
        """
        if timestamp.__class__ is not int or timestamp < 0:
            message = f"To.with_timestamp({timestamp!r}): a timestamp is an int of epoch milliseconds, never negative"
            raise DataError(message)
        return To(self.child_name, timestamp)


def maker(named_tuple: type[Made]) -> Callable[[tuple[Any, ...]], Made]:
    """Return what makes a named tuple of all its parts in a third of the time that calling it takes.

    For the few places that run for each record; nothing checks the number of parts.
    """
    return partial(tuple.__new__, named_tuple)  # type: ignore[type-var]  # it is a tuple: no type variable can say so


make_record, make_window, make_windowed, make_change = maker(Record), maker(Window), maker(Windowed), maker(Change)
