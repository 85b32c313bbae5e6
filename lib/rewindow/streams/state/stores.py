"""State: what a processor keeps between records, epochs and runs.

A store is named by the user and owned by one sub-topology; each task has its own. Reads are by key or in the order of
the keys' bytes (`streams.serde.key_bytes`), never of a hash. A run writes what changed: one row a key, the value or a tombstone.

Values are plain data, or of the declared type. What would not come back from a checkpoint equal and of the same class
is refused when it is put, and what can be changed in place (a list, a dict) is copied on its way in and out: so a run
that is cut in two sees what one run sees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.errors import ConfigError, DataError, InvariantError
from rewindow.streams.duration import to_ms
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, Measure, Metrics
from rewindow.streams.record import UNKNOWN, maker
from rewindow.streams.serde.coercion import Keep, fit_long
from rewindow.streams.serde.key_bytes import canonical
from rewindow.streams.serde.values import kind_of

if TYPE_CHECKING:
    from rewindow.streams.state.spill import Codec

KEY_VALUE, WINDOW, BUFFER, VERSIONED = "key-value", "window", "buffer", "versioned"
RECORDS, JOIN, PREFIX = "records", "join", "prefix"
SESSION = "session"


class Stamped(NamedTuple):
    """A value and the timestamp of its result, as tables keep them."""

    value: Any
    timestamp: int


make_stamped = maker(Stamped)


def stamped_keep(keep: Keep) -> Keep:
    """Return what keeps a `Stamped` value."""

    def kept(stamped: Any) -> Any:
        if stamped.__class__ is not Stamped:
            message = f"{stamped!r} ({type(stamped).__name__}) is no Stamped(value, timestamp)"
            raise DataError(message)
        value, timestamp = stamped
        own, at = keep(value), fit_long(timestamp)
        return stamped if own is value and at is timestamp else Stamped(own, at)

    return kept


def canonically(keep: Keep) -> Keep:
    """Return what keeps a key that becomes a text: equal ones become equal texts."""
    return lambda key: canonical(keep(key))


class KeepFunctions(NamedTuple):
    """What becomes of keys and values when they are put.

    ``has_one_type``: all keys that pass are of the same classes. ``is_frozen``: no value can be changed in place.
    """

    key: Keep
    value: Keep
    has_one_type: bool = False
    is_frozen: bool = False


@dataclass(frozen=True, slots=True)
class StoreBuilder:
    """What a store is: its name, kind, declared types (for typed changelog columns) and retention."""

    name: str
    kind: str = KEY_VALUE
    key: Any = None
    value: Any = None
    is_stamped: bool = False
    """Values are `Stamped`: the changelog has a ``_timestamp`` column."""
    window_size_ms: int = 0
    retention_ms: int = 0
    memory_records: int | None = field(default=None, compare=False)
    memory_bytes: int | None = field(default=None, compare=False)
    """Of a buffer that spills: how much of it memory holds."""
    keep_functions: KeepFunctions | None = field(default=None, compare=False, repr=False)
    """Given when types are bound (`streams.serde.binding.bound`); without it keys and values are plain data."""
    codec: Codec | None = field(default=None, compare=False, repr=False)
    """Given when types are bound: without it all of a store is in memory."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for a store without a name: state is kept by name."""
        name: object = self.name  # it is up to the user
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{name!r} cannot name a store: give it a text")

    @property
    def kept(self) -> KeepFunctions:
        """What becomes of keys and values when they are put."""
        if self.keep_functions is not None:
            return self.keep_functions
        keep = kind_of(self.value).keep
        key = kind_of(self.key).keep
        own = canonically(key) if self.key is None else key
        return KeepFunctions(own, stamped_keep(keep) if self.is_stamped else keep)


def key_value_store(name: str, *, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a key-value store. ``key`` and ``value`` are Python types; undeclared ones are kept as JSON text."""
    return StoreBuilder(name, KEY_VALUE, key, value)


def window_store(
    name: str, *, size: str | int | timedelta, retention: str | int | timedelta, key: Any = None, value: Any = None
) -> StoreBuilder:
    """Declare a window store. A window is forgotten once the newest start is ``retention`` past its own start.

    Both are durations (``"1h"``; an int is milliseconds). Raises `ConfigError` if the retention is smaller than the size.
    """
    size_ms, retention_ms = to_ms(size), to_ms(retention)
    if retention_ms < size_ms:
        message = f"store {name!r}: the retention ({retention_ms} ms) is smaller than the windows ({size_ms} ms)"
        raise ConfigError(message)
    return StoreBuilder(name, WINDOW, key, value, window_size_ms=size_ms, retention_ms=retention_ms)


class Store(ABC):
    """What every kind of store can do."""

    expired_reason = "window-expired"
    """Why it loses what it does not take."""

    def __init__(self, builder: StoreBuilder) -> None:
        self.builder = builder
        self.expired = Measure()
        """Counts what was put into windows that had expired, and is lost."""
        self.lost: Callable[[Any, Any], None] | None = None
        """Takes the key and value of what is lost, if anybody wants it."""
        self._changed: dict[Any, bool] = {}
        """What was written since `take_changes`; True where the checkpoint has never seen the key."""

    def _lose(self, key: Any, value: Any) -> None:
        """Count what is put into a window that has expired, and hand it on if somebody wants it."""
        self.expired.record()
        if self.lost is not None:
            self.lost(key, value)

    @property
    def name(self) -> str:
        """The user's name for it."""
        return self.builder.name

    @abstractmethod
    def hold(self, *, is_held: bool) -> None:
        """Keep all writes in memory while an attempt may be rolled back (`streams.state.savepoint`)."""

    @abstractmethod
    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """Take in ``(key, value)`` rows of a checkpoint, later rows of a key winning, a None value deleting it."""

    def measured_by(self, metrics: Metrics) -> None:
        """Count under the store's name from now on."""
        self.expired = metrics.measure("store", self.name, EXPIRED_WINDOW_DROP, self.expired_reason)

    @abstractmethod
    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """Return ``(key, value)`` of what changed, by key bytes, with None for what is gone; and start anew."""

    @abstractmethod
    def contents(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over the current keys and values by key bytes."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @property
    def clock_ms(self) -> int:
        """The store's own clock, part of the checkpoint; -1 for a store that has none."""
        return UNKNOWN


def codec_of(builder: StoreBuilder) -> Codec:
    """Return the codec of a store that spills. Raises `InvariantError` if its types are not bound."""
    if builder.codec is None:
        raise InvariantError(f"the store {builder.name!r} spills to disk, but its types are not bound")
    return builder.codec


def restore_flags(changed: dict[Any, bool], before: Mapping[Any, bool | None]) -> None:
    """Let what `Store._changed` says of some rows be what it said before; None: nothing."""
    for row_key, flag in before.items():
        changed.pop(row_key, None)
        if flag is not None:
            changed[row_key] = flag


def refused(store: str, key: Any, error: DataError) -> DataError:
    """Return the error of a value that cannot be put, naming store, key and fix."""
    return DataError(
        f"store {store!r}, key {key!r}: {error}. The store's value=... declares the type: declare what the code puts, "
        "or convert it"
    )
