"""Table sources, verbs on the rows of a table, and the conversion to a stream. Verbs receive and send a `Change`.

The old value of an update is the value that was last sent downstream; null in the first update (D13). A verb with a store
keeps the values that it sends, with their timestamps. A verb without a store computes the old value from the old value of its
parent's update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rewindow.streams.metrics import SKIPPED_RECORDS
from rewindow.streams.nodes import LeavesOut
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, PastChange, Record
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Stamped
from rewindow.streams.state.versioned_store import Put, VersionedStore

Derive = Callable[[Any, Any], Any]
"""``derive(key, value)`` returns the new value; None means that there is no row."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """Keep a topic as a table: the last value of each key, in offset order.

    A null value deletes the row of the key. A record with a null key is skipped. In a versioned store, the current row of a
    key is the row with the highest timestamp. An older update is sent as a `PastChange`. An update that is older than the
    start of the history is not sent, but counted.
    """

    keeps_key: ClassVar[bool] = True

    store: str
    is_versioned: bool = False

    @property
    def asks_own_key(self) -> bool:
        """See `streams.topology`."""
        return not self.is_versioned

    def __call__(self) -> Processor:
        return _VersionedSource(self.store) if self.is_versioned else _TableSource(self.store)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"{'versioned_' if self.is_versioned else ''}table(store={self.store})"


FILTER, FILTER_NOT = FILTERS = ("table_filter", "table_filter_not")
"""The values of `TableDerive.verb` for filters."""


@dataclass(frozen=True, slots=True)
class TableDerive:
    """Map each value to another value or to no row: a filter or a mapping.

    ``skips_empty``: whether to skip an update if there is neither an old nor a new row. True for a filter, unless its table
    is versioned.
    """

    keeps_key: ClassVar[bool] = True
    asks_own_key: ClassVar[bool] = True

    verb: str
    derive: Derive
    skips_empty: bool = False
    store: str | None = None

    def __call__(self) -> Processor:
        return _Derive(self) if self.store is None else _StoredDerive(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return self.verb if self.store is None else f"{self.verb}(store={self.store})"

    @property
    def leaves_out(self) -> LeavesOut | None:
        """See `streams.nodes.LeavesOut`."""
        return LeavesOut.BY_CONDITION if self.verb in FILTERS else None


@dataclass(frozen=True, slots=True)
class TableToStream:
    """Send each new value as a record; a tombstone becomes a record with a null value."""

    keeps_key: ClassVar[bool] = True

    def __call__(self) -> Processor:
        return _ToStream()

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "to_stream"


def kept_by(predicate: Callable[[Any, Any], bool], *, negate: bool = False) -> Derive:
    """Return a function that keeps the values for which ``predicate(key, value)`` is true or, with ``negate``, false."""
    return lambda key, value: value if bool(predicate(key, value)) is not negate else None


class _TableSource(Processor):
    def __init__(self, store: str) -> None:
        self._store_name = store

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: KeyValueStore = context.store(self._store_name)

    def process(self, record: Record) -> None:
        key, value = record.key, record.value
        if key is None:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key")
            return
        old = self._store.get(key)
        self._store.put(key, None if value is None else Stamped(value, record.timestamp))
        self.context.forward(record.with_value(Change(value, old.value if old else None)))


class _VersionedSource(Processor):
    def __init__(self, store: str) -> None:
        self._store_name = store

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: VersionedStore = context.store(self._store_name)

    def process(self, record: Record) -> None:
        key, value = record.key, record.value
        if key is None:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key")
            return
        old = self._store.get(key)
        done = self._store.put(key, value, record.timestamp)
        if done is not Put.REFUSED:
            change = Change if done is Put.LATEST else PastChange
            self.context.forward(record.with_value(change(value, old.value if old else None)))


class _Derive(Processor):
    def __init__(self, settings: TableDerive) -> None:
        self._derive, self._skips_empty = settings.derive, settings.skips_empty

    def process(self, record: Record) -> None:
        key, change = record.key, record.value
        new = None if change.new is None else self._derive(key, change.new)
        old = None if change.old is None else self._derive(key, change.old)
        if new is not None or old is not None or not self._skips_empty:
            self.context.forward(record.with_value(change._replace(new=new, old=old)))


class _StoredDerive(Processor):
    def __init__(self, settings: TableDerive) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: KeyValueStore = context.store(self._settings.store or "")

    def process(self, record: Record) -> None:
        key, new = record.key, record.value.new
        new = None if new is None else self._settings.derive(key, new)
        old = self._store.get(key)
        if new is not None or old is not None or not self._settings.skips_empty:
            self._store.put(key, None if new is None else Stamped(new, record.timestamp))
            self.context.forward(record.with_value(Change(new, old.value if old else None)))


class _ToStream(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(record.value.new))
