"""The spill of a window store: its windows share one file and one memory budget.

On the spill, rows are ordered by window start, then key bytes, as in a changelog.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rewindow.streams.record import Window, Windowed
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.state.key_rows import KeyRows
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.memory_budget import MemoryBudget
from rewindow.streams.state.spill import Codec, Disk
from rewindow.streams.state.spill_file import SpillFile
from rewindow.streams.state.spilling_rows import SpillingRows
from rewindow.streams.state.stores import StoreBuilder, codec_of

_INDEX_SHARE = 4
"""The index of each key's window starts may use one part in this many of the store's memory."""


class WindowSpill:
    """Creates the rows of windows, and flushes all windows together when memory is full."""

    def __init__(self, builder: StoreBuilder, disk: Disk, key_type: KeyType, windows: Mapping[int, KeyRows]) -> None:
        """``windows``: the live windows by start; the store changes them."""
        self._builder, self._disk, self._key_type, self._windows = builder, disk, key_type, windows
        self._codec, self._file = codec_of(builder), SpillFile(builder.name, disk)
        self.budget = MemoryBudget(self)
        self._expired: list[tuple[int, SpillingRows]] = []
        """Windows that have expired but still have rows on the spill."""

    def rows_at(self, start_ms: int) -> SpillingRows:
        """Return the empty rows of a new window."""
        window = Window(start_ms, start_ms + self._builder.window_size_ms)
        return SpillingRows(
            self._key_type,
            _key_codec(self._codec, window),
            self._file,
            prefix=encode_key(start_ms),
            budget=self.budget,
        )

    def starts_index(self) -> SpillingRows:
        """Return empty rows for the starts of each key's windows."""
        memory_bytes = self._file.memory_bytes // _INDEX_SHARE
        file = SpillFile(self._builder.name, Disk(self._disk.spill, memory_bytes))
        return SpillingRows(self._key_type, _starts_codec(self._codec), file)

    def expire(self, start_ms: int, rows: KeyRows) -> None:
        """Delete an expired window's rows, at the next flush: until then an attempt may be rolled back."""
        if isinstance(rows, SpillingRows) and rows.is_spilled:
            self._expired.append((start_ms, rows))

    def take_changes(self) -> Collection[tuple[Any, Any]] | None:
        """See `Store`; None if all rows are in memory."""
        if self._file.spill is None:
            return None
        self.flush()
        return self._file.take_changes(self._codec)

    def count_resident(self) -> int:
        """See `Resident`."""
        return sum(rows.count_resident() for rows in self._live())

    def capacity(self) -> int:
        """See `Resident`. The sample is of the window with most rows."""
        return max(self._live(), key=SpillingRows.count_resident).capacity() if self._windows else 1

    def flush(self) -> None:
        """See `Resident`."""
        for rows in self._live():
            rows.flush()
        for start_ms, rows in self._expired:
            if self._windows.get(start_ms) is not rows:  # unless the expiry was rolled back
                rows.delete_spilled()
        self._expired.clear()

    def _live(self) -> list[SpillingRows]:
        return [rows for rows in self._windows.values() if isinstance(rows, SpillingRows)]


def _key_codec(codec: Codec, window: Window) -> Codec:
    """Return the codec of one window's rows, by bare key; the text names the window too."""

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
    keys = _key_codec(codec, Window(0, 0))

    def load(text: str) -> tuple[Any, Any]:
        key, starts = load_value(text)
        return keys.load_key(key), tuple(starts)

    return Codec(lambda key, starts: dump_value((keys.dump_key(key), starts)), load, keys.dump_key, keys.load_key)
