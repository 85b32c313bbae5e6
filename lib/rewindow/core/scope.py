"""What the nodes of one task share: the clocks, the stores, the schedules and the moment that is being handled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rewindow.core.checkpoint import TaskState
from rewindow.core.metrics import Metrics
from rewindow.core.processor import Processor
from rewindow.core.punctuation import Cancellable, PunctuationQueue, PunctuationType, Schedule
from rewindow.core.record import UNKNOWN, RecordMetadata
from rewindow.core.stores import Store
from rewindow.errors import CheckpointError, ConfigError


class Moment:
    """What is being handled now. ``order_ms`` is its place in the order of the epoch (law 1, D21)."""

    __slots__ = ("offset", "order_ms", "scheduled_ms", "timestamp", "topic")

    def __init__(self) -> None:
        self.topic: str | None = None
        self.offset = UNKNOWN
        self.timestamp = UNKNOWN
        self.scheduled_ms = UNKNOWN
        self.order_ms = UNKNOWN

    def metadata(self, partition: int) -> RecordMetadata:
        """Return where the record came from; ``(None, -1, -1)`` if it is none."""
        return RecordMetadata(self.topic, partition if self.topic else UNKNOWN, self.offset if self.topic else UNKNOWN)

    def __str__(self) -> str:
        """Say it to a person."""
        if self.topic:
            return f"{self.topic} offset {self.offset}"
        return "an epoch's bounds" if self.scheduled_ms == UNKNOWN else f"the punctuation due at {self.scheduled_ms} ms"


class TaskScope:
    """The shared state of one task."""

    def __init__(self, partition: int, state: TaskState, stores: Mapping[str, tuple[Store, tuple[str, ...]]]) -> None:
        self.partition = partition
        self.moment = Moment()
        self.metrics = Metrics()
        self.stream_time_ms = state.stream_time_ms
        self.wall_clock_ms = state.wall_clock_ms
        self.node_times = dict(state.node_times)
        self.processors: dict[str, Processor] = {}
        self.queues = {type_: PunctuationQueue() for type_ in PunctuationType}
        self.initializing: str | None = None
        self._stores = stores
        self._schedules = {(schedule.node, schedule.identity): schedule for schedule in state.schedules}
        self._calls = dict(state.calls)
        self._registrations = state.registrations
        self._found_in_init: dict[str, None] = {}
        for schedule in self._schedules.values():
            if not schedule.is_cancelled:
                self.queues[schedule.type].add(schedule)

    def begin_init(self, node: str) -> None:
        """From here to `end_init` schedules are matched with those that ``node`` made in `init` before (D7)."""
        self.initializing = node
        self._found_in_init = {}

    def end_init(self, node: str) -> None:
        """End `init` of a node; every live schedule of it must find its method again."""
        self.initializing = None
        for schedule in self._schedules.values():
            if schedule.node == node and not schedule.is_cancelled:
                self.callback(schedule)

    def schedule(
        self,
        node: str,
        *,
        interval_ms: int,
        type_: PunctuationType,
        callback: Callable[..., None],
        name: str | None,
        time_shift_ms: int | None,
        start_time_ms: int | None,
        args: tuple[Any, ...],
    ) -> Cancellable:
        """See `ProcessorContext.schedule`."""
        if time_shift_ms is not None and start_time_ms is not None:
            message = f"{node}: a schedule has a time_shift or a start_time, not both (D4)"
            raise ConfigError(message)
        method = self._method_name(node, callback)
        identity = self._identity(node, name)
        known = self._schedules.get((node, identity))
        if known is not None:
            if self.initializing == node and identity not in self._found_in_init:
                self._found_in_init[identity] = None
                return Cancellable(known)
            known.is_cancelled = True
        self._found_in_init[identity] = None
        schedule = Schedule(
            node, identity, type_, interval_ms, method, args, time_shift_ms, start_time_ms, self._registrations
        )
        self._registrations += 1
        schedule.arm(self.stream_time_ms if type_ is PunctuationType.STREAM_TIME else self.wall_clock_ms)
        self._schedules[node, identity] = schedule
        self.queues[type_].add(schedule)
        return Cancellable(schedule)

    def cancellable(self, node: str, name: str) -> Cancellable:
        """See `ProcessorContext.cancellable`."""
        schedule = self._schedules.get((node, f"name:{name}"))
        if schedule is None:
            message = f"{node} has no schedule named {name!r}: pass name={name!r} to schedule() first"
            raise ConfigError(message)
        return Cancellable(schedule)

    def store(self, node: str, name: str) -> Store:
        """See `ProcessorContext.store`."""
        store, users = self._stores.get(name, (None, ()))
        if store is None or node not in users:
            message = f"{node} is not connected to a store {name!r}: name it in stores=(...) where the node is added"
            raise ConfigError(message)
        return store

    def callback(self, schedule: Schedule) -> Callable[..., None]:
        """Return the method that a schedule calls. Raises `CheckpointError` if the code has it no more."""
        method = getattr(self.processors.get(schedule.node), schedule.method, None)
        if method is None:
            message = (
                f"the checkpoint has a schedule of {schedule.node} that calls {schedule.method!r}, which is gone: "
                "keep the method, or start a lineage of its own with --lineage"
            )
            raise CheckpointError(message)
        return method  # type: ignore[no-any-return]

    def live_state(self) -> dict[str, Any]:
        """Return the parts of `TaskState` that live here. A cancelled schedule stays if `init` would ask for it again."""
        kept = [s for s in self._schedules.values() if not (s.is_cancelled and s.identity.startswith("call:"))]
        return {
            "stream_time_ms": self.stream_time_ms,
            "wall_clock_ms": self.wall_clock_ms,
            "node_times": dict(sorted(self.node_times.items())),
            "schedules": sorted(kept, key=lambda schedule: schedule.registration),
            "calls": dict(sorted(self._calls.items())),
            "registrations": self._registrations,
        }

    def live_schedules(self) -> Iterator[Schedule]:
        """Iterate over the schedules that will fire, by type and registration."""
        for queue in self.queues.values():
            yield from queue

    def _identity(self, node: str, name: str | None) -> str:
        if name is not None:
            return f"name:{name}"
        if self.initializing == node:
            made = sum(identity.startswith("init:") for identity in self._found_in_init)
            return f"init:{made}"
        number = self._calls.get(node, 0)
        self._calls[node] = number + 1
        return f"call:{number}"

    def _method_name(self, node: str, callback: Callable[..., None]) -> str:
        owner, method = getattr(callback, "__self__", None), getattr(callback, "__name__", "")
        if owner is None or owner is not self.processors.get(node) or getattr(owner, method, None) != callback:
            message = (
                f"{node}: the callback {callback!r} is not a method of this processor. A schedule outlives the processor, "
                "so it is kept by the method's name: pass self.<method>, and what it needs as args=(...)"
            )
            raise ConfigError(message)
        return method
