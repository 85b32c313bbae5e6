"""Decide a landing's watermark, and how far it releases each topic-partition. Pure; times are epoch ms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rewindow.streams.record import UNKNOWN, TopicPartition


@dataclass(frozen=True, slots=True)
class WatermarkPolicy:
    """How landings get their watermarks (D16, KIP-353).

    ``max_task_idle_ms`` is the landing time to wait for idle topic-partitions: 0 does not wait, None waits forever.
    ``lag_ms`` is subtracted from the watermark. ``interval_end`` uses the end of the landing's interval instead of
    timestamps.
    """

    max_task_idle_ms: int | None = 0
    lag_ms: int = 0
    interval_end: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """The largest timestamp of a topic-partition, and the landing time at which it last delivered."""

    largest: int
    landed_ms: int


@dataclass(frozen=True, slots=True)
class Watermark:
    """A landing's watermark, and the idle topic-partitions for which the watermark did not wait (enforced processing)."""

    time_ms: int
    idle: tuple[TopicPartition, ...] = ()


def decide_watermark(
    policy: WatermarkPolicy,
    deliveries: Mapping[TopicPartition, Delivery],
    *,
    landed_ms: int,
    interval_end_ms: int | None = None,
    declared_ms: int | None = None,
    before_ms: int = UNKNOWN,
) -> Watermark:
    """Return the watermark of a landing made at ``landed_ms`` (its interval's end, or its recorded time).

    ``deliveries`` include the deliveries of this landing. ``declared_ms`` (``land --watermark``) overrides the policy. The
    watermark never falls below ``before_ms``.
    """
    if declared_ms is not None:
        return Watermark(max(before_ms, declared_ms))
    if policy.interval_end and interval_end_ms is not None:
        return Watermark(max(before_ms, interval_end_ms - policy.lag_ms))
    delivered = {tp: delivery for tp, delivery in deliveries.items() if delivery.largest != UNKNOWN}
    if not delivered:
        return Watermark(before_ms)
    idle_ms = policy.max_task_idle_ms
    largest = max(delivery.largest for delivery in delivered.values())
    if idle_ms == 0:
        return Watermark(max(before_ms, largest - policy.lag_ms))
    idle = [tp for tp, last in delivered.items() if idle_ms is not None and landed_ms - last.landed_ms >= idle_ms]
    waited_for = [delivery.largest for tp, delivery in delivered.items() if tp not in idle]
    complete = min(waited_for, default=largest)
    return Watermark(max(before_ms, complete - policy.lag_ms), tuple(sorted(idle)))


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A landed file with unreleased records: its offsets ``[start, end)`` and its largest timestamp.

    A log with source offsets has no files. Then ``path`` is empty, and the object describes a range of offsets in
    ``partition``. ``base`` is the source's offset of the record that has offset 0 in the log. ``largest`` may be the timestamp
    of an earlier record.
    """

    topic: str
    path: str
    start: int
    end: int
    largest: int
    partition: int = 0
    base: int = 0


FirstAbove = Callable[[HeldFile, int, int], int | None]
"""Maps ``(file, offset, time)`` to the file's first offset, from ``offset`` on, with a timestamp above ``time``, or to None."""


def release_offset(
    held: Sequence[HeldFile], before: int, end: int, watermark_ms: int, first_above: FirstAbove
) -> tuple[int, tuple[HeldFile, ...]]:
    """Return the offset up to which a topic-partition is released, and the files that still have unreleased records.

    ``held`` are the files of the topic-partition from offset ``before`` (released so far) to ``end``, in offset order.
    """
    # A record above the watermark holds back all records after it, because the order within a partition never changes.
    for index, file in enumerate(held):
        if file.largest > watermark_ms:
            offset = first_above(file, max(before, file.start), watermark_ms)
            if offset is not None:
                return offset, tuple(held[index:])
    return end, ()
