"""Joins of a stream with a table or a global table: each record is joined with the table's row of its key.

Rules of this file:

1. Only the stream's records send results, each with its own key and timestamp. Updates of the table send nothing.
2. A record is joined with the row that the table has when the record is processed, whatever the timestamps. With a versioned
   table, a record is joined with the row that was valid at the record's timestamp (KIP-914). See `VersionedStore.get_as_of`.
3. A record without a value is skipped. A record without a key has no row. A left join sends such a record with null at once,
   even if other records wait. An inner join skips it. For a global table, this applies to the key that the key selector
   returns. The record's own key may be null.
4. With a grace period (KIP-923), records wait for late updates of a versioned table. The node's clock is the highest
   timestamp of records that were put into the waiting store, or the watermark. A record is joined when
   ``timestamp <= clock - grace``. Records that are due together are joined in the order of timestamp, key bytes and arrival. A
   record that arrives with ``timestamp < clock - grace`` is joined at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rewindow.dsl.operators.table_view import TableView
from rewindow.streams.duration import in_words
from rewindow.streams.metrics import RECORD_LATENESS, SKIPPED_RECORDS
from rewindow.streams.nodes import LeavesOut
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, Record, make_record
from rewindow.streams.state.join_store import RecordStore
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Stamped
from rewindow.streams.timing import Timing

_Joiner = Callable[[Any, Any, Any], Any]
"""``joiner(key, record_value, row_value)`` returns the value of the result. ``row_value`` is None if there is no row."""
_KeySelector = Callable[[Any, Any], Any]
"""``key_selector(key, value)`` returns the key of a row of the global table, or None."""


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    """Join records with a table's rows. ``keeps_left``: whether records without a matching row are sent, too."""

    joins_table: ClassVar[bool] = True

    table: TableView
    joiner: _Joiner
    keeps_left: bool = False
    grace_ms: int = 0
    waiting: str | None = None
    """The store of the records that wait until their grace period is over; None if there is no grace period."""

    @property
    def keeps_key(self) -> bool:
        """See `streams.topology`."""
        return self.waiting is None

    @property
    def asks_own_key(self) -> bool:
        """See `streams.topology`."""
        return self.waiting is None

    @property
    def leaves_out(self) -> LeavesOut | None:
        """See `streams.nodes.LeavesOut`."""
        return None if self.keeps_left else LeavesOut.WITHOUT_PARTNER

    def __call__(self) -> Processor:
        return _StreamTableJoin(self) if self.waiting is None else _WaitingJoin(self, self.waiting)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        how = "left" if self.keeps_left else "inner"
        waits = "" if self.waiting is None else f", grace={in_words(self.grace_ms)}, store={self.waiting}"
        return f"stream_table_join({how}, table={'+'.join(self.table.stores)}{waits})"

    def timings(self) -> list[Timing]:
        """See `streams.timing`."""
        return [] if self.waiting is None else [Timing(self.waiting, self.grace_ms, {"grace": self.grace_ms})]


@dataclass(frozen=True, slots=True)
class GlobalTableJoin:
    """Join records with a global table's rows. ``keeps_left``: whether records without a matching row are sent, too."""

    keeps_key: ClassVar[bool] = True
    joins_table: ClassVar[bool] = True
    only_reads: ClassVar[bool] = True
    """See `streams.topology`."""

    store: str
    key_selector: _KeySelector
    joiner: _Joiner
    keeps_left: bool = False

    @property
    def leaves_out(self) -> LeavesOut | None:
        """See `streams.nodes.LeavesOut`."""
        return None if self.keeps_left else LeavesOut.WITHOUT_PARTNER

    def __call__(self) -> Processor:
        return _GlobalTableJoin(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"global_table_join({'left' if self.keeps_left else 'inner'}, table={self.store})"


class _StreamTableJoin(Processor):
    def __init__(self, settings: StreamTableJoin) -> None:
        self._settings, self._joiner, self._keeps_left = settings, settings.joiner, settings.keeps_left

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._table = self._settings.table.open(context)
        self._is_versioned = self._settings.table.history_ms is not None

    def process(self, record: Record) -> None:
        if not self._is_skipped(record):
            self._join(record)

    def _is_skipped(self, record: Record) -> bool:
        key, value, _, _ = record
        if value is not None and (key is not None or self._keeps_left):
            return False
        self.context.drop(record, SKIPPED_RECORDS, reason="null-key" if key is None else "null-value")
        return True

    def _join(self, record: Record) -> None:
        key, value, timestamp, headers = record
        row: Stamped | None = None
        # Only a versioned table has the row at the record's time. Other tables only have the present row.
        if key is not None:
            row = self._table.get_as_of(key, timestamp) if self._is_versioned else self._table.get(key)
        if row is not None or self._keeps_left:
            joined = self._joiner(key, value, None if row is None else row.value)
            self.context.forward(make_record((key, joined, timestamp, headers)))


class _WaitingJoin(_StreamTableJoin):
    def __init__(self, settings: StreamTableJoin, waiting: str) -> None:
        super().__init__(settings)
        self._grace_ms, self._name = settings.grace_ms, waiting

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._waiting: RecordStore = context.store(self._name)
        self._lateness = context.measure(RECORD_LATENESS)

    def process(self, record: Record) -> None:
        # Updates are ignored. The table is a parent only so that the watermark is lowered by the time for which the table holds
        # updates (D22).
        if isinstance(record.value, Change) or self._is_skipped(record):
            return
        key, value, timestamp, _ = record
        if key is None:
            self._join(record)
            return
        clock_ms = self.context.observed_time_ms
        self._lateness.record(max(clock_ms - timestamp, 0))
        # The grace period of such a late record was over before the record arrived.
        if timestamp < clock_ms - self._grace_ms:
            self._join(record)
            return
        self._waiting.put(key, value, timestamp)
        self._release(self.context.observe(timestamp))

    def on_watermark(self, watermark_ms: int) -> None:
        self._release(self.context.observe(watermark_ms))

    def _release(self, clock_ms: int) -> None:
        for timestamp, _, key, value in self._waiting.pop_before(clock_ms - self._grace_ms + 1):
            self._join(make_record((key, value, timestamp, ())))


class _GlobalTableJoin(Processor):
    def __init__(self, settings: GlobalTableJoin) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._table: KeyValueStore = context.store(self._settings.store)

    def process(self, record: Record) -> None:
        key, value, settings = record.key, record.value, self._settings
        if value is None:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-value")
            return
        selected = settings.key_selector(key, value)
        if selected is None and not settings.keeps_left:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key")
            return
        row = None if selected is None else self._table.get(selected)
        if row is not None or settings.keeps_left:
            self.context.forward(record.with_value(settings.joiner(key, value, None if row is None else row.value)))
