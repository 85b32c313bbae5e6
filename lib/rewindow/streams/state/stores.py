"""State stores, in which processors keep data between records, epochs and runs.

The user names a store. A store belongs to one sub-topology, and each task has its own instance. Rows are read by key or in
the order of key bytes (`streams.serde.key_bytes`), never in hash order. A run writes the changes to the changelog: one row
per changed key, with a value or a tombstone.

Values are undeclared data, or have the declared type. A value that a checkpoint would not restore as an equal value of the
same class is refused when it is put. Mutable values (lists, dicts) are copied when they are put and when they are read. So
two runs read the same values as one run over the same epochs (L2, cut invariance).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rewindow.errors import ConfigError, DataError, InvariantError
from rewindow.streams.duration import to_ms
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, Measure, Metrics
from rewindow.streams.record import UNKNOWN, maker
from rewindow.streams.serde.key_bytes import canonical
from rewindow.streams.serde.normalizers import Normalizer, coerce_long, json_type_of

if TYPE_CHECKING:
    from rewindow.streams.state.spill import Codec

KEY_VALUE, WINDOW, BUFFER, VERSIONED = "key-value", "window", "buffer", "versioned"
RECORDS, JOIN, PREFIX = "records", "join", "prefix"
SESSION = "session"


class Stamped(NamedTuple):
    """A value and its timestamp, as stores of tables have them (Kafka's ``ValueAndTimestamp``)."""

    value: Any
    timestamp: int


make_stamped = maker(Stamped)


def stamped_normalizer(normalize_value: Normalizer) -> Normalizer:
    """Return the normalizer of `Stamped` values, given the normalizer of the values in them."""

    def normalize(stamped: Any) -> Any:
        if stamped.__class__ is not Stamped:
            raise DataError(
                "value-not-stamped",
                "{given} ({type}) is not a Stamped(value, timestamp)",
                given=repr(stamped),
                type=type(stamped).__name__,
            )
        value, timestamp = stamped
        own, own_timestamp = normalize_value(value), coerce_long(timestamp)
        return stamped if own is value and own_timestamp is timestamp else Stamped(own, own_timestamp)

    return normalize


def canonical_normalizer(normalize: Normalizer) -> Normalizer:
    """Return the normalizer of keys that are stored as text. It makes the texts of equal keys equal."""
    return lambda key: canonical(normalize(key))


class Normalizers(NamedTuple):
    """The functions that a store applies to keys and values when they are put.

    ``has_one_type``: whether all keys that ``key`` accepts have the same type (`KeyType`). ``is_frozen``: whether all values
    are immutable.
    """

    key: Normalizer
    value: Normalizer
    has_one_type: bool = False
    is_frozen: bool = False


class WindowEnds(Protocol):
    """Windows that have no fixed size: `streams.windows.calendar.CalendarWindows`."""

    def end_of(self, start_ms: int) -> int:
        """Return the end of the window that starts at a time."""


@dataclass(frozen=True, slots=True)
class StoreBuilder:
    """The definition of a store: its name, kind, declared types (for typed changelog columns) and retention."""

    name: str
    kind: str = KEY_VALUE
    key: Any = None
    value: Any = None
    is_stamped: bool = False
    """Whether values are `Stamped`. If so, the changelog has a ``_timestamp`` column."""
    window_size_ms: int = 0
    retention_ms: int = 0
    calendar: WindowEnds | None = None
    """The windows of a store of windows in local time, whose ends only the zone's clock knows."""
    memory_records: int | None = field(default=None, compare=False)
    memory_bytes: int | None = field(default=None, compare=False)
    """For a suppress buffer: how many records and bytes it may have in memory before it spills; None means no such limit."""
    sends_tombstones: bool = field(default=True, compare=False)
    """For a suppress buffer: whether entries whose value is null are sent. False if only final results are sent."""
    bound_normalizers: Normalizers | None = field(default=None, compare=False, repr=False)
    """Set when types are bound to the feed (`streams.serde.types_to_columns.bound`). Until then, the Python types decide."""
    codec: Codec | None = field(default=None, compare=False, repr=False)
    """Set when types are bound to the feed. Only a store with a codec can spill."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for a store without a name."""
        name: object = self.name  # the name comes from the user
        if not isinstance(name, str) or not name:
            raise ConfigError(
                "store-name-invalid", "{given} cannot name a store: use a non-empty str", given=repr(name)
            )

    def end_of(self, start_ms: int) -> int:
        """Return the end of the store's window that starts at a time."""
        return start_ms + self.window_size_ms if self.calendar is None else self.calendar.end_of(start_ms)

    @property
    def normalizers(self) -> Normalizers:
        """The normalizers of keys and values."""
        if self.bound_normalizers is not None:
            return self.bound_normalizers
        value = json_type_of(self.value).normalize
        key = json_type_of(self.key).normalize
        own = canonical_normalizer(key) if self.key is None else key
        return Normalizers(own, stamped_normalizer(value) if self.is_stamped else value)


def key_value_store(name: str, *, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a key-value store. ``key`` and ``value`` are Python types. Without a type, JSON text is stored."""
    return StoreBuilder(name, KEY_VALUE, key, value)


def window_store(
    name: str, *, size: str | timedelta, retention: str | timedelta, key: Any = None, value: Any = None
) -> StoreBuilder:
    """Declare a window store. A window expires when the latest window in the store starts ``retention`` or more after it.

    ``size`` and ``retention`` are durations (``"1h"``). Raises `ConfigError` for a negative size, and for a retention that is
    less than the size.
    """
    size_ms, retention_ms = to_ms(size), to_ms(retention)
    if not 0 <= size_ms <= retention_ms:
        raise ConfigError(
            "window-store-times-invalid",
            "store {store!r}: size={size}, retention={retention}: the size is 0 or more, the retention at least that",
            store=name,
            size=repr(size),
            retention=repr(retention),
        )
    return StoreBuilder(name, WINDOW, key, value, window_size_ms=size_ms, retention_ms=retention_ms)


class Store(ABC):
    """The operations of every kind of store."""

    expired_reason = "window-expired"
    """The reason under which dropped writes are counted."""

    def __init__(self, builder: StoreBuilder) -> None:
        self.builder = builder
        self.expired = Measure()
        """A function that counts dropped writes: writes to expired windows, sessions, versions or records."""
        self.lost: Callable[[Any, Any], None] | None = None
        """If set, a function that gets the key and value of each dropped write."""
        self._changed: dict[Any, bool] = {}
        """The row keys that were written since the last `take_changes`. The value is True if no checkpoint has the row."""

    def _lose(self, key: Any, value: Any) -> None:
        """Count a dropped write, and pass it to ``lost``."""
        self.expired.record()
        if self.lost is not None:
            self.lost(key, value)

    @property
    def name(self) -> str:
        """The store's name, given by the user."""
        return self.builder.name

    @abstractmethod
    def hold(self, *, is_held: bool) -> None:
        """Set whether all writes must stay in memory, because an attempt may be rolled back (`streams.error_policy`)."""

    @abstractmethod
    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """Load the ``(key, value)`` rows of a checkpoint. A later row of a key replaces an earlier one; None deletes the key."""

    def measured_by(self, metrics: Metrics) -> None:
        """Count dropped writes in these metrics, under the store's name."""
        self.expired = metrics.measure("store", self.name, EXPIRED_WINDOW_DROP, self.expired_reason)

    @abstractmethod
    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """Return the ``(key, value)`` rows that changed since the last call, by key bytes. Deleted rows have the value None."""

    @abstractmethod
    def rows(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over all keys and values by key bytes."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @property
    def clock_ms(self) -> int:
        """The store's own clock in epoch milliseconds, which is part of checkpoints; -1 for a store without a clock."""
        return UNKNOWN


def codec_of(builder: StoreBuilder) -> Codec:
    """Return the codec of a store that spills. Raises `InvariantError` if its types are not bound."""
    if builder.codec is None:
        raise InvariantError(
            "spilled-store-without-types",
            "the store {store!r} spills to disk, but its types are not bound",
            store=builder.name,
        )
    return builder.codec


def restore_flags(changed: dict[Any, bool], before: Mapping[Any, bool | None]) -> None:
    """Set entries of `Store._changed` back to ``before``. A value of None means that there was no entry."""
    for row_key, flag in before.items():
        changed.pop(row_key, None)
        if flag is not None:
            changed[row_key] = flag


def name_value(error: DataError, store: str, key: Any) -> None:
    """Add the store, the key and the fix to the message of an error for a value that cannot be put."""
    fix = "The store's value=... declares the type: declare what the code puts, or convert it"
    error.surrounded(f"store {store!r}, key {key!r}: ", f". {fix}")
