"""What a processor is (KIP-138, KIP-251), and the only way in which it reaches the task: its context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rewindow.errors import ConfigError, DataError
from rewindow.streams.deprecated import old_forward, old_schedule
from rewindow.streams.duration import to_ms
from rewindow.streams.metrics import Measure
from rewindow.streams.punctuation import Cancellable, PunctuationType
from rewindow.streams.record import UNKNOWN, Record, RecordMetadata, To

if TYPE_CHECKING:
    from rewindow.streams.seeded_random import SeededRandom
    from rewindow.streams.task_context import TaskContext

Take = Callable[[Record], None]
"""What handles one record: a processor, a sink, or several of them."""


class Processor:
    """One node's code. Made anew for each epoch: what shall survive is in a store or a schedule."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Start an epoch. Overriding methods keep the context, fetch stores and schedule punctuations."""
        self.context = context

    def process(self, record: Record) -> None:
        """Handle one record."""

    def on_watermark(self, watermark_ms: int) -> None:
        """Learn at an epoch's end that no more is due before this time.

        Called where time follows the watermark (D22), and in a final run, then with the end of time (D18).
        """

    def close(self) -> None:
        """End an epoch. Nothing can be forwarded any more."""


class ProcessorContext:
    """What a processor may ask and do. One for each node, task and epoch."""

    __slots__ = ("_by_name", "_children", "_record_context", "_task_context", "_to_all", "headers", "is_closed", "name")

    def __init__(self, name: str, task_context: TaskContext) -> None:
        self.name = name
        self._task_context = task_context
        self._record_context = task_context.record_context
        self._by_name: dict[str, Take] = {}
        self._children: tuple[Take, ...] = ()
        self._to_all = to_all(())
        self.is_closed = False
        self.headers: tuple[tuple[str, bytes], ...] = ()
        """What `streams.kafka_legacy` forwards with a bare key and value; nothing elsewhere."""

    def attach(self, name: str, child: Take) -> None:
        """Connect a child; the topology's order of children is the order of forwarding."""
        self._by_name[name] = child
        self._children = (*self._children, child)
        self._to_all = to_all(self._children)

    def close(self) -> None:
        """From here on nothing can be forwarded or scheduled: the epoch is over."""
        self.is_closed = True
        self._to_all = self._refuse
        self._by_name = dict.fromkeys(self._by_name, self._refuse)

    def forward(self, record: Record, *old: Any, to: To | None = None) -> None:
        """Send a record to all children, or as ``to`` says; it has passed through them all when this returns (KIP-251).

        The timestamp is that of ``to``, else the record's own, else that of the record or punctuation being handled.
        Raises `DataError` for what is no record, for an unknown child, and for a timestamp that is negative or no integer.
        A bare key, value and child are its deprecated overloads: see `streams.deprecated`.
        """
        if old:
            record, to = old_forward(self, tuple(self._by_name), record, old)
        record_context = self._record_context
        before = record_context.timestamp
        try:
            timestamp: Any = record.timestamp
        except AttributeError as error:
            message = f"{self.name} forwarded {record!r}: give a Record(key, value), with To.child(name) as to="
            raise DataError(message) from error
        if timestamp is before and to is None and before >= 0:  # most are: the very object, so it is an int
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
        type: PunctuationType | None = None,  # noqa: A002 - KIP-138's own name
        callback: Callable[..., None] | None = None,
        *,
        name: str | None = None,
        time_shift: str | timedelta | None = None,
        start_time: str | timedelta | None = None,
        args: tuple[Any, ...] = (),
    ) -> Cancellable:
        """Call a method of this processor every ``interval`` of stream or wall-clock time (KIP-138).

        It is called with the clock in epoch milliseconds and ``args``. Without alignment a stream-time schedule starts
        at the first record or one interval from now, a wall-clock one an interval from now (D2). ``time_shift`` aligns
        it to the epoch plus the shift (D3), ``start_time`` to a first time since the epoch (KIP-1146, D4): give one of
        the two. A ``name`` identifies it within the node: using it again replaces (D7). The interval alone is the
        deprecated form, which calls ``punctuate`` on stream time.
        Raises `ConfigError` for an interval below 1 ms, a negative start or a callback that cannot be found again.
        """
        if self.is_closed:
            raise DataError(f"{self.name} schedules in close(): the epoch is over; schedule in init or process")
        task_context = self._task_context
        if type is None and callback is None:
            type, callback = PunctuationType.STREAM_TIME, old_schedule(self.name, task_context.processors[self.name])  # noqa: A001
        if not isinstance(type, PunctuationType) or callback is None:
            raise ConfigError(
                f"{self.name}: schedule({interval!r}) has a type, PunctuationType.STREAM_TIME or WALL_CLOCK_TIME, and a "
                "callback, self.<method>: give both"
            )
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
        """Find a named schedule again: fields of a processor do not outlive an epoch. Raises `ConfigError` if there is none."""
        return self._task_context.schedules.cancellable(self.name, name)

    def store(self, name: str) -> Any:
        """Return a store that is connected to this node. Raises `ConfigError` otherwise."""
        return self._task_context.store(self.name, name)

    @property
    def stream_time_ms(self) -> int:
        """The task's stream time: the highest timestamp taken (D1), -1 before the first record."""
        return self._task_context.stream_time_ms

    @property
    def wall_clock_ms(self) -> int:
        """The simulated wall clock (D8), -1 before it is known."""
        return self._task_context.wall_clock_ms

    @property
    def scheduled_ms(self) -> int:
        """In a punctuation: the time at which it was due (its argument is the clock, D5). Elsewhere -1."""
        return self._record_context.scheduled_ms

    @property
    def timestamp(self) -> int:
        """The timestamp of the record or punctuation being handled."""
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
        """Return random numbers that follow from where this call stands: the same in every attempt, cut and branch.

        It has the methods of Python's ``random.Random`` that are used most. The place is the record or punctuation
        being handled, this node, and how many such calls it made before. Raises `DataError` in `init` and `close`.
        """
        return self._task_context.call_ids.random(self.name)

    def uuid(self) -> str:
        """Return an id that follows from where this call stands, as `random` does: a text, RFC 9562's version 8."""
        return self._task_context.call_ids.uuid(self.name)

    def idempotency_key(self) -> str:
        """Return a key for an effect on the world outside, as `random` does: whoever computes it again gives it again.

        ``job/topic/partition/offset/node/n`` of a record, ``job/partition/schedule-<k>/<due>/node/n`` of a punctuation,
        ``job/partition/epoch/<number>/node/n`` at an epoch's end. The test driver has no job.
        """
        return self._task_context.call_ids.key(self.name)

    @property
    def observed_time_ms(self) -> int:
        """This node's own clock: the highest time it was told to `observe`, kept in the checkpoint (D14)."""
        return self._task_context.node_times.get(self.name, UNKNOWN)

    def observe(self, timestamp: int) -> int:
        """Move this node's own clock forward to a timestamp, never back; return the clock."""
        times = self._task_context.node_times
        observed = times.get(self.name, UNKNOWN)
        if timestamp > observed:
            times[self.name] = observed = timestamp
        return observed

    def measure(self, name: str, *, reason: str = "") -> Measure:
        """Return a metric of this node; the metrics table of the run has it."""
        return self._task_context.metrics.measure("node", self.name, name, reason)

    def drop(self, record: Record, name: str, *, reason: str, times: int = 1) -> None:
        """Count a record that goes no further, under a metric's name (`streams.metrics`) and a reason.

        Where the job says ``dropped: quarantine`` it becomes a row there, once. ``times``: how often it counts, as a
        record that is late for several windows counts for each.
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
    """Return what gives a record to each of some children, in order: a single one itself, without a step in between."""
    if len(children) == 1:
        return children[0]

    def take(record: Record) -> None:
        for child in children:
            child(record)

    return take


def _whole_ms(value: str | timedelta, what: str, *, at_least: int) -> int:
    milliseconds = to_ms(value)
    if milliseconds < at_least:
        message = f"schedule({what}={value!r}): {what} is at least {at_least} ms"
        raise ConfigError(message)
    return milliseconds
