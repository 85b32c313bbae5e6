"""State: what a processor keeps between records, epochs and runs.

A store is named by the user and owned by one sub-topology; each task has its own instance. Reads are by key or in the
order of the keys' bytes (`core.encoding`), never in the order of a hash. What changed since the last snapshot is
tracked, so a run writes only that: one row a key, the value or a tombstone.

Values are plain data. One that can be changed in place (a list, a dict) is copied on its way in and out, so a run that
is cut in two sees what one run sees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewindow.core.encoding import by_bytes, encode_key
from rewindow.core.json_codec import lost_class
from rewindow.core.record import UNKNOWN, Window, Windowed
from rewindow.errors import ConfigError, DataError

KEY_VALUE, WINDOW, BUFFER = "key-value", "window", "buffer"
_ATOMS = frozenset((str, int, float, bool, bytes, type(None)))


class Stamped(NamedTuple):
    """A value and the timestamp of its result, as tables keep them."""

    value: Any
    timestamp: int


@dataclass(frozen=True, slots=True)
class StoreBuilder:
    """What a store is: its name, kind, declared types (for typed changelog columns) and retention."""

    name: str
    kind: str = KEY_VALUE
    key: Any = None
    value: Any = None
    is_stamped: bool = False
    """Values are `Stamped`: the changelog has a ``_timestamp`` column."""
    is_nullable: bool = False
    """Values may be null while the key is kept: the changelog has an ``_is_null`` column."""
    window_size_ms: int = 0
    retention_ms: int = 0


def key_value_store(name: str, *, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a key-value store. ``key`` and ``value`` are Python types; undeclared ones are kept as JSON text."""
    return StoreBuilder(name, KEY_VALUE, key, value)


def window_store(name: str, *, size_ms: int, retention_ms: int, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a window store. A window is forgotten once the newest start is ``retention_ms`` past its own start.

    Raises `ConfigError` if the retention is smaller than the size.
    """
    if retention_ms < size_ms:
        message = f"store {name!r}: the retention ({retention_ms} ms) is smaller than the windows ({size_ms} ms)"
        raise ConfigError(message)
    return StoreBuilder(name, WINDOW, key, value, window_size_ms=size_ms, retention_ms=retention_ms)


class Store(ABC):
    """What every kind of store can do."""

    def __init__(self, builder: StoreBuilder) -> None:
        self.builder = builder
        self._changed: dict[Any, bool] = {}
        """What was written since `take_changes`; True where the checkpoint has never seen the key."""

    def _note_removal(self, key: Any) -> None:
        """Track that a key is gone: what came and went between two checkpoints leaves no trace in them."""
        if self._changed.get(key):
            del self._changed[key]
        else:
            self._changed[key] = False

    def _check_comes_back(self, value: Any) -> None:
        """Refuse, where no type was declared, a value that a restart would change. Raises `DataError`."""
        lost = lost_class(value) if self.builder.value is None else None
        if lost is not None:
            message = (
                f"store {self.name!r}: a {lost.__name__} would come back from a checkpoint as plain data: declare a "
                f"NamedTuple with value={lost.__name__}, or keep plain data"
            )
            raise DataError(message)

    @property
    def name(self) -> str:
        """The user's name for it."""
        return self.builder.name

    @abstractmethod
    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """Take in ``(key, value)`` rows of a checkpoint, later rows of a key winning, a None value deleting it."""

    @abstractmethod
    def take_changes(self) -> list[tuple[Any, Any]]:
        """Return ``(key, value)`` of what changed, by key bytes, with None for what is gone; and start anew."""

    @abstractmethod
    def contents(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over the current keys and values by key bytes."""

    @property
    def clock_ms(self) -> int:
        """The store's own clock, part of the checkpoint; -1 for a store that has none."""
        return UNKNOWN


class KeyValueStore(Store):
    """Keys and values, in memory."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._values: dict[Any, Any] = {}
        self._all_frozen = True
        """No value was ever put that can be changed in place: what is read needs no copy."""

    def get(self, key: Any) -> Any:
        """Return the value, or None."""
        value = self._values.get(key)
        return value if self._all_frozen else deepcopy(value)

    def put(self, key: Any, value: Any) -> None:
        """Set the value; None deletes the key."""
        if value is None:
            self.delete(key)
            return
        if key not in self._changed:
            self._changed[key] = key not in self._values
        self._values[key] = value if value.__class__ in _ATOMS else self._own(value)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value unless the key has one; return the one it had, or None."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def delete(self, key: Any) -> Any:
        """Delete the key; return the value it had, or None."""
        if key not in self._values:
            return None
        self._note_removal(key)
        return self._values.pop(key)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over ``(key, value)`` by key bytes. Writing meanwhile is safe and not seen."""
        values = self._values.copy()
        for key in by_bytes(values):
            yield key, values[key] if self._all_frozen else deepcopy(values[key])

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate as `all` over the keys whose bytes lie between those of ``first`` and ``last``, both included."""
        low, high = encode_key(first), encode_key(last)
        for key, value in self.all():
            if low <= encode_key(key) <= high:
                yield key, value

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._values)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        del clock_ms
        for key, value in rows:
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = self._own(value)

    def take_changes(self) -> list[tuple[Any, Any]]:
        """See `Store`."""
        changed, self._changed = self._changed, {}
        return [(key, self._values.get(key)) for key in by_bytes(changed)]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.all()

    def _own(self, value: Any) -> Any:
        """Return the value itself if nothing can change it in place, else a copy. Refuse what a restart would change."""
        self._check_comes_back(value.value if value.__class__ is Stamped else value)
        if _is_frozen(value):
            return value
        self._all_frozen = False
        return deepcopy(value)


class WindowStore(Store):
    """A key-value store for each window start. Its clock is the newest start put; expired windows are gone at once."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._windows: dict[int, KeyValueStore] = {}
        self._newest_start_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The newest window start put so far."""
        return self._newest_start_ms

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Set the value of a key's window; None deletes it. A window that has expired is not written."""
        if start_ms > self._newest_start_ms:
            self._newest_start_ms = start_ms
            self._forget_expired()
        if start_ms in self._windows:
            self._windows[start_ms].put(key, value)
        elif not self._is_expired(start_ms):
            self._window(start_ms).put(key, value)

    def fetch(self, key: Any, start_ms: int) -> Any:
        """Return the value of a key's window, or None."""
        window = self._windows.get(start_ms)
        return None if window is None else window.get(key)

    def fetch_range(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """Iterate over ``(start, value)`` of a key's windows that start in ``[from, to]``, ascending."""
        for start_ms in sorted(start for start in self._windows if from_ms <= start <= to_ms):
            if (value := self.fetch(key, start_ms)) is not None:
                yield start_ms, value

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over all windows that start in ``[from, to]``, by start, then key bytes."""
        inside = sorted(start for start in self._windows if from_ms <= start <= to_ms)
        for start_ms, window in [(start, self._windows[start]) for start in inside]:
            for key, value in window.all():
                yield self._windowed(start_ms, key), value

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. Rows of windows that have expired at ``clock_ms`` are not taken in."""
        self._newest_start_ms = clock_ms
        for windowed, value in rows:
            start_ms = windowed.window.start_ms
            if not self._is_expired(start_ms):
                self._window(start_ms).restore([(windowed.key, value)])

    def take_changes(self) -> list[tuple[Any, Any]]:
        """See `Store`. What has expired needs no tombstone: the clock tells."""
        return [
            (self._windowed(start_ms, key), value)
            for start_ms, window in sorted(self._windows.items())
            for key, value in window.take_changes()
        ]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.fetch_all(0, self._newest_start_ms)

    def _window(self, start_ms: int) -> KeyValueStore:
        if start_ms not in self._windows:
            self._windows[start_ms] = KeyValueStore(self.builder)
        return self._windows[start_ms]

    def _windowed(self, start_ms: int, key: Any) -> Windowed:
        return Windowed(key, Window(start_ms, start_ms + self.builder.window_size_ms))

    def _is_expired(self, start_ms: int) -> bool:
        return start_ms <= self._newest_start_ms - self.builder.retention_ms

    def _forget_expired(self) -> None:
        for start_ms in [start for start in self._windows if self._is_expired(start)]:
            del self._windows[start_ms]


def _is_frozen(value: Any) -> bool:
    """Return whether nothing can change a value in place."""
    if isinstance(value, tuple):
        for item in value:  # noqa: SIM110 - a generator would cost more than all the rest
            if item.__class__ not in _ATOMS and not _is_frozen(item):
                return False
        return True
    return not isinstance(value, list | dict | bytearray | set)
