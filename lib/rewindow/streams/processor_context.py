"""The context of a processor: everything that it may ask of its task, or tell it (KIP-138, KIP-251)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from rewindow.errors import ConfigError, DataError
from rewindow.streams.duration import to_ms
from rewindow.streams.metrics import Measure
from rewindow.streams.punctuation import Cancellable, PunctuationType
from rewindow.streams.record import UNKNOWN, Record, RecordMetadata, To
from rewindow.streams.seeded_random import SeededRandom
from rewindow.streams.task_context import TaskContext

Take = Callable[[Record], None]
"""Handles one record: a processor, a sink, or several of them."""


class ProcessorContext:
    """A processor's only access to the task: forwarding, schedules, stores, clocks and metrics.

    Each node gets a new context in each epoch.
    """

    __slots__ = ("_by_name", "_children", "_record_context", "_task_context", "_to_all", "is_closed", "name")

    def __init__(self, name: str, task_context: TaskContext) -> None:
        self.name = name
        self._task_context = task_context
        self._record_context = task_context.record_context
        self._by_name: dict[str, Take] = {}
        self._children: tuple[Take, ...] = ()
        self._to_all = to_all(())
        self.is_closed = False

    def attach(self, name: str, child: Take) -> None:
        """Connect a child. Records are forwarded to children in the order in which they were attached."""
        self._by_name[name] = child
        self._children = (*self._children, child)
        self._to_all = to_all(self._children)

    def close(self) -> None:
        """Refuse to forward or schedule from now on: the epoch is over."""
        self.is_closed = True
        self._to_all = self._refuse
        self._by_name = dict.fromkeys(self._by_name, self._refuse)

    def forward(self, record: Record, *, to: To | None = None) -> None:
        """Send a record to all children, or as ``to`` says (KIP-251).

        When this returns, the record has passed through all nodes below. It gets the timestamp of ``to``; by default it
        keeps its own, and a record without one gets that of the record or punctuation being handled.
        Raises `DataError` if ``record`` is not a `Record`, if there is no such child, or if the timestamp is not an
        integer of at least 0.
        """
        record_context = self._record_context
        before = record_context.timestamp
        try:
            timestamp: Any = record.timestamp
        except AttributeError as error:
            message = f"{self.name} forwarded {record!r}: give a Record(key, value), with To.child(name) as to="
            raise DataError(message) from error
        if timestamp is before and to is None and before >= 0:  # the common case: the very same int, so it is valid
            self._to_all(record)
            return
        take = self._to_all
        if to is not None:
            if to.__class__ is not To:
                raise DataError(f"{self.name} forwarded with to={to!r}: give To.child(name) or To.all()")
            if to.child_name is not None:
                take = self._child(to.child_name)
            if to.timestamp is not None:
                timestamp = to.timestamp
        if timestamp is None:
            timestamp = before
        if timestamp.__class__ is not int or timestamp < 0:
            message = (
                f"{self.name} forwarded a record with the timestamp {timestamp!r} ({type(timestamp).__name__}): "
                "give an int of epoch milliseconds, never negative"
            )
            raise DataError(message)
        if timestamp is not record.timestamp:
            record = Record(record.key, record.value, timestamp, record.headers)
        if timestamp == before:
            take(record)
            return
        record_context.timestamp = timestamp
        try:
            take(record)
        finally:
            record_context.timestamp = before

    def schedule(
        self,
        interval: str | timedelta,
        type: PunctuationType,  # noqa: A002 - KIP-138's own name
        callback: Callable[..., None],
        *,
        name: str | None = None,
        time_shift: str | timedelta | None = None,
        start_time: str | timedelta | None = None,
        args: tuple[Any, ...] = (),
    ) -> Cancellable:
        """Call a method of this processor every ``interval`` of stream time or wall-clock time (KIP-138).

        The method gets the clock in epoch milliseconds, then ``args``. By default a stream-time schedule first fires at
        the first record, or one interval from now if there has been one, and a wall-clock schedule one interval from
        now (D2). ``time_shift`` aligns it to the epoch plus the shift (D3). ``start_time`` gives its first time since
        the epoch (KIP-1146, D4). Only one of the two is allowed. ``name`` identifies the schedule within the node;
        a second schedule of the same name replaces the first (D7).
        Raises `ConfigError` for an interval below 1 ms, a negative start, or a callback that is not a method of this
        processor, and `DataError` in `close`.
        """
        if self.is_closed:
            raise DataError(f"{self.name} schedules in close(): the epoch is over; schedule in init or process")
        given: object = type  # user code may pass anything
        if not isinstance(given, PunctuationType):
            message = f"{self.name}: schedule(type={type!r}): give PunctuationType.STREAM_TIME or WALL_CLOCK_TIME"
            raise ConfigError(message)
        task_context = self._task_context
        return task_context.schedules.schedule(
            self.name,
            task_context.stream_time_ms if type is PunctuationType.STREAM_TIME else task_context.wall_clock_ms,
            interval_ms=_whole_ms(interval, "interval", at_least=1),
            type_=type,
            callback=callback,
            name=name,
            time_shift_ms=None if time_shift is None else to_ms(time_shift),
            start_time_ms=None if start_time is None else _whole_ms(start_time, "start_time", at_least=0),
            args=args,
        )

    def cancellable(self, name: str) -> Cancellable:
        """Return the handle of a named schedule, also one made in an earlier epoch. Raises `ConfigError` if there is none."""
        return self._task_context.schedules.cancellable(self.name, name)

    def store(self, name: str) -> Any:
        """Return a store that is connected to this node. Raises `ConfigError` for any other."""
        return self._task_context.store(self.name, name)

    @property
    def stream_time_ms(self) -> int:
        """The task's stream time, the highest timestamp taken (D1), in epoch milliseconds; -1 before the first record."""
        return self._task_context.stream_time_ms

    @property
    def wall_clock_ms(self) -> int:
        """The simulated wall clock (D8) in epoch milliseconds; -1 until it is known."""
        return self._task_context.wall_clock_ms

    @property
    def scheduled_ms(self) -> int:
        """When the current punctuation was due; -1 elsewhere. Its argument is the clock, which may be later (D5)."""
        return self._record_context.scheduled_ms

    @property
    def timestamp(self) -> int:
        """The timestamp of the record or punctuation being handled, in epoch milliseconds."""
        return self._record_context.timestamp

    @property
    def topic(self) -> str | None:
        """The topic of the record being handled; None in a punctuation."""
        return self._record_context.topic

    @property
    def record_metadata(self) -> RecordMetadata:
        """Topic, partition and offset of the record being handled; ``(None, -1, -1)`` in a punctuation."""
        return self._record_context.metadata(self._task_context.partition)

    @property
    def partition(self) -> int:
        """The task's partition."""
        return self._task_context.partition

    def random(self) -> SeededRandom:
        """Return a random number generator with a deterministic seed: the same in every attempt, run and branch.

        It has the common methods of Python's ``random.Random``. The seed is the record or punctuation being handled,
        this node, and the number of such calls before it. Raises `DataError` in `init` and `close`.
        """
        return self._task_context.call_ids.random(self.name)

    def uuid(self) -> str:
        """Return a deterministic UUID (RFC 9562, version 8) as text, derived as the seed of `random`."""
        return self._task_context.call_ids.uuid(self.name)

    def idempotency_key(self) -> str:
        """Return a deterministic key for an external side effect, derived as the seed of `random`.

        A task that is retried, or a run that is repeated, gives the same key. It is ``job/topic/partition/offset/node/n``
        for a record, ``job/partition/schedule-<k>/<due>/node/n`` for a punctuation and
        ``job/partition/epoch/<number>/node/n`` at the end of an epoch. The test driver has no job.
        """
        return self._task_context.call_ids.key(self.name)

    @property
    def observed_time_ms(self) -> int:
        """This node's own clock, kept in the checkpoint: the highest timestamp given to `observe` (D14), or -1."""
        return self._task_context.node_times.get(self.name, UNKNOWN)

    def observe(self, timestamp: int) -> int:
        """Advance this node's own clock to a timestamp, never back, and return the clock."""
        return self.observe_as(self.name, timestamp)

    def observe_as(self, node: str, timestamp: int) -> int:
        """Advance the clock of another node of the task, which several nodes share, and return it: see `observe`."""
        times = self._task_context.node_times
        observed = times.get(node, UNKNOWN)
        if timestamp > observed:
            times[node] = observed = timestamp
        return observed

    def measure(self, name: str, *, reason: str = "") -> Measure:
        """Return a metric of this node. It appears in the metrics table of the run."""
        return self._task_context.metrics.measure("node", self.name, name, reason)

    def drop(self, record: Record, name: str, *, reason: str, times: int = 1) -> None:
        """Count a record that is not processed further, under a metric's name (`streams.metrics`) and a reason.

        If the job is configured with ``dropped: quarantine``, the record is also written to the quarantine, once.
        ``times`` is the number of drops to count: a record may be late for several windows.
        """
        self._task_context.metrics.measure("node", self.name, name, reason).record_many(times, times, 1, 1)
        self._task_context.drop(self.name, reason, record.key, record.value, record.timestamp)

    def _refuse(self, record: Record) -> None:
        raise DataError(f"{self.name} forwards {record.key!r} in close(): the epoch is over; forward before it ends")

    def _child(self, name: str) -> Take:
        child = self._by_name.get(name)
        if child is None:
            known = ", ".join(self._by_name) or "none"
            message = f"{self.name} has no child {name!r} (children: {known}): name one of them in To.child"
            raise DataError(message)
        return child


def to_all(children: Sequence[Take]) -> Take:
    """Return a function that gives a record to all children in order. A single child is returned as it is."""
    if len(children) == 1:
        return children[0]

    def take(record: Record) -> None:
        for child in children:
            child(record)

    return take


def _whole_ms(value: str | timedelta, what: str, *, at_least: int) -> int:
    milliseconds = to_ms(value)
    if milliseconds < at_least:
        message = f"schedule({what}={value!r}): {what} must be at least {at_least} ms"
        raise ConfigError(message)
    return milliseconds
