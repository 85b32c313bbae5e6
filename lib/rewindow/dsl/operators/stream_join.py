"""Joins of two streams: the records of a key that are close enough in time.

Rules of this file:

1. A record looks for partners among what the other side's store retains (`JoinStore`): the other record lies at most
   `before` earlier or `after` later, seen from the left. Results come by the partner's timestamp, then in the order in
   which partners came; a result has the larger of the two timestamps. Then the record is put into its own side's store.
2. Nobody is too late to be joined: a late record finds whatever is still retained. Each store forgets by its own clock,
   the highest timestamp put; what comes after it was forgotten is counted as expired.
3. The node's clock is the highest timestamp of the records of either side, also of those without a key or a value.
4. A record of a side that is kept without a partner (left of a left join, both of an outer one) and that found none
   waits. Once ``timestamp + after + grace < clock`` (for a right record: ``before``) it is sent with null, at its own
   timestamp, exactly once (D12): at the very record, or watermark, that moves the clock there, before that record's own
   results; if it came after that, at once. Those that are due together leave by timestamp, right before left, then by
   key bytes, then in the order in which they came.
5. A partner that comes before that takes the record out. One that comes after it, later than the grace, is joined with
   it as far as it is retained (rule 2): then there are both results.
6. A record without a value is skipped. One without a key has no partner: it is sent with null at once where its side is
   kept without one, else skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import merge
from typing import Any, NamedTuple

from rewindow.streams.metrics import RECORD_LATENESS, SKIPPED_RECORDS
from rewindow.streams.processor import Processor
from rewindow.streams.processor_context import ProcessorContext
from rewindow.streams.record import Record, make_record
from rewindow.streams.state.join_store import JoinStore, RecordStore, Waiting
from rewindow.streams.windows.join import JoinWindows

Joiner = Callable[[Any, Any, Any], Any]
"""Takes the key, the left and the right value."""


class Sided(NamedTuple):
    """A value on its way into a join, and the side from which it comes."""

    is_left: bool
    value: Any


@dataclass(frozen=True, slots=True)
class JoinSide:
    """Tell the records of one side of a join from those of the other."""

    is_left: bool

    def __call__(self) -> Processor:
        return _JoinSide(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"join_side({'left' if self.is_left else 'right'})"


class SideStores(NamedTuple):
    """The stores of one side. ``unmatched``: of those that wait for a partner; None if they do not."""

    records: str
    unmatched: str | None = None


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """Join two streams. ``keeps_left``, ``keeps_right``: records of that side are sent without a partner too."""

    windows: JoinWindows
    joiner: Joiner
    left: SideStores
    right: SideStores
    keeps_left: bool = False
    keeps_right: bool = False

    def __call__(self) -> Processor:
        return _StreamJoin(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        how = {(False, False): "inner", (True, False): "left", (True, True): "outer"}[self.keeps_left, self.keeps_right]
        return f"stream_join({how}, {self.windows}, left={self.left.records}, right={self.right.records})"


class _JoinSide(Processor):
    def __init__(self, settings: JoinSide) -> None:
        self._is_left = settings.is_left

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        self.context.forward(make_record((key, Sided(self._is_left, value), timestamp, headers)))


class _Side:
    """One side of the join, as the other one sees it."""

    def __init__(self, settings: StreamJoin, context: ProcessorContext, *, is_left: bool) -> None:
        names, windows = settings.left if is_left else settings.right, settings.windows
        self.is_left = is_left
        self.is_kept = settings.keeps_left if is_left else settings.keeps_right
        self.back_ms = windows.before_ms if is_left else windows.after_ms
        self.ahead_ms = windows.after_ms if is_left else windows.before_ms
        self.waits_ms = self.ahead_ms + windows.grace_ms
        self.records: JoinStore = context.store(names.records)
        self.unmatched: RecordStore | None = None if names.unmatched is None else context.store(names.unmatched)

    def pop_over(self, clock_ms: int) -> Iterable[Waiting]:
        """Take out the records that wait for no partner any more; where there are many, one by one."""
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
        if self._has_waiting:
            clock_ms = self.context.observe(timestamp)
            self._lateness.record(clock_ms - timestamp)
            self._send_over(clock_ms)
        if value is None or (key is None and not this.is_kept):
            skipped = make_record((key, value, timestamp, headers))
            self.context.drop(skipped, SKIPPED_RECORDS, reason="null-key" if key is None else "null-value")
            return
        if key is None:
            self._send(this, key, value, None, timestamp, headers)
            return
        found = other.records.fetch(key, max(0, timestamp - this.back_ms), max(0, timestamp + this.ahead_ms))
        for at, partner in found:
            if other.unmatched is not None:
                other.unmatched.remove(key, at)
            self._send(this, key, value, partner, max(timestamp, at), headers)
        if not found and this.is_kept:
            if this.unmatched is None or timestamp + this.waits_ms < self.context.observed_time_ms:
                self._send(this, key, value, None, timestamp, headers)
            else:
                this.unmatched.put(key, value, timestamp)
        this.records.put(key, value, timestamp)

    def on_watermark(self, watermark_ms: int) -> None:
        if self._has_waiting:
            self._send_over(self.context.observe(watermark_ms))

    def _send_over(self, clock_ms: int) -> None:
        right, left = self._right.pop_over(clock_ms), self._left.pop_over(clock_ms)
        if right or left:
            sides = (((self._right, one) for one in right), ((self._left, one) for one in left))
            for side, (timestamp, _, key, value) in merge(*sides, key=_by_time):
                self._send(side, key, value, None, timestamp, ())

    def _send(self, side: _Side, key: Any, value: Any, partner: Any, timestamp: int, headers: Any) -> None:
        left, right = (value, partner) if side.is_left else (partner, value)
        self.context.forward(make_record((key, self._joiner(key, left, right), timestamp, headers)))


def _by_time(over: tuple[_Side, Waiting]) -> tuple[int, bool, bytes]:
    side, (timestamp, key_bytes, _, _) = over
    return timestamp, side.is_left, key_bytes
