"""Joins of two streams: records of the same key that are close in time.

Rules of this file:

1. The partners of a record are looked up in the other side's store (`JoinStore`). The right partner of a left record is at most
   `before` earlier or at most `after` later. Results are sent in the order of the partners' timestamps, then of their arrival. A
   result has the larger of the two timestamps. Then the record is put into its own side's store.
2. A late record is joined with all its partners that are still retained. Each store expires records by its own clock: the
   highest timestamp that was put into it. A record that is already expired by this clock is joined and counted, but not stored.
3. The node's clock is the highest timestamp of the records of both sides, including records without a key or a value.
4. A record without a partner waits if its side keeps such records (the left side of a left join, both sides of an outer
   join). Its wait is over when ``timestamp + after + grace < clock``; for a right record, ``before`` is used instead of
   ``after`` (D12). Then the record is sent with null for the partner, exactly once and with its own timestamp. It is sent before
   the results of the record that advanced the clock. A record that arrives when its wait is already over is sent at once.
   Records that are due together are sent in the order of timestamp, right before left, then key bytes, then arrival.
5. If a partner arrives during the wait, the wait ends without this result. If a partner arrives after the wait, and the record
   is still retained (rule 2), the joined result is sent in addition.
6. A record without a value is skipped. A record without a key has no partner. If its side keeps such records, it is sent with
   null at once; otherwise it is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import merge
from typing import Any, NamedTuple

from rewindow.streams.metrics import RECORD_LATENESS, SKIPPED_RECORDS
from rewindow.streams.nodes import LeavesOut
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Record, make_record
from rewindow.streams.state.join_store import JoinStore, RecordStore, Waiting
from rewindow.streams.timing import Timing
from rewindow.streams.windows.join import JoinWindows

Joiner = Callable[[Any, Any, Any], Any]
"""``joiner(key, left_value, right_value)`` returns the value of the result. A missing partner is None."""


class Sided(NamedTuple):
    """A record's value, marked with its side of the join."""

    is_left: bool
    value: Any


@dataclass(frozen=True, slots=True)
class JoinSide:
    """Mark the records of one side of a join: replace each value by a `Sided` value."""

    is_left: bool

    def __call__(self) -> Processor:
        return _JoinSide(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"join_side({'left' if self.is_left else 'right'})"


class SideStores(NamedTuple):
    """The names of one side's stores. ``unmatched`` is for the records that wait for a partner; None if no records wait."""

    records: str
    unmatched: str | None = None


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """Join two streams. ``keeps_left``, ``keeps_right``: whether records of this side are sent even without a partner."""

    windows: JoinWindows
    joiner: Joiner
    left: SideStores
    right: SideStores
    keeps_left: bool = False
    keeps_right: bool = False

    @property
    def leaves_out(self) -> LeavesOut | None:
        """See `streams.nodes.LeavesOut`."""
        return None if self.keeps_left else LeavesOut.WITHOUT_PARTNER

    def __call__(self) -> Processor:
        return _StreamJoin(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        how = {(False, False): "inner", (True, False): "left", (True, True): "outer"}[self.keeps_left, self.keeps_right]
        return f"stream_join({how}, {self.windows}, left={self.left.records}, right={self.right.records})"

    def timings(self) -> list[Timing]:
        """See `streams.timing`. One millisecond is added, because the clock must exceed the end of the wait (rule 4)."""
        waiting = ((self.left.unmatched, self.windows.after_ms), (self.right.unmatched, self.windows.before_ms))
        grace_ms = self.windows.grace_ms
        return [
            Timing(store, ahead_ms + grace_ms + 1, {"grace": grace_ms})
            for store, ahead_ms in waiting
            if store is not None
        ]


class _JoinSide(Processor):
    def __init__(self, settings: JoinSide) -> None:
        self._is_left = settings.is_left

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        self.context.forward(make_record((key, Sided(self._is_left, value), timestamp, headers)))


class _Side:
    """The stores and durations of one side of the join."""

    def __init__(self, settings: StreamJoin, context: ProcessorContext, *, is_left: bool) -> None:
        names, windows = settings.left if is_left else settings.right, settings.windows
        self.is_left = is_left
        self.is_kept = settings.keeps_left if is_left else settings.keeps_right
        self.back_ms = windows.before_ms if is_left else windows.after_ms
        self.ahead_ms = windows.after_ms if is_left else windows.before_ms
        self.waits_ms = self.ahead_ms + windows.grace_ms
        self.records: JoinStore = context.store(names.records)
        self.unmatched: RecordStore | None = None if names.unmatched is None else context.store(names.unmatched)

    def pop_unmatched(self, clock_ms: int) -> Iterable[Waiting]:
        """Remove and return the records whose wait is over. Records on disk are removed only as they are read."""
        return () if self.unmatched is None else self.unmatched.pop_before(clock_ms - self.waits_ms)


class _StreamJoin(Processor):
    def __init__(self, settings: StreamJoin) -> None:
        self._settings = settings
        self._joiner = settings.joiner

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._left = _Side(self._settings, context, is_left=True)
        self._right = _Side(self._settings, context, is_left=False)
        self._has_waiting = self._left.unmatched is not None or self._right.unmatched is not None
        self._lateness = context.measure(RECORD_LATENESS)

    def process(self, record: Record) -> None:
        key, (is_left, value), timestamp, headers = record
        this, other = (self._left, self._right) if is_left else (self._right, self._left)
        # Records whose wait is over are sent before the results of the record that ends it.
        if self._has_waiting:
            clock_ms = self.context.observe(timestamp)
            self._lateness.record(clock_ms - timestamp)
            self._send_unmatched(clock_ms)
        if value is None or (key is None and not this.is_kept):
            skipped = make_record((key, value, timestamp, headers))
            self.context.drop(skipped, SKIPPED_RECORDS, reason="null-key" if key is None else "null-value")
            return
        if key is None:
            self._send(this, key, value, None, timestamp, headers)
            return
        partners = other.records.fetch(key, max(0, timestamp - this.back_ms), max(0, timestamp + this.ahead_ms))
        for partner_ms, partner in partners:
            # All partners with this key and timestamp have found this record. So their wait ends.
            if other.unmatched is not None:
                other.unmatched.remove(key, partner_ms)
            self._send(this, key, value, partner, max(timestamp, partner_ms), headers)
        if not partners and this.is_kept:
            # A record that arrives when its wait is already over is sent at once (D12).
            if this.unmatched is None or timestamp + this.waits_ms < self.context.observed_time_ms:
                self._send(this, key, value, None, timestamp, headers)
            else:
                this.unmatched.put(key, value, timestamp)
        this.records.put(key, value, timestamp)

    def on_watermark(self, watermark_ms: int) -> None:
        if self._has_waiting:
            self._send_unmatched(self.context.observe(watermark_ms))

    def _send_unmatched(self, clock_ms: int) -> None:
        right, left = self._right.pop_unmatched(clock_ms), self._left.pop_unmatched(clock_ms)
        if right or left:
            inputs = (((self._right, waiting) for waiting in right), ((self._left, waiting) for waiting in left))
            for side, (timestamp, _, key, value) in merge(*inputs, key=_by_time):
                self._send(side, key, value, None, timestamp, ())

    def _send(self, side: _Side, key: Any, value: Any, partner: Any, timestamp: int, headers: Any) -> None:
        left, right = (value, partner) if side.is_left else (partner, value)
        self.context.forward(make_record((key, self._joiner(key, left, right), timestamp, headers)))


def _by_time(waiting: tuple[_Side, Waiting]) -> tuple[int, bool, bytes]:
    side, (timestamp, key_bytes, _, _) = waiting
    return timestamp, side.is_left, key_bytes
