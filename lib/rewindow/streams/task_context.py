"""The state that all nodes of one task share: clocks, stores, schedules, metrics and the current event.

This module also reports dropped records: records that are not processed further, because they are late, skipped or expired.
If the job is configured with ``dropped: quarantine``, they are written to the quarantine, each with its source, the node and
the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, DataError
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import SIMULATED_TIME, TASK, Metrics
from rewindow.streams.record import UNKNOWN, Record, RecordMetadata, row_class
from rewindow.streams.record_context import CallIds, RecordContext
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.settings import DEFAULTS
from rewindow.streams.state.stores import Store
from rewindow.streams.task_schedules import Schedules


class Dropped(NamedTuple):
    """A dropped record, as the quarantine stores it.

    ``at`` is topic, partition and offset of the input record that was being handled, or ``(None, -1, -1)`` in a punctuation
    and between epochs. ``record`` is JSON of the dropped record's key and value.
    """

    at: RecordMetadata
    timestamp: int
    node: str
    reason: str
    record: str


Drop = Callable[[Dropped], None]
"""A function that gets dropped records: the writer of the quarantine, or a test."""
_PAIR = row_class(("key", "value"))


class TaskContext:
    """The shared state of one task. `ProcessorContext` is a node's view of it."""

    def __init__(
        self,
        partition: int,
        state: TaskState,
        stores: Mapping[str, tuple[Store, tuple[str, ...]]],
        dropped: Drop | None = None,
        quarantined: Drop | None = None,
        job: str = "",
    ) -> None:
        """Restore clocks and schedules from a checkpoint.

        ``stores`` maps a store's name to the store and the names of the nodes connected to it. ``dropped`` receives late,
        skipped and expired records; ``quarantined`` receives the records at which a node with an error policy failed.
        Idempotency keys begin with ``job``, the job's name, which is empty in a test.
        """
        self.partition = partition
        self.is_test = not job
        self.record_context = RecordContext()
        self.call_ids = CallIds(job, partition, self.record_context)
        self.metrics = Metrics()
        self.schedules = Schedules(state)
        self.stream_time_ms = state.stream_time_ms
        self.wall_clock_ms = state.wall_clock_ms
        self.node_times = dict(state.node_times)
        self._stores = stores
        self._dropped, self._quarantined = dropped, quarantined
        self._receiver: Drop | None = None
        self._held_drops: list[Dropped] = []
        self.nodes_with_policy: Collection[str] = ()
        self.limits = DEFAULTS
        for name, (store, _) in stores.items():
            store.measured_by(self.metrics)
            if dropped is not None:
                store.lost = partial(self.drop, name, store.expired_reason)
        self._began_ms = UNKNOWN

    def retain_clocks(self, nodes: Collection[str]) -> None:
        """Keep only the clocks of ``nodes``, because other nodes of the checkpoint are no longer in the topology."""
        self.node_times = {name: at_ms for name, at_ms in self.node_times.items() if name in nodes}

    def store(self, node: str, name: str) -> Store:
        """See `ProcessorContext.store`."""
        store, users = self._stores.get(name, (None, ()))
        if store is None or node not in users:
            raise ConfigError(
                "store-not-connected",
                "{node} is not connected to a store {store!r}: name it in stores=(...) where the node is added",
                node=node,
                store=name,
            )
        return store

    def drop(self, node: str, reason: str, key: Any, value: Any, timestamp: int | None = None) -> None:
        """Report a dropped record, if dropped records are kept. The default of ``timestamp`` is the current event's timestamp."""
        if self._dropped is not None:
            metadata = self.record_context.metadata(self.partition)
            timestamp = self.record_context.timestamp if timestamp is None else timestamp
            self._dropped(Dropped(metadata, timestamp, node, reason, record_text(key, value)))

    def quarantine(self, node: str, reason: str, record: Record) -> None:
        """Report a record at which ``node`` failed, if there is a receiver of quarantined records."""
        if self._quarantined is not None:
            metadata = self.record_context.metadata(self.partition)
            self._quarantined(Dropped(metadata, record.timestamp, node, reason, record_text(record.key, record.value)))

    def hold_drops(self) -> None:
        """Buffer dropped records until `release_drops`."""
        if self._dropped is not None and self._receiver is None:
            self._receiver, self._held_drops = self._dropped, []
            self._dropped = self._held_drops.append

    def release_drops(self, *, keep: bool) -> None:
        """End the buffering of `hold_drops`. ``keep``: whether to report the buffered records. Otherwise they are discarded."""
        if self._receiver is not None:
            self._dropped, self._receiver = self._receiver, None
            for dropped in self._held_drops if keep else ():
                self._dropped(dropped)

    def begin_time(self) -> None:
        """Store the wall clock at the start of an epoch, or when it first becomes known, for `end_time`."""
        self._began_ms = self.wall_clock_ms

    def end_time(self) -> None:
        """Add the simulated time of this epoch to its metric. A rate is a total divided by this metric."""
        if self._began_ms != UNKNOWN and self.wall_clock_ms > self._began_ms:
            self.metrics.measure(TASK, "", SIMULATED_TIME).record(self.wall_clock_ms - self._began_ms)

    def live_state(self) -> dict[str, Any]:
        """Return this object's part of `TaskState`."""
        return {
            "stream_time_ms": self.stream_time_ms,
            "wall_clock_ms": self.wall_clock_ms,
            "node_times": dict(sorted(self.node_times.items())),
            **self.schedules.state(),
        }


def record_text(key: Any, value: Any) -> str:
    """Return key and value as canonical JSON. An object that cannot be encoded is replaced by the name of its class."""
    return dump_value(_PAIR(_encodable(key), _encodable(value)))


def _encodable(part: Any) -> Any:
    try:
        dump_value(part)
    except DataError:
        return f"<{type(part).__name__}>"
    return part
