"""The configuration of `KTable.suppress`: until when it holds updates, and how much it may buffer (KIP-328).

table.suppress(until_window_closes(), name="closed-hours")
table.suppress(until_window_closes(max_bytes(5_000_000).shut_down_when_full()))
table.suppress(until_time_limit("30s", max_records(1000)))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from rewindow.dsl.operators.suppress import NO_BOUNDS, Bounds, BufferFull, BufferTime
from rewindow.errors import ConfigError, TopologyError
from rewindow.streams.duration import to_ms


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """How much a suppress may buffer, and what it does when the buffer is full.

    A buffer is strict if it never emits early, because it is unbounded, or shuts down or spills when it is full. The size of
    an entry in bytes is estimated with Kafka's formula, from the sizes of the encoded key and values (D24).
    """

    bounds: Bounds = NO_BOUNDS

    @property
    def is_strict(self) -> bool:
        """Whether the buffer never emits early."""
        return self.bounds.when_full is not BufferFull.EMIT_EARLY

    def with_max_records(self, record_limit: int) -> BufferConfig:
        """Limit the number of buffered keys. Raises `ConfigError` if the limit is negative."""
        return BufferConfig(replace(self.bounds, records=_limit(record_limit, "max_records")))

    def with_max_bytes(self, byte_limit: int) -> BufferConfig:
        """Limit the size of the buffered entries in bytes. Raises `ConfigError` if the limit is negative."""
        return BufferConfig(replace(self.bounds, bytes=_limit(byte_limit, "max_bytes")))

    def with_no_bound(self) -> BufferConfig:
        """Remove all limits, which makes the buffer strict."""
        return _UNBOUNDED

    def emit_early_when_full(self) -> BufferConfig:
        """Emit the oldest entries early when a limit is exceeded.

        The buffer is then not strict: a key may have several results.
        """
        return self._when_full(BufferFull.EMIT_EARLY)

    def shut_down_when_full(self) -> BufferConfig:
        """Fail the run (exit code 71, nothing committed) when a limit is exceeded.

        The limit may be raised later, because checkpoints stay valid.
        """
        return self._when_full(BufferFull.SHUT_DOWN)

    def spill_to_disk_when_full(self) -> BufferConfig:
        """Spill entries to a local file when a limit is exceeded (D15). Results are the same as without a limit."""
        return self._when_full(BufferFull.SPILL_TO_DISK)

    def _when_full(self, when_full: BufferFull) -> BufferConfig:
        return BufferConfig(replace(self.bounds, when_full=when_full))


_UNBOUNDED = BufferConfig()


def max_records(record_limit: int) -> BufferConfig:
    """Return the configuration of a buffer of at most this many keys. By default it emits early when it is full."""
    return BufferConfig(Bounds(records=_limit(record_limit, "max_records"), when_full=BufferFull.EMIT_EARLY))


def max_bytes(byte_limit: int) -> BufferConfig:
    """Return the configuration of a buffer of at most this many bytes. By default it emits early when it is full.

    The size of an entry is 28 bytes plus the bytes of its key, its topic, its headers, its new value, the value that was last
    sent and, if it differs from that, the old value (D24).
    """
    return BufferConfig(Bounds(bytes=_limit(byte_limit, "max_bytes"), when_full=BufferFull.EMIT_EARLY))


def unbounded() -> BufferConfig:
    """Return the configuration of a buffer without a limit."""
    return _UNBOUNDED


@dataclass(frozen=True, slots=True)
class Suppressed:
    """The configuration of a suppress. It holds updates for ``limit_ms`` or, if that is None, until their window closes."""

    limit_ms: int | None = None
    buffer: BufferConfig = _UNBOUNDED
    buffer_time: BufferTime = BufferTime.FIRST
    name: str | None = None

    def with_name(self, name: str) -> Suppressed:
        """Name the node and its buffer. A named suppress can be added to a running job and removed again."""
        return replace(self, name=name)


def until_window_closes(buffer: BufferConfig | None = None, *, name: str | None = None) -> Suppressed:
    """Emit one final result for each key and window, when the window and its grace period are over.

    Results are sent in the order of window end and key bytes, each with the timestamp of its last update. If the row of a
    window is deleted before the window closes, no result is sent. Raises `TopologyError` for a buffer that is not strict,
    because a result that is emitted early is not final.
    """
    given = _buffer(buffer, "until_window_closes")
    if not given.is_strict:
        raise TopologyError(
            "suppress-buffer-not-strict",
            "until_window_closes: its buffer emits early when it is full, so results would not be final: add "
            ".shut_down_when_full() or .spill_to_disk_when_full()",
        )
    return Suppressed(buffer=given, name=name)


def until_time_limit(
    time_to_wait_for_more_events: str | timedelta,
    buffer: BufferConfig | None = None,
    *,
    buffer_time: str = BufferTime.FIRST,
    name: str | None = None,
) -> Suppressed:
    """Wait this long for further updates of a key, then emit the key's last update. ``"0s"`` emits every update at once.

    By default the time counts from the first buffered update of a key, and later updates do not restart it (D9). With
    ``buffer_time="latest"``, every update restarts the time, as in the examples of KIP-328. With ``"window_start"``, the time
    counts from the start of the key's window (D23). Tombstones are buffered and emitted like other updates. Results are sent
    in the order of buffer time and key bytes. Raises `ConfigError` for a negative time or an unknown ``buffer_time``.
    """
    limit_ms = to_ms(time_to_wait_for_more_events)
    if limit_ms < 0:
        raise ConfigError(
            "suppress-time-negative",
            "until_time_limit({time}): the time is negative: give 0 or more",
            time=repr(time_to_wait_for_more_events),
        )
    if buffer_time not in list(BufferTime):
        raise ConfigError(
            "buffer-time-unknown",
            "until_time_limit(buffer_time={given}): give one of {words}",
            given=repr(buffer_time),
            words=", ".join(BufferTime),
        )
    return Suppressed(limit_ms, _buffer(buffer, "until_time_limit"), BufferTime(buffer_time), name)


def _buffer(buffer: object, where: str) -> BufferConfig:
    if buffer is None:
        return _UNBOUNDED
    if not isinstance(buffer, BufferConfig):
        raise TopologyError(
            "suppress-buffer-invalid",
            "{function}({given}): the buffer must be unbounded(), max_records(n) or max_bytes(n)",
            function=where,
            given=repr(buffer),
        )
    return buffer


def _limit(limit: object, function: str) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise ConfigError(
            "buffer-limit-invalid",
            "{function}({limit}): give a whole number, 0 or more",
            function=function,
            limit=repr(limit),
        )
    return limit
