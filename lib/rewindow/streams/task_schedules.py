"""The schedules of one task, and how the new processors of each epoch are connected to the schedules (D7).

A name identifies a schedule within its node. A second call with the same name replaces the schedule. There is one exception:
in a later epoch, the first such call in `init` returns the existing schedule. If calls have no name, the k-th call in `init`
returns the k-th unnamed schedule that `init` made in earlier epochs, even if this schedule was cancelled. A call without a
name elsewhere makes a new schedule, which is discarded after it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from rewindow.errors import CheckpointError, ConfigError
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.process_results import refuse_unstarted
from rewindow.streams.punctuation import Cancellable, PunctuationQueue, PunctuationType, Schedule
from rewindow.streams.serde.canonical_json import dump_value, load_value

_PRUNE_AT = 256


class Schedules:
    """All schedules of a task by node and identity, and the queues in which they wait for their due times."""

    def __init__(self, state: TaskState) -> None:
        """Restore the schedules of a checkpoint."""
        self.queues = {type_: PunctuationQueue() for type_ in PunctuationType}
        self.processors: Mapping[str, object] = {}
        """The current epoch's processors, by node. Schedules call their methods."""
        self.firing: PunctuationType | None = None
        """The clock whose punctuation is running; None outside a punctuation."""
        self._known = {(schedule.node, schedule.identity): schedule for schedule in state.schedules}
        self._calls = dict(state.calls)
        self._registrations = state.registrations
        self._initializing: str | None = None
        self._found: dict[str, None] = {}
        self._prune_at = _PRUNE_AT
        for schedule in self._known.values():
            if not schedule.is_cancelled:
                self.queues[schedule.type].add(schedule)

    def begin_init(self, node: str) -> None:
        """Begin `init` of a node.

        Until `end_init`, the node's calls of `schedule` return the schedules of earlier epochs, if any.
        """
        self._initializing = node
        self._found = {}

    def end_init(self, node: str) -> None:
        """End `init` of a node.

        Raises `CheckpointError` (76) if the processor lacks the method of a schedule that is still active.
        """
        self._initializing = None
        for schedule in self._known.values():
            if schedule.node == node and not schedule.is_cancelled:
                self.callback(schedule)

    def schedule(
        self,
        node: str,
        now_ms: int,
        *,
        interval_ms: int,
        type_: PunctuationType,
        callback: Callable[..., None],
        name: str | None,
        time_shift_ms: int | None,
        start_time_ms: int | None,
        args: tuple[Any, ...],
    ) -> Cancellable:
        """See `ProcessorContext.schedule`. ``now_ms`` is the time of the clock that ``type_`` names."""
        if time_shift_ms is not None and start_time_ms is not None:
            raise ConfigError(
                "schedule-time-shift-and-start",
                "{node}: a schedule may have a time_shift or a start_time, not both (D4)",
                node=node,
            )
        method = self._method_name(node, callback)
        identity = self._identity(node, name)
        registered = self._known.get((node, identity))
        if registered is not None:
            if self._initializing == node and identity not in self._found:
                self._found[identity] = None
                return Cancellable(registered)
            registered.is_cancelled = True
        self._found[identity] = None
        # Encode and decode the arguments now, so that the callback gets the same values with and without a restart.
        stored_args = tuple(load_value(dump_value(list(args))))
        number, self._registrations = self._registrations, self._registrations + 1
        schedule = Schedule(
            node, identity, type_, interval_ms, method, stored_args, time_shift_ms, start_time_ms, number
        )
        schedule.arm(now_ms, is_firing=self.firing is type_)
        self._known[node, identity] = schedule
        self.queues[type_].add(schedule)
        self._forget_cancelled()
        return Cancellable(schedule)

    def cancellable(self, node: str, name: str) -> Cancellable:
        """See `ProcessorContext.cancellable`."""
        schedule = self._known.get((node, f"name:{name}"))
        if schedule is None:
            raise ConfigError(
                "schedule-name-unknown",
                "{node} has no schedule named {schedule!r}: pass name={schedule!r} to schedule() first",
                node=node,
                schedule=name,
            )
        return Cancellable(schedule)

    def callback(self, schedule: Schedule) -> Callable[..., object]:
        """Return the method that a schedule calls. Raises `CheckpointError` (76) if the processor no longer has the method."""
        method = getattr(self.processors.get(schedule.node), schedule.method, None)
        if method is None:
            raise method_is_gone(schedule.node, schedule.method)
        return method  # type: ignore[no-any-return]

    def call(self, schedule: Schedule, now_ms: int) -> None:
        """Run a schedule's method, with the clock ``now_ms`` and the schedule's arguments."""
        before, self.firing = self.firing, schedule.type
        try:
            # The method must be a local variable. If the call has the wrong arguments, `error_context` finds the method in this
            # frame.
            method = self.callback(schedule)
            # The method may modify its arguments.
            result = method(now_ms, *(deepcopy(schedule.args) if schedule.args else ()))
        finally:
            self.firing = before
        if result is not None:
            refuse_unstarted(method, result)

    def mark(self) -> Callable[[], None]:
        """Return a function that restores all schedules to their present state."""
        registered, calls, registrations = self._known.copy(), self._calls.copy(), self._registrations
        states = [
            (schedule_before, schedule_before.is_cancelled, schedule_before.due_ms)
            for schedule_before in registered.values()
        ]
        queues = [queue.mark() for queue in self.queues.values()]

        def restore() -> None:
            self._known, self._calls, self._registrations = registered, calls, registrations
            for schedule, is_cancelled, due_ms in states:
                schedule.is_cancelled, schedule.due_ms = is_cancelled, due_ms
            for restore_queue in queues:
                restore_queue()

        return restore

    def state(self) -> dict[str, Any]:
        """Return this object's part of `TaskState`, including cancelled schedules that a later `init` may return."""
        kept = [schedule for schedule in self._known.values() if not _is_forgotten(schedule)]
        return {
            "schedules": sorted(kept, key=lambda schedule: schedule.registration),
            "calls": dict(sorted(self._calls.items())),
            "registrations": self._registrations,
        }

    def __iter__(self) -> Iterator[Schedule]:
        """Iterate over the schedules that are not cancelled, by type and registration."""
        for queue in self.queues.values():
            yield from queue

    def _identity(self, node: str, name: str | None) -> str:
        if name is not None:
            return f"name:{name}"
        if self._initializing == node:
            made = sum(identity.startswith("init:") for identity in self._found)
            return f"init:{made}"
        number = self._calls.get(node, 0)
        self._calls[node] = number + 1
        return f"call:{number}"

    def _method_name(self, node: str, callback: Callable[..., None]) -> str:
        owner, name = getattr(callback, "__self__", None), getattr(callback, "__name__", "")
        if owner is not None and owner is self.processors.get(node):
            # Python mangles the name of a private method (two leading underscores). So the mangled names are tried, too.
            for spelled in (name, *(f"_{kind.__name__.lstrip('_')}{name}" for kind in type(owner).__mro__)):
                if getattr(owner, spelled, None) == callback:
                    return spelled
        raise ConfigError(
            "schedule-callback-not-method",
            "{node}: the callback {callback} is not a method of this processor. A schedule outlives the processor, "
            "so it is stored by the method's name: pass self.<method>, and its arguments as args=(...)",
            node=node,
            callback=str(getattr(callback, "__name__", callback)),
        )

    def _forget_cancelled(self) -> None:
        """Discard the cancelled schedules that no call can return, if there are many, so that memory stays bounded."""
        if len(self._known) < self._prune_at:
            return
        self._known = {key: schedule for key, schedule in self._known.items() if not _is_forgotten(schedule)}
        for queue in self.queues.values():
            queue.forget_cancelled()
        self._prune_at = max(_PRUNE_AT, 2 * len(self._known))


def _is_forgotten(schedule: Schedule) -> bool:
    return schedule.is_cancelled and schedule.identity.startswith("call:")


def method_is_gone(node: str, method: str) -> CheckpointError:
    """Return the error (76) for a processor that no longer has the method of one of its schedules."""
    return CheckpointError(
        "schedule-method-missing",
        "the checkpoint has a schedule of {node} that calls {method!r}, which is gone: keep the method, or start a "
        "new branch with --branch",
        node=node,
        method=method,
    )
