"""Joins of a stream with a global table: each record is joined with the row that its key selector names.

Rules of this file:

1. Only the stream's records send results, each with its own key, timestamp and headers. Updates of the table send nothing.
2. A record joins the row that the table has when the record is processed, whatever the timestamps.
3. A record without a value is skipped. A record whose selected key is null has no row: a left join sends it with null, an
   inner join skips it. The record's own key may be null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rewindow.dsl.operators.stream_table_join import Joiner
from rewindow.streams.metrics import SKIPPED_RECORDS
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Record
from rewindow.streams.state.key_value_store import KeyValueStore

KeySelector = Callable[[Any, Any], Any]
"""``key_selector(key, value)``: the key of a row of the global table, or None."""


@dataclass(frozen=True, slots=True)
class GlobalTableJoin:
    """Join records with a global table's rows. ``keeps_left``: records without a row are sent, too."""

    keeps_key: ClassVar[bool] = True
    only_reads: ClassVar[bool] = True
    """See `streams.topology.check_global_tables`."""

    store: str
    key_selector: KeySelector
    joiner: Joiner
    keeps_left: bool = False

    def __call__(self) -> Processor:
        return _GlobalTableJoin(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"global_table_join({'left' if self.keeps_left else 'inner'}, table={self.store})"


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
