"""Processors (the code of a node; KIP-138, KIP-251), processors that cannot change the key (KIP-820), and their contexts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from rewindow.errors import ConfigError, DataError, LimitError
from rewindow.streams.duration import to_ms
from rewindow.streams.forwarding import Forwarding
from rewindow.streams.process_results import refuse_result
from rewindow.streams.punctuation import Cancellable, PunctuationType
from rewindow.streams.record import UNKNOWN, Record, RecordMetadata, To

if TYPE_CHECKING:
    from rewindow.streams.metrics import Measure
    from rewindow.streams.record_context import SeededRandom
    from rewindow.streams.task_context import TaskContext


class Processor:
    """The code of one node. Each epoch gets a new processor.

    State that must outlive an epoch belongs in a store or a schedule.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Start an epoch. Override this method to fetch stores and schedule punctuations.

        The override must set ``self.context``.
        """
        self.context = context

    def process(self, record: Record) -> None:
        """Handle one record. To send records, call ``self.context.forward``. Return nothing."""

    def on_watermark(self, watermark_ms: int) -> None:
        """Handle the end of an epoch. No record before the watermark (epoch milliseconds) is expected any more.

        Called only if time follows the watermark (D22), and at the end of a final run, with the end of time (`MAX_MS`, D18).
        """

    def close(self) -> None:
        """End an epoch. Forwarding is no longer possible."""


class ProcessorContext(Forwarding):
    """A processor's access to its task: forwarding, schedules, stores, clocks and metrics.

    Each node gets a new context in each epoch.
    """

    __slots__ = ("_task_context",)

    def __init__(self, name: str, task_context: TaskContext) -> None:
        super().__init__(name, task_context.record_context)
        self._task_context = task_context

    # Type checkers see this strict signature. At run time `Forwarding.forward` checks its arguments.
    if TYPE_CHECKING:

        def forward(self, record: Record, *, to: To | None = None) -> None:
            """See `Forwarding.forward`."""

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

        The arguments of the method are the clock in epoch milliseconds, then ``args``. By default a schedule first fires one
        interval from now. A stream-time schedule that is made before the task's first record first fires at that record (D2).
        With ``time_shift``, the due times are aligned to 1970 plus the shift instead (D3). With ``start_time``, the first due
        time is this duration since 1970 instead (KIP-1146, D4). Only one of these two is allowed. ``name`` identifies the
        schedule within the node. A second schedule of the same name replaces the first (D7). Raises `ConfigError` for an
        interval below 1 ms, a negative start, or a callback that is not a method of this processor, and `DataError` in
        `close`.
        """
        if self.is_closed:
            raise DataError(
                "schedule-after-close",
                "{node} schedules in close(): the epoch is over; schedule in init or process",
                node=self.name,
            )
        # User code may pass any object.
        given: object = type
        if not isinstance(given, PunctuationType):
            raise ConfigError(
                "schedule-type-invalid",
                "{node}: schedule(type={type}): give PunctuationType.STREAM_TIME or WALL_CLOCK_TIME",
                node=self.name,
                type=repr(type),
            )
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
        """Return the handle of a named schedule of this node, made in this or an earlier epoch.

        Raises `ConfigError` if there is no schedule of that name.
        """
        return self._task_context.schedules.cancellable(self.name, name)

    def store(self, name: str) -> Any:
        """Return a store that is connected to this node. Raises `ConfigError` for any other store."""
        return self._task_context.store(self.name, name)

    def check_items(self, store: str, key: Any, items: int) -> None:
        """Raise `LimitError` (71) if a key's list has more items than the limit ``list_items`` of the job's file."""
        limit = self._task_context.limits.list_items
        if items > limit:
            raise LimitError(
                "list-items-limit-exceeded",
                "the limit list_items is {limit}, and the list of key {key} in store {store!r} has {items} items "
                "(node {node}, at {position}, partition {partition}). Each record copies the list, so the time "
                "grows with the square of its length. Use an aggregate without a list, shorter windows or "
                "vectorized execution; or raise the limit in the job's file: limits: {{list_items: {suggested}}}",
                limit=limit,
                key=repr(key)[:200],
                store=store,
                items=items,
                node=self.name,
                position=str(self._record_context),
                partition=self.partition,
                suggested=2 * limit,
            )

    @property
    def stream_time_ms(self) -> int:
        """The task's stream time in epoch milliseconds, by default the highest timestamp so far (D1); -1 while unknown."""
        return self._task_context.stream_time_ms

    @property
    def wall_clock_ms(self) -> int:
        """The simulated wall clock (D8) in epoch milliseconds; -1 until it is known."""
        return self._task_context.wall_clock_ms

    @property
    def scheduled_ms(self) -> int:
        """The due time of the current punctuation in epoch milliseconds; -1 outside a punctuation.

        The method's argument is the clock, which may be later than the due time (D5).
        """
        return self._record_context.scheduled_ms

    @property
    def timestamp(self) -> int:
        """The timestamp of the record or punctuation being handled, in epoch milliseconds."""
        timestamp: int = self._record_context.timestamp
        return timestamp

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

        The generator has the common methods of Python's ``random.Random``. The seed consists of the record or punctuation
        being handled, this node, and the number of earlier calls of this method for that record or punctuation. Raises
        `DataError` in `init` and `close`.
        """
        return self._task_context.call_ids.random(self.name)

    def uuid(self) -> str:
        """Return a deterministic UUID (RFC 9562, version 8) as text, derived in the same way as the seed of `random`."""
        return self._task_context.call_ids.uuid(self.name)

    def idempotency_key(self) -> str:
        """Return a deterministic key for an external side effect, derived in the same way as the seed of `random`.

        A task that is retried, or a run that is repeated, gives the same key. The key is
        ``job/topic/partition/offset/node/n`` for a record, ``job/partition/schedule-<k>/<due>/node/n`` for a punctuation and
        ``job/partition/epoch/<number>/node/n`` at the end of an epoch. In the test driver the key has no ``job/``.
        """
        return self._task_context.call_ids.key(self.name)

    @property
    def observed_time_ms(self) -> int:
        """This node's own clock: the highest timestamp that was ever passed to `observe` (D14); -1 if none.

        Kept in checkpoints.
        """
        return self._task_context.node_times.get(self.name, UNKNOWN)

    def observe(self, timestamp: int) -> int:
        """Advance this node's own clock to a timestamp, unless the clock is already later. Return the clock."""
        return self.observe_as(self.name, timestamp)

    def observe_as(self, node: str, timestamp: int) -> int:
        """Advance the clock of the node named ``node``, which several nodes of the task share: see `observe`."""
        times = self._task_context.node_times
        observed = times.get(node, UNKNOWN)
        if timestamp > observed:
            times[node] = observed = timestamp
        return observed

    def measure(self, name: str, *, reason: str = "") -> Measure:
        """Return the measure of a metric of this node. A measure with samples appears in the metrics table of the run."""
        return self._task_context.metrics.measure("node", self.name, name, reason)

    def drop(self, record: Record, name: str, *, reason: str, times: int = 1) -> None:
        """Count a record as dropped, that is, not processed further. ``name`` is the metric (`streams.metrics`).

        If the job is configured with ``dropped: quarantine``, the record is also written to the quarantine, once.
        ``times`` is the number of drops to count, because a record may be late for several windows.
        """
        self._task_context.metrics.measure("node", self.name, name, reason).record_many(times, times, 1, 1)
        self._task_context.drop(self.name, reason, record.key, record.value, record.timestamp)


class AdaptedProcessor(Processor):
    """A processor that receives records through `take` instead of `process`. Its context has the class ``context_type``.

    The task calls ``process`` of ordinary processors directly, so only adapted processors cost an extra call.
    """

    context_type: ClassVar[type[ProcessorContext]] = ProcessorContext

    def take(self, record: Record) -> None:
        """Handle one record."""
        raise NotImplementedError


class FixedKeyContext(ProcessorContext):
    """A context that, while a record is handled, only forwards records with that record's key."""

    __slots__ = ("_handled",)

    def __init__(self, name: str, task_context: TaskContext) -> None:
        super().__init__(name, task_context)
        self._handled: Record | None = None

    def forward(self, record: Record, *, to: To | None = None) -> None:
        """Forward a record: see `ProcessorContext.forward`. Raises `DataError` if the key differs from the handled record's."""
        handled = self._handled
        # User code may pass any object.
        given: object = record
        if handled is not None and isinstance(given, Record) and not _same_key(given, handled):
            raise DataError(
                "key-changed-in-process-values",
                "{node} forwarded the key {key} while it handles {handled}: process_values keeps the key, and "
                "with it the partition; to change it use process",
                node=self.name,
                key=repr(record.key),
                handled=repr(handled.key),
            )
        super().forward(record, to=to)


class FixedKeyProcessor(AdaptedProcessor):
    """A processor for `KStream.process_values`: it may change everything but the key (KIP-820).

    Forwarding another key while a record is handled raises a `DataError`. A punctuation should forward only keys that the
    processor received before, because those keys belong to this partition.
    """

    context: FixedKeyContext
    context_type: ClassVar[type[ProcessorContext]] = FixedKeyContext

    def take(self, record: Record) -> None:
        """See `AdaptedProcessor.take`."""
        context = self.context
        context._handled = record  # noqa: SLF001 - the two classes belong together
        try:
            result: object = self.process(record)  # type: ignore[func-returns-value]  # user code may return anything
            if result is not None:
                refuse_result(self.process, result)
        finally:
            context._handled = None  # noqa: SLF001


def _same_key(record: Record, other: Record) -> bool:
    return record.key is other.key or bool(record.key == other.key)


def _whole_ms(value: str | timedelta, argument: str, *, at_least: int) -> int:
    milliseconds = to_ms(value)
    if milliseconds < at_least:
        raise ConfigError(
            "schedule-time-too-small",
            "schedule({argument}={given}): {argument} must be at least {minimum} ms",
            argument=argument,
            given=repr(value),
            minimum=at_least,
        )
    return milliseconds
