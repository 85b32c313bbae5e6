"""One input of a join of two streams: its time limits, and the state of its two stores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.engine.worker.vectorized.joins.plan import JoinInput, JoinStore
from rewindow.engine.worker.vectorized.joins.records import NEW, Records
from rewindow.engine.worker.vectorized.joins.retained import Retained
from rewindow.engine.worker.vectorized.joins.value_rows import ValueRows
from rewindow.engine.worker.vectorized.joins.waiting import Waiting
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, STORE, Metrics
from rewindow.streams.record import UNKNOWN
from rewindow.streams.state.join_store import JoinStore as RecordExecutionStore


class StreamInput:
    """An input (``is_left`` or not) with its retained records and those that wait for a partner."""

    def __init__(
        self,
        supplier: StreamJoin,
        one: JoinInput,
        stores: Mapping[str, JoinStore],
        clocks: Mapping[str, int],
        *,
        is_left: bool,
    ) -> None:
        """``clocks``: those of the stores in the checkpoint."""
        windows, names = supplier.windows, supplier.left if is_left else supplier.right
        self.is_left = is_left
        self.is_kept = supplier.keeps_left if is_left else supplier.keeps_right
        self.back_ms = windows.before_ms if is_left else windows.after_ms
        self.ahead_ms = windows.after_ms if is_left else windows.before_ms
        self.store, self.waiting_store = names.records, names.unmatched
        self.values = ValueRows(one.value)
        self.retained = Retained(stores[self.store].builder.retention_ms, clocks.get(self.store, UNKNOWN))
        self.waiting = Waiting(self.ahead_ms + windows.grace_ms) if self.waiting_store else None
        self.peak = 0
        """The largest number of records that a store has had."""
        self.clocks = np.empty(0, np.int64)
        """The clock of the store at each record of the batch."""

    def put(self, keys: Array, times: Array, rows: Array, own: Array, metrics: Metrics) -> None:
        """Put records of a batch, which are at the indexes ``own``. Those that are expired are counted.

        ``keys``, ``times`` and ``rows`` have an item for each record of the batch.
        """
        put_times = np.full(len(times), UNKNOWN)
        put_times[own] = times[own]
        self.clocks = self.retained.clocks(put_times)
        is_retained = self.retained.are_retained(times[own], self.clocks[own])
        if lost := int(np.count_nonzero(~is_retained)):
            reason = RecordExecutionStore.expired_reason
            metrics.measure(STORE, self.store, EXPIRED_WINDOW_DROP, reason).record_many(lost, lost, 1, 1)
        stored = own[is_retained]
        self.retained.add(Records(keys[stored], times[stored], rows[stored], stored, np.full(len(stored), NEW)))
        self.peak = max(self.peak, self.retained.count)

    def end_batch(self) -> None:
        """Advance the clock, drop what is expired, and take all records as earlier ones."""
        self.retained.end_batch(int(self.clocks[-1]))
        records = [self.retained.records]
        if self.waiting is not None:
            self.peak = max(self.peak, self.waiting.count)
            self.waiting.end_batch()
            records.append(self.waiting.records)
        rows = self.values.compact([one.rows for one in records])
        self.retained.records = records[0]._replace(rows=rows[0])
        if self.waiting is not None:
            self.waiting.records = records[1]._replace(rows=rows[1])

    def used_keys(self) -> list[Array]:
        """Return the key numbers of all records."""
        more = [self.waiting.records.keys, self.waiting.gone.keys] if self.waiting is not None else []
        return [self.retained.records.keys, *more]

    def renumber(self, used: Array) -> None:
        """Replace key numbers by their ranks among ``used``, which are ascending."""

        def renumbered(records: Records) -> Records:
            return records._replace(keys=np.searchsorted(used, records.keys))

        self.retained.records = renumbered(self.retained.records)
        if self.waiting is not None:
            self.waiting.records, self.waiting.gone = renumbered(self.waiting.records), renumbered(self.waiting.gone)
