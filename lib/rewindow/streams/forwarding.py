"""How a node sends records to its children: the part of its context that runs for each record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rewindow.errors import DataError
from rewindow.streams.record import Record, To

if TYPE_CHECKING:
    from rewindow.streams.record_context import RecordContext

Take = Callable[[Record], None]
"""A function that handles one record: the function of a processor or a sink, or of several of these."""


class Forwarding:
    """The children of a node, and the method that forwards records to them. `ProcessorContext` adds the rest of a context."""

    __slots__ = ("_by_name", "_children", "_record_context", "_to_all", "is_closed", "name")

    def __init__(self, name: str, record_context: RecordContext) -> None:
        self.name = name
        self._record_context = record_context
        self._by_name: dict[str, Take] = {}
        self._children: tuple[Take, ...] = ()
        self._to_all = to_all(())
        self.is_closed = False

    def attach(self, name: str, child: Take) -> None:
        """Connect a child. Records are forwarded to children in the order in which they were attached."""
        self._by_name[name] = child
        self._children = (*self._children, child)
        self._to_all = to_all(self._children)

    def close(self) -> None:
        """Make later calls of `forward` and ``schedule`` raise `DataError`, because the epoch is over."""
        self.is_closed = True
        self._to_all = self._refuse
        self._by_name = dict.fromkeys(self._by_name, self._refuse)

    def forward(self, record: Any, *, to: Any = None) -> None:
        """Send a `Record` to all children, or to the child that ``to`` names (a `To`, KIP-251).

        When this method returns, the record has passed through all nodes below. The record's timestamp comes from ``to``; if
        ``to`` has none, from ``record``; if that has none either, from the record or punctuation being handled. Raises
        `DataError` if ``record`` is not a `Record`, if there is no such child, or if the timestamp is not an integer of at
        least 0.
        """
        record_context = self._record_context
        before = record_context.timestamp
        try:
            timestamp: Any = record.timestamp
        except AttributeError as error:
            raise DataError(
                "forwarded-value-not-record",
                "{node} forwarded {record}: pass a Record(key, value). To choose a child, add to=To.child(name)",
                node=self.name,
                record=repr(record),
            ) from error
        # The common case: the record has the timestamp object of the current event. That timestamp has been checked.
        if timestamp is before and to is None and before >= 0:
            self._to_all(record)
            return
        take = self._to_all
        # User code may pass any object, also in the fields of a `To`.
        target: Any = to
        if to is not None:
            if to.__class__ is not To:
                raise invalid_target(self.name, to)
            if target.child_name is not None:
                take = self._child(target.child_name)
            if target.timestamp is not None:
                timestamp = target.timestamp
        if timestamp is None:
            timestamp = before
        if timestamp.__class__ is not int or timestamp < 0:
            raise invalid_timestamp(self.name, timestamp)
        if timestamp is not record.timestamp:
            record = Record(record.key, record.value, timestamp, record.headers)
        if timestamp == before:
            take(record)
            return
        record_context.timestamp = timestamp
        try:
            take(record)
        finally:
            record_context.timestamp = before

    def _refuse(self, record: Record) -> None:
        raise DataError(
            "forward-after-close",
            "{node} forwards {key} in close(): the epoch is over; forward before it ends",
            node=self.name,
            key=repr(record.key),
        )

    def _child(self, name: Any) -> Take:
        child = self._by_name.get(name)
        if child is None:
            raise DataError(
                "child-unknown",
                "{node} has no child {child} (children: {children}): name one of them in To.child",
                node=self.name,
                child=repr(name),
                children=", ".join(self._by_name) or "none",
            )
        return child


def to_all(children: Sequence[Take]) -> Take:
    """Return a function that gives a record to all children in order. For a single child, return that child's function."""
    if len(children) == 1:
        return children[0]

    def take(record: Record) -> None:
        for child in children:
            child(record)

    return take


def invalid_target(node: str, to: object) -> DataError:
    """Return the error for an argument ``to`` that is not a `To`."""
    return DataError(
        "forward-target-invalid",
        "{node} forwarded with to={target}: give To.child(name) or To.all()",
        node=node,
        target=repr(to),
    )


def invalid_timestamp(node: str, timestamp: object) -> DataError:
    """Return the error for a forwarded record whose timestamp is not an int of at least 0."""
    return DataError(
        "forward-timestamp-invalid",
        "{node} forwarded a record with the timestamp {timestamp} ({type}): give an int of epoch milliseconds, never negative",
        node=node,
        timestamp=repr(timestamp),
        type=type(timestamp).__name__,
    )
