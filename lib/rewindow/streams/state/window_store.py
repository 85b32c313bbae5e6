"""A store of windows: for each window start, rows by key. A window expires one retention after its start."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import UNKNOWN, Window, Windowed
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.serde.normalizers import copied, is_frozen
from rewindow.streams.state.key_rows import KeyRows, SpillingKeyRows
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.spill import Codec, Disk, SpillFile
from rewindow.streams.state.spilling_map import MemoryBudget, SpillingMap
from rewindow.streams.state.stores import Store, StoreBuilder, codec_of, name_value

_INDEX_SHARE = 4
"""The index of each key's window starts may use one fourth of the store's memory."""


class WindowStore(Store):
    """Values by key and window start. The store's clock is the latest start that was put.

    Expired windows are deleted at once.
    """

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder)
        self._windows: dict[int, KeyRows] = {}
        self._starts: list[int] = []
        """The sorted starts of all windows."""
        self._starts_of: KeyRows | None = None
        """An index from key to the sorted starts of its windows. `fetch_range` builds it when it is None."""
        self._keys = KeyType(builder, lambda: (key for rows in self._windows.values() for key in rows.live_keys()))
        self._normalize = builder.normalizers.value
        self._all_frozen, self._watches = True, not builder.normalizers.is_frozen
        """Two flags: whether all values that were ever put are immutable, and whether new values must still be checked for
        this."""
        self._newest_start_ms = UNKNOWN
        self._calendar = builder.calendar
        self._ends: dict[int, int] = {}
        """For windows in local time: the end of each window by its start, by the clock of the zone."""
        self.restored_ends: dict[int, dict[Any, int]] = {}
        """For windows in local time: for each start and key, the end in the checkpoint, if it differs from the end by the clock
        of the zone, because the clock is another one now. The window keeps this end."""
        self._restored_bounds: list[tuple[int, int]] = []
        """The pairs (end, start) of these windows, each once, in order."""
        self._spill = None if disk is None else WindowSpill(builder, disk, self._keys, self._windows, self.window)

    @property
    def clock_ms(self) -> int:
        """The latest window start that was put so far."""
        return self._newest_start_ms

    def derive(self, key: Any, value: Any, start_ms: Any, base_ms: int) -> None:
        """Set a value as `put` does. It was computed from the value in the window that starts at ``base_ms``.

        `why` uses ``base_ms`` to find the records of the window from which the value was computed.
        """
        del base_ms
        self.put(key, value, start_ms)

    def put(self, key: Any, value: Any, start_ms: Any) -> None:
        """Set the value of a key in the window that starts at ``start_ms``; None deletes the value.

        A write to an expired window is dropped and counted. Raises `DataError` as `KeyValueStore.put` does, and for a start that
        is not an integer.
        """
        rows = self._windows.get(start_ms)
        if rows is None:
            rows = self._advance_to(start_ms)
            if rows is None:
                self._lose(Windowed(key, self.window(start_ms, key)), value)
                return
        if value is None:
            rows.pop(key)
        else:
            if key.__class__ is not self._keys.exact_class:
                key = self._keys.normalize(key)
            try:
                value = self._normalize(value)
            except DataError as error:
                name_value(error, self.name, key)
                raise
            if key not in rows.changed:
                rows.begin_change(key)
            rows.values[key] = value
            if self._watches:
                self._watch(value)
        if self._starts_of is not None:
            _note_start(self._starts_of, key, start_ms, is_there=value is not None)

    def fetch(self, key: Any, start_ms: int) -> Any:
        """Return the value of a key in the window that starts at ``start_ms``, or None."""
        rows = self._windows.get(start_ms)
        if rows is None:
            return None
        return rows.get(key) if self._all_frozen else copied(rows.get(key))

    def find(self, key: Windowed) -> Any:
        """Return the value of a windowed key, or None."""
        return self.fetch(key.key, key.window.start_ms)

    def fetch_range(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """Iterate over ``(start, value)`` of a key's windows that start in ``[from_ms, to_ms]``, in the order of starts.

        Writes during the iteration are safe and do not affect it.
        """
        if self._starts_of is None:
            self._starts_of = self._index_starts()
        starts = self._starts_of.get(key) or ()
        wanted = starts[bisect_left(starts, from_ms) : bisect_right(starts, to_ms)]
        return iter([(start_ms, self.fetch(key, start_ms)) for start_ms in wanted])

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over ``(windowed key, value)`` of all windows that start in ``[from_ms, to_ms]``, by start, then key bytes.

        Writes during the iteration are safe and do not affect it.
        """
        wanted = self._starts[bisect_left(self._starts, from_ms) : bisect_right(self._starts, to_ms)]
        for start_ms, rows in [(start, self._windows[start].scan()) for start in wanted]:
            for key, value in rows:
                yield Windowed(key, self.window(start_ms, key)), value if self._all_frozen else copied(value)

    def fetch_ended(self, after_ms: int, until_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate as `fetch_all` does, over the windows in local time that end in ``(after_ms, until_ms]``."""
        starts = self._starts
        first, last = bisect_right(starts, after_ms - self.builder.window_size_ms), bisect_left(starts, until_ms)
        first, last = (bisect_right(starts, time_ms, first, last, key=self._end_of) for time_ms in (after_ms, until_ms))
        if not self.restored_ends:
            return self.fetch_all(starts[first], starts[last - 1]) if first < last else iter(())
        bounds = self._restored_bounds
        due = bounds[bisect_left(bounds, (after_ms + 1, 0)) : bisect_left(bounds, (until_ms + 1, 0))]
        wanted = sorted({*starts[first:last], *(start_ms for _, start_ms in due)})
        found = [row for start_ms in wanted for row in self.fetch_all(start_ms, start_ms)]
        return (row for row in found if after_ms < row[0].window.end_ms <= until_ms)

    def window(self, start_ms: int, key: Any) -> Window:
        """Return the window of a key that starts at a time."""
        if self._calendar is None:
            return Window(start_ms, start_ms + self.builder.window_size_ms)
        kept = self.restored_ends.get(start_ms)
        kept_ms = kept.get(key) if kept else None
        return Window(start_ms, self._end_of(start_ms) if kept_ms is None else kept_ms)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. Rows of windows that have expired at ``clock_ms`` are skipped."""
        self._newest_start_ms = clock_ms
        for (key, window), value in rows:
            if self._is_expired(window.start_ms):
                continue
            if self._calendar is not None and window.end_ms != self._end_of(window.start_ms):
                self.restored_ends.setdefault(window.start_ms, {})[key] = window.end_ms
            own = self._rows_at(window.start_ms)
            if value is None:
                own.drop(key)
                continue
            if self._watches:
                self._watch(value)
            taken = key if key.__class__ is self._keys.exact_class else self._keys.normalize(key)
            own.take_in(taken, value if self._all_frozen else copied(value))
        for own in self._windows.values():
            own.end_restore()
        self._starts_of = None
        kept = {(end_ms, start_ms) for start_ms, ends in self.restored_ends.items() for end_ms in ends.values()}
        self._restored_bounds = sorted(kept)

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. Expired windows need no tombstones, because a restore knows the clock and skips them."""
        spilled = None if self._spill is None else self._spill.take_changes()
        if spilled is not None:
            return spilled
        return [
            (Windowed(key, self.window(start_ms, key)), value)
            for start_ms in self._starts
            for key, value in self._windows[start_ms].take_changes()
        ]

    def rows(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.fetch_all(0, self._newest_start_ms)

    def __len__(self) -> int:
        """The number of rows, one for each key and window."""
        return sum(map(len, self._windows.values()))

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        if self._spill is not None:
            self._spill.budget.hold(is_held=is_held)

    def savepoint(self, key: Any, start_ms: int) -> Callable[[], None]:
        """Return a function that restores what a write to this key and window will change (see `streams.error_policy`)."""
        own = self._windows.get(start_ms)
        if own is None:
            return self._savepoint_of_windows()
        try:
            roll_back_row = own.savepoint(self._keys.as_stored(key))
        except TypeError:
            # The key is unhashable, so the write will be refused.
            return lambda: None

        def roll_back() -> None:
            roll_back_row()
            self._starts_of = None

        return roll_back

    def _savepoint_of_windows(self) -> Callable[[], None]:
        windows, starts, newest_ms = self._windows.copy(), self._starts.copy(), self._newest_start_ms
        restored_ends = self.restored_ends

        def roll_back() -> None:
            self._windows.clear()
            self._windows.update(windows)
            self._starts, self._newest_start_ms, self._starts_of = starts, newest_ms, None
            self.restored_ends = restored_ends

        return roll_back

    def _index_starts(self) -> KeyRows:
        index = KeyRows(self._keys) if self._spill is None else self._spill.starts_index()
        for start_ms in self._starts:
            for key in self._windows[start_ms].live_keys():
                _note_start(index, key, start_ms, is_there=True)
        return index

    def _advance_to(self, start_ms: Any) -> KeyRows | None:
        """Advance the clock to the start of a new window. Return the window's rows, or None if the window has expired."""
        if start_ms.__class__ is not int:
            raise DataError(
                "window-start-invalid",
                "store {store!r}: the start of a window must be epoch milliseconds, not {start}",
                store=self.name,
                start=repr(start_ms),
            )
        if start_ms > self._newest_start_ms:
            self._newest_start_ms = start_ms
            self._forget_expired()
        return None if self._is_expired(start_ms) else self._rows_at(start_ms)

    def _rows_at(self, start_ms: int) -> KeyRows:
        rows = self._windows.get(start_ms)
        if rows is None:
            rows = KeyRows(self._keys) if self._spill is None else self._spill.rows_at(start_ms)
            self._windows[start_ms] = rows
            insort(self._starts, start_ms)
        return rows

    def _end_of(self, start_ms: int) -> int:
        end_ms = self._ends.get(start_ms)
        if end_ms is None:
            end_ms = self._ends[start_ms] = self.builder.end_of(start_ms)
        return end_ms

    def _is_expired(self, start_ms: int) -> bool:
        return start_ms <= self._newest_start_ms - self.builder.retention_ms

    def _forget_expired(self) -> None:
        expired = bisect_right(self._starts, self._newest_start_ms - self.builder.retention_ms)
        for start_ms in self._starts[:expired]:
            rows = self._windows.pop(start_ms)
            if self._spill is not None:
                self._spill.expire(start_ms, rows)
            if self._starts_of is not None:
                for key in rows.live_keys():
                    _note_start(self._starts_of, key, start_ms, is_there=False)
            self._ends.pop(start_ms, None)
        if self.restored_ends:
            expired_ms = self._newest_start_ms - self.builder.retention_ms
            self.restored_ends = {start: ends for start, ends in self.restored_ends.items() if start > expired_ms}
        del self._starts[:expired]

    def _watch(self, value: Any) -> None:
        if not is_frozen(value):
            self._all_frozen = self._watches = False


class WindowSpill:
    """The spill of a window store. All windows share a file and a memory limit, and are flushed together when memory is full.

    On the spill, rows are ordered by window start, then key bytes, as in a changelog.
    """

    def __init__(
        self,
        builder: StoreBuilder,
        disk: Disk,
        key_type: KeyType,
        windows: Mapping[int, KeyRows],
        window_of: Callable[[int, Any], Window],
    ) -> None:
        """``windows`` maps a start to the rows of a window that has not expired. It is the store's dictionary, not a copy.

        ``window_of`` returns the window of a start and a key.
        """
        self._builder, self._disk, self._key_type, self._windows = builder, disk, key_type, windows
        self._window_of = window_of
        self._codec, self._file = codec_of(builder), SpillFile(builder.name, disk)
        self.budget = MemoryBudget(self)
        self._expired: list[tuple[int, SpillingKeyRows]] = []
        """Windows that have expired but still have rows on the spill."""

    def rows_at(self, start_ms: int) -> SpillingKeyRows:
        """Return the rows, which are still empty, of a new window."""
        codec = _key_codec(self._codec, partial(self._window_of, start_ms))
        builder, prefix = replace(self._builder, codec=codec), encode_key(start_ms)
        return SpillingKeyRows(builder, self._file, self._key_type, prefix=prefix, budget=self.budget)

    def starts_index(self) -> SpillingKeyRows:
        """Return the rows, which are still empty, of the index from key to the starts of its windows."""
        disk = Disk(self._disk.spill, self._file.memory_bytes // _INDEX_SHARE)
        builder = replace(self._builder, codec=_starts_codec(self._codec))
        return SpillingKeyRows(builder, SpillFile(builder.name, disk), self._key_type)

    def expire(self, start_ms: int, rows: KeyRows) -> None:
        """Note that a window has expired. Its rows are deleted at the next flush, because an attempt may still be rolled back."""
        if isinstance(rows, SpillingKeyRows) and rows.spilling.spill is not None:
            self._expired.append((start_ms, rows))

    def take_changes(self) -> Collection[tuple[Any, Any]] | None:
        """See `Store`; None if all rows are in memory."""
        if self._file.spill is None:
            return None
        self.flush()
        return self._file.take_changes(self._codec)

    def count_resident(self) -> int:
        """See `Resident`."""
        return sum(spilling.count_resident() for spilling in self._live())

    def capacity(self) -> int:
        """See `Resident`. The sample consists of rows of the window with the most rows."""
        return max(self._live(), key=SpillingMap.count_resident).capacity() if self._windows else 1

    def flush(self) -> None:
        """See `Resident`."""
        for spilling in self._live():
            spilling.flush()
        for start_ms, rows in self._expired:
            # If the expiry was rolled back, the window is in use again, so it must not be deleted.
            if self._windows.get(start_ms) is not rows:
                rows.spilling.delete_all()
        self._expired.clear()

    def _live(self) -> list[SpillingMap]:
        return [rows.spilling for rows in self._windows.values() if isinstance(rows, SpillingKeyRows)]


def _note_start(index: KeyRows, key: Any, start_ms: int, *, is_there: bool) -> None:
    """Update the index of window starts. ``is_there`` says whether the key has a window that starts at ``start_ms``."""
    starts = index.get(key) or ()
    position = bisect_left(starts, start_ms)
    if (position < len(starts) and starts[position] == start_ms) is is_there:
        return
    others = starts[position:] if is_there else starts[position + 1 :]
    starts = (*starts[:position], start_ms, *others) if is_there else starts[:position] + others
    if not starts:
        index.pop(key)
        return
    if key not in index.changed:
        index.begin_change(key)
    index.values[key] = starts


def _key_codec(codec: Codec, window_of: Callable[[Any], Window]) -> Codec:
    """Return the codec of one window's rows. Rows in memory have plain keys, and their texts have windowed keys.

    ``window_of`` returns the window of a key.
    """

    def load(text: str) -> tuple[Any, Any]:
        windowed, value = codec.load(text)
        return windowed.key, value

    return Codec(
        lambda key, value: codec.dump(Windowed(key, window_of(key)), value),
        load,
        lambda key: codec.dump_key(Windowed(key, window_of(key))),
        lambda text: codec.load_key(text).key,
    )


def _starts_codec(codec: Codec) -> Codec:
    """Return the codec of rows of the index: a key, and the starts of its windows."""
    keys = _key_codec(codec, lambda _key: Window(0, 0))

    def load(text: str) -> tuple[Any, Any]:
        key, starts = load_value(text)
        return keys.load_key(key), tuple(starts)

    return Codec(lambda key, starts: dump_value((keys.dump_key(key), starts)), load, keys.dump_key, keys.load_key)
