"""Joins of two tables by key: an update of either side is joined with the other side's current row.

If the result has a row for the update's key, the joined row is sent. If the result had a row and no longer has it, a tombstone is
sent. A result has the larger of the update's and the other row's timestamps. Records with a null key are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewindow.dsl.operators.table_view import TableView
from rewindow.streams.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, Record
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Stamped


@dataclass(frozen=True, slots=True)
class ValueJoiner:
    """A user's joiner as a function of key, left and right value. ``with_key``: whether the joiner itself gets the key.

    This is not a closure, because a closure would have another name in the version of a job's code (`control.code_version`).
    """

    function: Callable[..., Any]
    with_key: bool

    def __call__(self, key: Any, left: Any, right: Any) -> Any:
        return self.function(key, left, right) if self.with_key else self.function(left, right)

    def turned(self, key: Any, right: Any, left: Any) -> Any:
        """Return the joined value, given the right value first."""
        return self(key, left, right)


@dataclass(frozen=True, slots=True)
class TableJoinSide:
    """Join the updates of one side with the rows of the other side.

    ``joiner`` gets the key, this side's value and the other side's value. ``keeps_own``: whether the result has this side's
    rows even without a match. ``keeps_other``: the same for the other side's rows. ``is_versioned``: whether this side is a
    versioned table, whose late updates are dropped and counted.
    """

    other: TableView
    joiner: Callable[[Any, Any, Any], Any]
    keeps_own: bool = False
    keeps_other: bool = False
    is_versioned: bool = False

    def __call__(self) -> Processor:
        return _Side(self)

    def joined(self, key: Any, own: Any, other: Any) -> Any:
        """Return the joined value, given the values of this and the other side. None stands for a missing row."""
        if own is None and (other is None or not self.keeps_other):
            return None
        return self.joiner(key, own, other)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        words = ("keeps_own", "keeps_other", "is_versioned")
        return f"table_join({', '.join(word for word in words if getattr(self, word))})"


@dataclass(frozen=True, slots=True)
class TableJoinResult:
    """Pass on the results of both sides. With a store, results are kept in it, and the old value is the previous one there."""

    store: str | None = None

    def __call__(self) -> Processor:
        return _Result(self.store)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "table_join_result" if self.store is None else f"table_join_result(store={self.store})"


class _Side(Processor):
    def __init__(self, settings: TableJoinSide) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._other = self._settings.other.open(context)

    def process(self, record: Record) -> None:
        key, change, settings = record.key, record.value, self._settings
        if key is None:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key")
            return
        if settings.is_versioned and not change.is_latest:
            self.context.drop(record, LATE_RECORD_DROP, reason="not-latest")
            return
        other = self._other.get(key)
        if other is None and (not settings.keeps_own or (change.new is None and change.old is None)):
            return
        timestamp = record.timestamp if other is None else max(record.timestamp, other.timestamp)
        value = None if other is None else other.value
        joined = Change(settings.joined(key, change.new, value), settings.joined(key, change.old, value))
        self.context.forward(Record(key, joined, timestamp, record.headers))


class _Result(Processor):
    def __init__(self, store: str | None) -> None:
        self._store_name = store

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: KeyValueStore | None = None if self._store_name is None else context.store(self._store_name)

    def process(self, record: Record) -> None:
        if self._store is None:
            self.context.forward(record)
            return
        key, new = record.key, record.value.new
        old = self._store.get(key)
        self._store.put(key, None if new is None else Stamped(new, record.timestamp))
        self.context.forward(record.with_value(Change(new, old.value if old else None)))
