"""The checkpoint of a task: its clocks, offsets, schedules and the rows of its stores, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rewindow.streams.punctuation import Schedule
from rewindow.streams.record import UNKNOWN
from rewindow.streams.state.join_store import JoinStore, RecordStore
from rewindow.streams.state.key_value_store import KeyValueStore, PrefixStore
from rewindow.streams.state.session_store import SessionStore
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.stores import (
    BUFFER,
    JOIN,
    KEY_VALUE,
    PREFIX,
    RECORDS,
    SESSION,
    VERSIONED,
    WINDOW,
    Store,
    StoreBuilder,
)
from rewindow.streams.state.suppress_buffer import TimeOrderedBuffer
from rewindow.streams.state.versioned_store import VersionedStore
from rewindow.streams.state.window_store import WindowStore

STORE_KINDS: Mapping[str, Callable[[StoreBuilder, Disk | None], Store]] = {
    KEY_VALUE: KeyValueStore,
    WINDOW: WindowStore,
    BUFFER: TimeOrderedBuffer,
    VERSIONED: VersionedStore,
    RECORDS: RecordStore,
    JOIN: JoinStore,
    SESSION: SessionStore,
    PREFIX: PrefixStore,
}


def new_store(builder: StoreBuilder, disk: Disk | None = None, stores: int = 1) -> Store:
    """Return an empty store of the builder's kind. ``stores``: how many stores share the memory limit of ``disk``.

    A store with a memory limit opens a file when it exceeds the limit.
    """
    has_limit = builder.memory_records is not None or builder.memory_bytes is not None
    if disk is None or not (has_limit or disk.memory_bytes is not None):
        return STORE_KINDS[builder.kind](builder, None)
    share = None if disk.memory_bytes is None else disk.memory_bytes // stores
    return STORE_KINDS[builder.kind](builder, Disk(disk.spill, share))


def open_stores(
    builders: Sequence[StoreBuilder],
    checkpoint: Checkpoint,
    disk: Disk | None,
) -> dict[str, Store]:
    """Return the stores of a checkpoint, with their restored rows."""
    stores = {builder.name: new_store(builder, disk, len(builders)) for builder in builders}
    state = checkpoint.state
    for name, store in stores.items():
        store.restore(checkpoint.rows.get(name, ()), state.store_clocks.get(name, UNKNOWN))
        if isinstance(store, TimeOrderedBuffer):
            store.is_new = name not in state.held
    return stores


def held_in(stores: Mapping[str, Store]) -> dict[str, int]:
    """Return, by store name, the number of results in each suppress buffer: entries that will be sent if no updates follow."""
    return {name: store.results for name, store in stores.items() if isinstance(store, TimeOrderedBuffer)}


@dataclass(slots=True)
class TaskState:
    """The state of a task apart from its stores.

    Times are epoch milliseconds, -1 if unknown. ``offsets`` maps a topic to the next offset to read. ``emitted`` maps a topic
    to the next offset to write. ``calls`` maps a node to the number of unnamed schedules that it made outside `init`.
    ``registrations`` is the number of schedules that the task ever made. ``held`` maps a suppress buffer to its number of
    results: see `held_in`.
    """

    stream_time_ms: int = UNKNOWN
    wall_clock_ms: int = UNKNOWN
    partition_times: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    emitted: dict[str, int] = field(default_factory=dict)
    node_times: dict[str, int] = field(default_factory=dict)
    store_clocks: dict[str, int] = field(default_factory=dict)
    schedules: list[Schedule] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    registrations: int = 0
    held: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary for `json`; equal states give equal dictionaries."""
        return {**asdict(self), "schedules": [schedule.as_json() for schedule in self.schedules]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TaskState:
        """Return the state that `as_json` described."""
        return cls(**{**data, "schedules": [Schedule.from_json(schedule) for schedule in data["schedules"]]})


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The data from which a task is restored: its state, and the rows of each store. Both are empty for a new task."""

    state: TaskState = field(default_factory=TaskState)
    rows: Mapping[str, Iterable[tuple[Any, Any]]] = field(default_factory=dict)
