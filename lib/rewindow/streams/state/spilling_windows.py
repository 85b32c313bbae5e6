"""A window store that is larger than its memory: each window is a spilling store, and all share a spill and the memory.

Rules of this file:

1. Memory is counted over all windows; when it is full, all of them go to the spill, and each is empty in memory.
2. On the spill windows are in the order of their starts, keys of each in that of their bytes: the order of a checkpoint.
3. Rows of a window that has expired leave the spill when nobody can take its expiry back.
4. Nobody can tell it from a store in memory, but by its speed. What stays in memory is a window's own object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from rewindow.streams.record import UNKNOWN, Window, Windowed
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.spill import ALL, STEP, Changes, Codec, OpenSpill, Part, Spill
from rewindow.streams.state.spilling_key_value import SAMPLE, SpillingStore
from rewindow.streams.state.stores import KEY_VALUE, KeepFunctions, StoreBuilder
from rewindow.streams.state.window_store import WindowStore, note_start

_INDEX_SHARE = 4
"""Which part of the memory is that of the starts of each key's windows."""


class SpillingWindows(WindowStore):
    """A window store whose memory is bound."""

    _windows: dict[int, _Window]  # type: ignore[assignment]

    def __init__(self, builder: StoreBuilder, spill: OpenSpill, memory_bytes: int) -> None:
        """``spill`` is opened when it is needed first."""
        super().__init__(builder)
        self._keys = KeyType(builder, lambda: (key for window in self._windows.values() for key in window.live_keys()))
        self._codec = builder.codec or _plain(builder.window_size_ms)
        self._open = spill
        self._spill: Spill | None = None
        self._memory_bytes = memory_bytes
        self._left = 1
        """How many rows may come until it is looked whether there are too many."""
        self._expired: list[_Window] = []
        """Windows that have expired, and whose rows the spill has."""
        self._checkpoint = 1
        self._is_restoring = self._is_held = False

    def make_room(self) -> None:
        """Another row has come: empty memory if it is full."""
        self._left -= 1
        if self._left > 0 or self._is_held:
            return
        rows = {start_ms: window.rows_here for start_ms, window in self._windows.items()}
        here, most = sum(rows.values()), 1
        if rows:
            most = self._windows[max(rows, key=rows.__getitem__)].most_rows(self._memory_bytes)
        if here >= most:
            self._empty()
            here = 0
        self._left = max(1, min(most - here, max(SAMPLE, here)))

    def part(self, start_ms: int) -> Part:
        """Return a window's part of the spill."""
        if self._spill is None:
            self._spill = self._open(self.name)
        return Part(self._spill, encode_key(start_ms))

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `WindowStore`. However many rows there are, memory holds a few of them."""
        self._newest_start_ms = clock_ms
        self._is_restoring = True
        for windowed, value in rows:
            start_ms = windowed.window.start_ms
            if not self._is_expired(start_ms):
                self._window(start_ms)
                self._windows[start_ms].take_in([(windowed.key, value)])
        self._is_restoring = False
        for window in self._windows.values():
            window.end_restore()
        self.forget_starts()

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. They are read one by one, before anything else is written."""
        if self._spill is None:
            return super().take_changes()
        self._empty()
        self._checkpoint += 1
        for window in self._windows.values():
            window.begin_anew(self._checkpoint)
        return Changes(self._spill, self._codec, STEP * (self._checkpoint - 1))

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        self._is_held = is_held
        for window in self._windows.values():
            window.hold(is_held=is_held)
        if not is_held:
            self.make_room()

    def _empty(self) -> None:
        for window in self._windows.values():
            window.put_away()
        for window in self._expired:
            if self._windows.get(window.start_ms) is not window:  # else its expiry was taken back
                window.leave()
        self._expired.clear()

    def _let_go(self, window: KeyValueStore) -> None:
        if isinstance(window, _Window) and window.is_spilling:
            self._expired.append(window)

    def _index(self) -> SpillingStore:
        kept = self.builder.kept
        keep_functions = KeepFunctions(kept.key, lambda starts: starts, kept.has_one_type, is_frozen=True)
        builder = replace(self.builder, kind=KEY_VALUE, keep_functions=keep_functions, codec=_starts_codec(self._codec))
        index = SpillingStore(builder, self._open, self._memory_bytes // _INDEX_SHARE, self._keys)
        for start_ms in self._starts:
            for key in self._windows[start_ms]:
                index.put(key, (*(index.get(key) or ()), start_ms))
        return index

    def _note_start(self, starts_of: SpillingStore, key: Any, start_ms: int, *, is_there: bool) -> None:
        starts = list(starts_of.get(key) or ())
        if note_start(starts, start_ms, is_there=is_there):
            starts_of.put(key, tuple(starts) or None)

    def _new_window(self, start_ms: int) -> _Window:
        window = _Window(self, start_ms, self._codec, self._keys)
        window.begin_anew(self._checkpoint)
        window.hold(is_held=self._is_held)
        if self._is_restoring:
            window.begin_restore()
        return window


class _Window(SpillingStore):
    """One window. When memory is full is up to all of them."""

    def __init__(self, windows: SpillingWindows, start_ms: int, codec: Codec, keys: KeyType) -> None:
        super().__init__(windows.builder, lambda _name: windows.part(start_ms), 0, keys)
        self.start_ms = start_ms
        self._codec = _key_codec(codec, Window(start_ms, start_ms + windows.builder.window_size_ms))
        self._make_room = windows.make_room  # type: ignore[method-assign]
        self._look_at = 0

    @property
    def rows_here(self) -> int:
        """How many rows are in memory, about."""
        return len(self._values) + len(self._gone)

    @property
    def is_spilling(self) -> bool:
        """Whether the spill may have rows of it."""
        return self._spill is not None

    def live_keys(self) -> Iterable[Any]:
        """Iterate over the keys that it has, without a change of what lies where."""
        return self._live_keys()

    def begin_anew(self, checkpoint: int) -> None:
        """What changes from now on is another checkpoint's."""
        self._checkpoint = checkpoint

    def hold(self, *, is_held: bool) -> None:
        """See `Store`. Room is made for all windows together."""
        self._is_held = is_held

    def put_away(self) -> None:
        """Put all on the spill that is in memory."""
        if self._values or self._changed or self._gone:
            self._empty()

    def leave(self) -> None:
        """Take its rows off the spill; who still reads them goes on in a copy."""
        for walk in self._walks:
            walk.step_aside()
        if self._spill is not None:
            self._spill.cut_out(ALL)


def _key_codec(codec: Codec, window: Window) -> Codec:
    """Return the codec of a window's own keys: the rows are those of windowed ones."""

    def load(text: str) -> tuple[Any, Any]:
        windowed, value = codec.load(text)
        return windowed.key, value

    return Codec(
        lambda key, value: codec.dump(Windowed(key, window), value),
        load,
        lambda key: codec.dump_key(Windowed(key, window)),
        lambda text: codec.load_key(text).key,
    )


def _starts_codec(codec: Codec) -> Codec:
    """Return the codec of a key and the starts of its windows."""
    nowhere = Window(0, 0)

    def load(text: str) -> tuple[Any, Any]:
        key, starts = load_value(text)
        return codec.load_key(key).key, tuple(starts)

    return Codec(
        lambda key, starts: dump_value((codec.dump_key(Windowed(key, nowhere)), starts)),
        load,
        lambda key: codec.dump_key(Windowed(key, nowhere)),
        lambda text: codec.load_key(text).key,
    )


def _plain(size_ms: int) -> Codec:
    """Return the codec of windows whose types nobody bound."""

    def load(text: str) -> tuple[Any, Any]:
        start_ms, key, value = load_value(text)
        return Windowed(key, Window(start_ms, start_ms + size_ms)), value

    def load_key(text: str) -> Any:
        start_ms, key = load_value(text)
        return Windowed(key, Window(start_ms, start_ms + size_ms))

    return Codec(
        lambda one, value: dump_value((one.window.start_ms, one.key, value)),
        load,
        lambda one: dump_value((one.window.start_ms, one.key)),
        load_key,
    )
