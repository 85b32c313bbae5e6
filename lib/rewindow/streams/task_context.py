"""What the nodes of one task share: the clocks, the stores, the schedules and the moment that is being handled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from rewindow.errors import ConfigError
from rewindow.streams.call_ids import CallIds
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.dropped_records import Drop, Dropped, record_text
from rewindow.streams.metrics import SIMULATED_TIME, TASK, Metrics
from rewindow.streams.processor import Processor
from rewindow.streams.record import UNKNOWN, Record, RecordMetadata
from rewindow.streams.schedules import Schedules
from rewindow.streams.state.stores import Store


class RecordContext:
    """What is being handled now. ``order_ms`` is its place in the order of the epoch (L1, D21)."""

    __slots__ = ("firing", "offset", "order_ms", "scheduled_ms", "timestamp", "topic")

    def __init__(self) -> None:
        self.topic: str | None = None
        self.offset = UNKNOWN
        self.timestamp = UNKNOWN
        self.scheduled_ms = UNKNOWN
        self.order_ms = UNKNOWN
        self.firing: tuple[str, int] | None = None
        """Which punctuation it is, or which epoch's end, if it is no record."""

    def be_between(self, timestamp: int, order_ms: int) -> None:
        """Handle no record and no punctuation: an epoch begins or ends. Nothing of before can be seen."""
        self.topic, self.offset, self.scheduled_ms, self.firing = None, UNKNOWN, UNKNOWN, None
        self.timestamp, self.order_ms = timestamp, order_ms

    def metadata(self, partition: int) -> RecordMetadata:
        """Return where the record came from; ``(None, -1, -1)`` if it is none."""
        return RecordMetadata(self.topic, partition if self.topic else UNKNOWN, self.offset if self.topic else UNKNOWN)

    def __str__(self) -> str:
        """Say it to a person."""
        if self.topic:
            return f"{self.topic} offset {self.offset}"
        return "an epoch's bounds" if self.scheduled_ms == UNKNOWN else f"the punctuation due at {self.scheduled_ms} ms"


class TaskContext:
    """The shared state of one task."""

    def __init__(
        self,
        partition: int,
        state: TaskState,
        stores: Mapping[str, tuple[Store, tuple[str, ...]]],
        dropped: Drop | None = None,
        quarantined: Drop | None = None,
        job: str = "",
    ) -> None:
        """Take up the clocks and schedules of a checkpoint.

        ``stores`` has each store and the nodes connected to it; ``dropped`` takes the records that go no further,
        ``quarantined`` those at which a node with a policy failed; ``job`` is part of every `CallIds`.
        """
        self.partition = partition
        self.record_context = RecordContext()
        self.call_ids = CallIds(job, partition, self.record_context)
        self.metrics = Metrics()
        self.schedules = Schedules(state)
        self.stream_time_ms = state.stream_time_ms
        self.wall_clock_ms = state.wall_clock_ms
        self.node_times = dict(state.node_times)
        self.processors: dict[str, Processor] = {}
        self._stores = stores
        self._dropped, self._quarantined = dropped, quarantined
        self._held: Drop | None = None
        self.forgiving: Collection[str] = ()
        """The nodes that have a policy."""
        self._held_drops: list[Dropped] = []
        for name, (store, _) in stores.items():
            store.measured_by(self.metrics)
            if dropped is not None:
                store.lost = partial(self.drop, name, store.expired_reason)
        self._began_ms = UNKNOWN

    def forget_all_but(self, nodes: Collection[str]) -> None:
        """Let go of clocks of nodes that were taken out of the topology."""
        self.node_times = {name: at_ms for name, at_ms in self.node_times.items() if name in nodes}

    def store(self, node: str, name: str) -> Store:
        """See `ProcessorContext.store`."""
        store, users = self._stores.get(name, (None, ()))
        if store is None or node not in users:
            message = f"{node} is not connected to a store {name!r}: name it in stores=(...) where the node is added"
            raise ConfigError(message)
        return store

    def drop(self, node: str, reason: str, key: Any, value: Any, timestamp: int | None = None) -> None:
        """Hand on what is dropped, if anybody takes it; without a timestamp it has that of what is being handled."""
        if self._dropped is not None:
            at = self.record_context.metadata(self.partition)
            timestamp = self.record_context.timestamp if timestamp is None else timestamp
            self._dropped(Dropped(at, timestamp, node, reason, record_text(key, value)))

    def quarantine(self, node: str, reason: str, record: Record) -> None:
        """Hand on a record at which a node failed; without anybody who takes it, it is counted only."""
        if self._quarantined is not None:
            at = self.record_context.metadata(self.partition)
            self._quarantined(Dropped(at, record.timestamp, node, reason, record_text(record.key, record.value)))

    def hold_drops(self) -> None:
        """Keep back what is dropped until `let_drops_go`."""
        if self._dropped is not None and self._held is None:
            self._held, self._held_drops = self._dropped, []
            self._dropped = self._held_drops.append

    def let_drops_go(self, *, keep: bool) -> None:
        """Hand on what was kept back, or forget it."""
        if self._held is not None:
            self._dropped, self._held = self._held, None
            for one in self._held_drops if keep else ():
                self._dropped(one)

    def begin_time(self) -> None:
        """Note what the wall clock shows: when an epoch begins, or later when it is known for the first time."""
        self._began_ms = self.wall_clock_ms

    def end_time(self) -> None:
        """Count the time that the wall clock went on in this epoch: what a rate is counted by."""
        if self._began_ms != UNKNOWN and self.wall_clock_ms > self._began_ms:
            self.metrics.measure(TASK, "", SIMULATED_TIME).record(self.wall_clock_ms - self._began_ms)

    def live_state(self) -> dict[str, Any]:
        """Return the parts of `TaskState` that live here."""
        return {
            "stream_time_ms": self.stream_time_ms,
            "wall_clock_ms": self.wall_clock_ms,
            "node_times": dict(sorted(self.node_times.items())),
            **self.schedules.state(),
        }
