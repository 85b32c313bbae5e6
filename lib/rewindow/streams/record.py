"""Records, their metadata and targets, windowed keys, and the updates (`Change`) that tables send downstream."""

from __future__ import annotations

import keyword
from collections import namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from rewindow.errors import DataError

Made = TypeVar("Made")

UNKNOWN = -1
"""Stands for an unknown time or offset. Valid times and offsets are never negative."""


def known_time(epoch_ms: int | None) -> int | None:
    """Return a time for JSON: epoch milliseconds, or None if ``epoch_ms`` is None or `UNKNOWN`."""
    return None if epoch_ms is None or epoch_ms < 0 else epoch_ms


MAX_MS = 2**63 - 1
"""The end of time: the end of an unlimited window, and the last watermark of `run --final`."""


class Record(NamedTuple):
    """A key, a value and a timestamp in epoch milliseconds.

    A record may be created without a timestamp. When it is forwarded, it gets the timestamp of the record or punctuation
    being handled (KIP-251). So a record that a processor receives always has a timestamp.
    """

    key: Any
    value: Any
    timestamp: int = None  # type: ignore[assignment] # only until it is forwarded
    headers: tuple[tuple[str, bytes], ...] = ()

    def with_key(self, key: Any) -> Record:
        """Return a copy with another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record:
        """Return a copy with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record:
        """Return a copy with another timestamp (epoch milliseconds)."""
        return Record(self.key, self.value, timestamp, self.headers)


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """The topic, partition and offset of the record being handled; ``(None, -1, -1)`` in a punctuation, as in Kafka."""

    topic: str | None
    partition: int
    offset: int


@cache
def row_class(fields: tuple[str, ...]) -> type[Any]:
    """Return the named tuple class for rows with these field names. The same names give the same class."""
    return namedtuple("Row", fields)  # noqa: PYI024 - the fields are data


def are_field_names(names: Iterable[Any]) -> bool:
    """Return whether all the names can be field names of a row."""
    return all(
        isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
        for name in names
    )


def as_log_row(value: Any) -> Any:
    """Return a named tuple of any class as a `row_class` tuple, the form of rows in logs. Return other values unchanged."""
    fields = getattr(value, "_fields", None)
    return value if fields is None or value.__class__ is Windowed else row_class(fields)(*value)


class Window(NamedTuple):
    """A time interval in epoch milliseconds. It excludes its end (``[start, end)``), except that a session includes it."""

    start_ms: int
    end_ms: int
    is_session: bool = False


class Windowed(NamedTuple):
    """A key and a window: the key of a windowed table."""

    key: Any
    window: Window


class Change(NamedTuple):
    """An update of a table: the new value, and the value that was last sent downstream (D13)."""

    new: Any
    old: Any = None

    @property
    def is_latest(self) -> bool:
        """Whether the update changes the table's current value. A `PastChange` does not."""
        return True


class PastChange(Change):
    """A late update of a versioned table that already has a newer version of the key. ``old`` is the newer value (KIP-914)."""

    __slots__ = ()

    @property
    def is_latest(self) -> bool:
        """See `Change`."""
        return False


@dataclass(frozen=True, slots=True)
class To:
    """The target of a forwarded record (None: all children), and optionally a new timestamp for the record (KIP-251)."""

    child_name: str | None = None
    timestamp: int | None = None

    @classmethod
    def all(cls) -> To:
        """Forward to every child, in the order in which they were attached."""
        return cls()

    @classmethod
    def child(cls, name: str) -> To:
        """Forward only to the child of that name."""
        return cls(child_name=name)

    def with_timestamp(self, timestamp: int) -> To:
        """Return this target with a timestamp (epoch milliseconds) that replaces the record's.

        Raises `DataError` if the timestamp is negative or not an integer.
        """
        if timestamp.__class__ is not int or timestamp < 0:
            raise DataError(
                "target-timestamp-invalid",
                "To.with_timestamp({timestamp}): a timestamp must be an int of epoch milliseconds, never negative",
                timestamp=repr(timestamp),
            )
        return To(self.child_name, timestamp)


def maker(named_tuple: type[Made]) -> Callable[[tuple[Any, ...]], Made]:
    """Return a constructor that takes all fields as one tuple. It is three times as fast as calling the class.

    Use it in code that runs for each record. The number of fields is not checked.
    """
    return partial(tuple.__new__, named_tuple)  # type: ignore[type-var]  # it is a tuple: no type variable can say so


make_record, make_window, make_windowed, make_change = maker(Record), maker(Window), maker(Windowed), maker(Change)
