"""Stores of sessions, records, versions, pairs and updates held back that are larger than their memory.

Each is its kind's own class behind `SpillingRows`, which brings into memory what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from rewindow.streams.record import MAX_MS, UNKNOWN, Windowed
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.state.join_store import JoinStore, RecordKey, RecordStore, Waiting
from rewindow.streams.state.prefix_store import PrefixStore
from rewindow.streams.state.session_store import SessionStore
from rewindow.streams.state.spill import GONE, PAGE, OpenSpill, Row, TimedSpill
from rewindow.streams.state.spilling_key_value import SpillingStore
from rewindow.streams.state.spilling_rows import NUMBER, SpillingRows
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.state.suppress_buffer import Buffered, TimeOrderedBuffer
from rewindow.streams.state.versioned_store import VersionedStore, VersionKey


class SpillingSessions(SpillingRows, SessionStore):
    """Sessions; one is over with its retention."""

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """See `SessionStore`. Memory holds what it gives."""
        here = super().fetch_all(from_ms, to_ms)
        if self._spill is None:
            return here
        found, after = list(here), (min(max(from_ms, self._over_ms() + 1, 0), MAX_MS), b"")
        while page := self._spill.due(min(to_ms, MAX_MS), PAGE, after):
            found += (self._codec.load(row[1]) for row in page)
            after = (page[-1][3] or 0, page[-1][0])
        return iter(sorted(found, key=_by_end))

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `SessionStore`."""
        return self.fetch_all(0, MAX_MS)

    def _keys_here(self) -> Collection[Any]:
        return self._sessions_of

    def _count_here(self) -> int:
        return len(self._values)

    def _admit(self, row_key: Windowed, value: Any) -> None:
        self._set(row_key, value)

    def _forget_all(self) -> None:
        self._values, self._sessions_of, self._keys_at, self._all_bounds = {}, {}, {}, []

    def _place(self, row_key: Windowed) -> tuple[Any, Sequence[int]]:
        return row_key.key, (row_key.window.end_ms, row_key.window.start_ms)

    def _due_at(self, row_key: Windowed, value: Any) -> int:
        del value
        return row_key.window.end_ms

    def _over_ms(self) -> int:
        return self._latest_end_ms - self.builder.retention_ms


class SpillingRecords(SpillingRows, RecordStore):
    """Records that wait for their time."""

    def pop_before(self, time_ms: int) -> Iterable[Waiting]:
        """See `RecordStore`. What lies on the spill comes page by page."""
        here = super().pop_before(time_ms)
        if time_ms <= self._first_due:
            return here
        return merge(here, map(_waiting, self._take_due(time_ms - 1)), key=itemgetter(0, 1))

    def mark_before(self, time_ms: int) -> Callable[[], None]:
        """See `RecordStore`. All of them come into memory, where an attempt keeps what it does."""
        after = (-1, b"")
        while self._spill is not None and (page := self._spill.due(min(time_ms - 1, MAX_MS), PAGE, after)):
            after = (page[-1][3] or 0, page[-1][0])
            for row in page:
                self._touch(self._codec.load(row[1])[0].key)
        return super().mark_before(time_ms)

    def _keys_here(self) -> Collection[Any]:
        return self._records

    def _count_here(self) -> int:
        return RecordStore.__len__(self)

    def _admit(self, row_key: RecordKey, value: Any) -> None:
        self._insert(row_key.key, row_key.timestamp, value)

    def _forget_all(self) -> None:
        self._records, self._times, self._due = {}, [], {}

    def _place(self, row_key: RecordKey) -> tuple[Any, Sequence[int]]:
        return row_key.key, row_key[1:]

    def _due_at(self, row_key: RecordKey, value: Any) -> int:
        del value
        return row_key.timestamp


class SpillingJoin(SpillingRecords, JoinStore):
    """Records of one side of a join; one is over with its retention."""

    def _over_ms(self) -> int:
        return self._clock_ms - self.builder.retention_ms


class SpillingVersions(SpillingRows, VersionedStore):
    """Versions of each key. What nobody can reach any more leaves at a checkpoint, as it does in memory."""

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        if self._spill is not None:
            self._empty()
            self._forget_unreachable(self._spill)
        return super().take_changes()

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `VersionedStore`."""
        if self._spill is None:
            return super().contents()
        return chain.from_iterable(map(self._reachable, _groups(super().contents())))

    def _reachable(self, rows: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        return rows[self._unreachable([(row_key.valid_from, version.value) for row_key, version in rows]) :]

    def _forget_unreachable(self, spill: TimedSpill) -> None:
        oldest_ms, gone = self._oldest_ms, list[Row]()
        holds: Row | None = None
        """Of a key: the last version so far that began before the history does."""
        for row in chain(self._resting_rows(), [(b"", "", 0, None)]):
            start, valid_from = row[0][:-8], NUMBER.unpack(row[0][-8:])[0] if row[0] else MAX_MS
            if holds is not None:
                is_over = start == holds[0][:-8] and valid_from <= oldest_ms
                if is_over or self._codec.load(holds[1])[1].value is None:
                    gone.append(holds)
            holds = row if valid_from <= oldest_ms else None
            if len(gone) >= PAGE or not row[0]:
                self._resting -= len(gone)
                self._strike(spill, gone)
                gone.clear()

    def _keys_here(self) -> Collection[Any]:
        return self._versions

    def _count_here(self) -> int:
        return VersionedStore.__len__(self)

    def _admit(self, row_key: VersionKey, value: Any) -> None:
        self._insert(row_key, value.value)

    def _forget_all(self) -> None:
        self._versions = {}

    def _place(self, row_key: VersionKey) -> tuple[Any, Sequence[int]]:
        return row_key.key, row_key[1:]


class SpillingBuffer(SpillingRows, TimeOrderedBuffer):
    """Updates held back. The builder may say how many of them, or of their bytes, memory holds at most."""

    def pop_until(self, time_ms: int) -> Iterable[tuple[Any, Buffered]]:
        """See `TimeOrderedBuffer`."""
        return super().pop_until(time_ms) if time_ms < self._first_due else self._pop_until(time_ms)

    def pop_oldest(self) -> tuple[Any, Buffered]:
        """See `TimeOrderedBuffer`."""
        here = self._top()
        if self._spill is not None and (here is None or here[0] >= self._first_due):
            for _, text, _, due_ms in self._look_for_due(self._spill):
                key = self._codec.load(text)[0]
                if here is None or (due_ms, encode_key(key)) < here[:2]:
                    self._bring(self._spill, key)
        return super().pop_oldest()

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        super().restore(rows, clock_ms)
        if self._spill is not None:
            self.size = sum(self._codec.load(row[1])[1].size for row in self._resting_rows())

    def _take_until(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        here = super()._take_until(time_ms)
        return here if time_ms < self._first_due else merge(here, self._off_the_spill(time_ms), key=_by_due)

    def _off_the_spill(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        for key, entry in self._take_due(time_ms):
            self.size -= entry.size
            yield key, entry

    def _most_rows(self, sample: Sequence[tuple[Any, Any]]) -> int:
        most, builder = super()._most_rows(sample), self.builder
        if builder.memory_records is not None:
            most = min(most, builder.memory_records)
        if builder.memory_bytes is not None and sample:
            most = min(most, builder.memory_bytes * len(sample) // max(1, sum(entry.size for _, entry in sample)))
        return max(1, most)

    def _keys_here(self) -> Collection[Any]:
        return self._entries

    def _count_here(self) -> int:
        return len(self._entries)

    def _admit(self, row_key: Any, value: Buffered) -> None:
        self._set(row_key, value, None)

    def _forget_all(self) -> None:
        self._entries, self._times, self._due, self._heaps = {}, [], {}, {}

    def _place(self, row_key: Any) -> tuple[Any, Sequence[int]]:
        return row_key, ()

    def _due_at(self, row_key: Any, value: Buffered) -> int:
        del row_key
        return value.buffer_time


class SpillingPairs(PrefixStore, SpillingStore):
    """Pairs by their first part. What was put since memory was empty is found by its index, the rest by its bytes."""

    def __init__(self, builder: StoreBuilder, spill: OpenSpill, memory_bytes: int) -> None:
        """See `SpillingStore`."""
        SpillingStore.__init__(self, builder, spill, memory_bytes)
        self._by_first = {}

    def beginning_with(self, first: Any) -> Iterable[tuple[Any, Any]]:
        """See `PrefixStore`. What lies on the spill comes page by page: write when all has come."""
        here = super().beginning_with(first)
        return here if self._spill is None else merge(here, self._resting_pairs(first), key=_pair_bytes)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        SpillingStore.restore(self, rows, clock_ms)
        self._index()

    def _resting_pairs(self, first: Any) -> Iterator[tuple[Any, Any]]:
        after = start = encode_key((first,))
        known = self._by_first.get(encode_key(first), ())
        while self._spill is not None and (page := self._spill.page((after, start + b"\xff" * 5), PAGE)):
            after = page[-1][0]
            for _, text, number, _ in page:
                if not number & GONE:
                    key, value = self._codec.load(text)
                    if key not in known and key not in self._gone:
                        yield key, value

    def _empty(self) -> None:
        super()._empty()
        self._by_first.clear()


def _by_end(session: tuple[Windowed, Any]) -> tuple[int, int, bytes]:
    key, (start_ms, end_ms, _) = session[0]
    return end_ms, start_ms, encode_key(key)


def _waiting(row: tuple[RecordKey, Any]) -> Waiting:
    (key, timestamp, _), value = row
    return Waiting(timestamp, encode_key(key), key, value)


def _groups(rows: Iterable[tuple[Any, Any]]) -> Iterator[list[tuple[Any, Any]]]:
    for _, group in groupby(rows, key=lambda row: row[0].key):
        yield list(group)


def _by_due(held: tuple[Any, Buffered]) -> tuple[int, bytes]:
    return held[1].buffer_time, encode_key(held[0])


def _pair_bytes(pair: tuple[Any, Any]) -> bytes:
    return encode_key(pair[0])
