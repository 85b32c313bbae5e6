"""Suppress (KIP-328): buffer a table's updates until a window closes or a time limit ends; send only each key's last update.

The node's clock is the highest timestamp of the updates that reach it. For each update, in this order:

1. the clock advances;
2. the update replaces the buffered update of its key;
3. due entries are sent, in the order of (buffer time, key bytes);
4. if the buffer exceeds a limit, the oldest entries are sent early, or the run fails.

A result has the timestamp of its last update. Its old value is the value that was last sent for its key (D13).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from rewindow.errors import LimitError
from rewindow.streams.duration import in_words
from rewindow.streams.metrics import SUPPRESSION_EMIT, SUPPRESSION_OVERTIME
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import MAX_MS, Change, Record
from rewindow.streams.state.suppress_buffer import TimeOrderedBuffer, make_update
from rewindow.streams.timing import Timing


class BufferFull(StrEnum):
    """The reaction of a bounded buffer to being full."""

    EMIT_EARLY = "emit_early"
    SHUT_DOWN = "shut_down"
    SPILL_TO_DISK = "spill_to_disk"


class BufferTime(StrEnum):
    """The time from which a time limit counts."""

    FIRST = "first"
    """The first buffered update of a key, as in Kafka and in the text of KIP-328."""
    LATEST = "latest"
    """The last update of a key, as in the examples of KIP-328."""
    WINDOW_START = "window_start"
    """The start of the key's window, as KIP-328 describes for windowed tables."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a buffer (None: no limit), and what happens when a limit is exceeded."""

    records: int | None = None
    bytes: int | None = None
    when_full: BufferFull = BufferFull.SHUT_DOWN

    @property
    def memory(self) -> tuple[int | None, int | None]:
        """How many ``(records, bytes)`` stay in memory before the buffer spills to disk; None means no limit."""
        return (self.records, self.bytes) if self.when_full is BufferFull.SPILL_TO_DISK else (None, None)

    def describe(self) -> str:
        """Return, as text, the limits that affect results. A limit at which the run fails or spills does not affect them."""
        if self.when_full is not BufferFull.EMIT_EARLY or self.records is self.bytes is None:
            return ""
        named = (("max_records", self.records), ("max_bytes", self.bytes))
        return "".join(f", {name}={bound}" for name, bound in named if bound is not None)


NO_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class SuppressUntilWindowCloses:
    """Buffer each window's updates until the window and its grace period are over."""

    final_after_end_ms: int
    """See `Windows`."""
    store: str
    bounds: Bounds = NO_BOUNDS

    def __call__(self) -> Processor:
        return _Suppress(
            _Settings(
                self.store, self.final_after_end_ms, lambda record: record.key.window.end_ms, self.bounds, is_final=True
            )
        )

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"suppress(until_window_closes, grace={in_words(self.final_after_end_ms)}, store={self.store})"

    def timings(self) -> tuple[Timing]:
        """See `streams.timing`."""
        return (Timing(self.store, self.final_after_end_ms, {"grace": self.final_after_end_ms}),)


@dataclass(frozen=True, slots=True)
class SuppressUntilTimeLimit:
    """Buffer each key's updates until a time limit is over."""

    limit_ms: int
    store: str
    buffer_time: BufferTime = BufferTime.FIRST
    bounds: Bounds = NO_BOUNDS

    def __call__(self) -> Processor:
        by_window = self.buffer_time is BufferTime.WINDOW_START
        return _Suppress(
            _Settings(
                self.store,
                self.limit_ms,
                (lambda record: record.key.window.start_ms) if by_window else (lambda record: record.timestamp),
                self.bounds,
                begins_anew=self.buffer_time is BufferTime.LATEST,
            )
        )

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        how = f"limit={in_words(self.limit_ms)}, buffer_time={self.buffer_time}{self.bounds.describe()}"
        return f"suppress(until_time_limit, {how}, store={self.store})"

    def timings(self) -> tuple[Timing]:
        """See `streams.timing`."""
        return (Timing(self.store, self.limit_ms, {"limit": self.limit_ms}, sends_nulls=True),)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of both kinds of suppress.

    ``delay_ms``: how long after its buffer time an entry is due. ``time_of`` returns the buffer time of a record.
    ``begins_anew``: whether an update restarts the buffer time of its key. ``is_final``: whether only final results are sent.
    """

    store: str
    delay_ms: int
    time_of: Callable[[Record], int]
    bounds: Bounds
    begins_anew: bool = False
    is_final: bool = False


class _Suppress(Processor):
    def __init__(self, settings: _Settings) -> None:
        self._settings = settings
        self._is_bound = settings.bounds.memory == (None, None) and settings.bounds != NO_BOUNDS

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._buffer: TimeOrderedBuffer = context.store(self._settings.store)
        self._buffer.begin()
        self._emitted = context.measure(SUPPRESSION_EMIT)
        self._overtime = context.measure(SUPPRESSION_OVERTIME)

    def process(self, record: Record) -> None:
        new, old = record.value
        settings = self._settings
        observed_ms = self.context.observe(record.timestamp)
        origin_bytes = len(self.context.topic or "") + (_headers_bytes(record) if record.headers else 0)
        update = make_update((new, old, record.timestamp, origin_bytes))
        self._buffer.put(record.key, update, settings.time_of(record), begins_anew=settings.begins_anew)
        self._evict(observed_ms)
        if self._is_bound and self._is_over():
            self._shrink()

    def on_watermark(self, watermark_ms: int) -> None:
        self._evict(self.context.observe(watermark_ms))

    def _evict(self, observed_ms: int) -> None:
        settings = self._settings
        # At the end of time, and with a time limit of zero, every entry is due.
        is_endless = observed_ms == MAX_MS or not (settings.delay_ms or settings.is_final)
        due_ms = MAX_MS if is_endless else observed_ms - settings.delay_ms
        for key, held in self._buffer.pop_until(due_ms):
            if not settings.is_final and observed_ms != MAX_MS:
                self._overtime.record(observed_ms - held.timestamp)
            self._emit(key, held.value, held.prior, held.timestamp)

    def _shrink(self) -> None:
        if self._settings.bounds.when_full is BufferFull.SHUT_DOWN:
            raise self._full()
        while self._is_over():
            key, held = self._buffer.pop_oldest()
            self._emit(key, held.value, held.prior, held.timestamp)
        self._buffer.sample()

    def _emit(self, key: object, new: object, prior: object, timestamp: int) -> None:
        if new is None and self._settings.is_final:
            # No result has to be deleted downstream. Either none was sent, or the sent result is final. The latter happens if a
            # late record merges a closed session, whose final result stays.
            return
        self._emitted.record()
        self.context.forward(Record(key, Change(new, prior), timestamp))

    def _is_over(self) -> bool:
        bounds, buffer = self._settings.bounds, self._buffer
        if bounds.records is not None and len(buffer) > bounds.records:
            return True
        return bounds.bytes is not None and buffer.size > bounds.bytes

    def _full(self) -> LimitError:
        bounds, buffer, metadata = self._settings.bounds, self._buffer, self.context.record_metadata
        over = [
            f"{name}={bound}"
            for name, bound, held in (
                ("max_records", bounds.records, len(buffer)),
                ("max_bytes", bounds.bytes, buffer.size),
            )
            if bound is not None and held > bound
        ]
        return LimitError(
            "suppress-buffer-full",
            "suppress {node!r} is full at {topic}-{partition} offset {offset}: its buffer holds {records} records "
            "in {size} bytes, more than {limits}. Raise the limit, or let the buffer spill_to_disk_when_full()",
            node=self.context.name,
            topic=metadata.topic,
            partition=metadata.partition,
            offset=metadata.offset,
            records=len(buffer),
            size=buffer.size,
            limits=" and ".join(over),
        )


def _headers_bytes(record: Record) -> int:
    return sum(len(name.encode()) + len(value) for name, value in record.headers)
