"""Turn blocks of rows into landings: decide each landing's number, its watermark, and how far it releases each topic-partition.

Intervals are decided in their order. Pure. Times are epoch ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.contracts.ingest import EpochTimes, PendingLanding
from rewindow.contracts.landing_protocol import Block
from rewindow.control.ingest.feed_progress import Flat, Progress, flat_columns, held_file, held_range
from rewindow.control.ingest.landings import Delivery, HeldFile, LandedRange, Landing
from rewindow.streams.record import UNKNOWN, TopicPartition


@dataclass(frozen=True, slots=True)
class WatermarkPolicy:
    """How landings get their watermarks (D16, KIP-353).

    ``max_task_idle_ms``: the landing time for which the watermark waits for an idle topic-partition. With 0 it does not wait,
    with None it waits forever. ``lag_ms`` is subtracted from the watermark. With ``interval_end`` the watermark follows the end
    of the landing's interval instead of timestamps.
    """

    max_task_idle_ms: int | None = 0
    lag_ms: int = 0
    interval_end: bool = False


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


FirstAbove = Callable[[HeldFile, int, int], int | None]
"""Returns a file's first offset, from ``offset`` on, with a timestamp above ``time``, or None. Takes ``(file, offset,
time)``."""


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


@dataclass(frozen=True, slots=True)
class DecidedLanding:
    """A landing with its interval of arrival (or of a job's epochs), its blocks by topic, and its landing time (epoch ms)."""

    landing: Landing
    interval: tuple[int, int] | None
    blocks: Mapping[str, tuple[Block, ...]]
    landed_ms: int
    flat: Mapping[str, Flat]
    """Maps each topic to its flat columns (columns with only nulls or one value) in the last landing with enough records."""

    def as_json(self, attempt: str, positions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of the LANDING row."""
        return {
            **self.landing.as_json(),
            "time": self.landed_ms,
            "attempt": attempt,
            "files": self._manifest("files"),
            "quarantine": self._manifest("quarantine"),
            "positions": dict(positions),
            "flat": {topic: dict(columns) for topic, columns in self.flat.items()},
        }

    def _manifest(self, part: str) -> dict[str, list[dict[str, Any]]]:
        manifest = {
            topic: [file.as_json() for block in blocks for file in getattr(block, part)]
            for topic, blocks in self.blocks.items()
        }
        return {topic: files for topic, files in manifest.items() if files}


@dataclass(frozen=True, slots=True)
class LandingRules:
    """How landings get their watermarks.

    ``declared_ms`` (``--watermark``) applies to the last landing of the call. ``by_epoch`` has the times of each epoch if the
    intervals are epochs of another job. The landing of an epoch releases all records up to the epoch's watermark. The landing's
    own watermark is lower, by the time for which the job may hold rows back (ADR-133).
    """

    generation: int
    policy: WatermarkPolicy
    now_ms: int
    declared_ms: int | None = None
    by_epoch: Mapping[int, EpochTimes] | None = None


class Numbering:
    """Decides the landings of one call and their numbers, interval by interval.

    An interval becomes a landing if it has blocks or raises the watermark.
    """

    def __init__(self, progress: Progress, rules: LandingRules, first_above: FirstAbove) -> None:
        """Continue after the feed's last landing."""
        self._rules, self._first_above = rules, first_above
        self._number, self._watermark = progress.number, progress.watermark_ms
        self._ranges, self._deliveries = dict(progress.ranges), dict(progress.deliveries)
        self._held = dict(progress.held)
        self._flat = dict(progress.flat)

    def decide(
        self,
        intervals: Sequence[tuple[int, int] | None],
        blocks: Mapping[str, Sequence[Block]],
        slots: Sequence[PendingLanding],
    ) -> list[DecidedLanding]:
        """Return the landings of a call.

        ``blocks``, by topic, were written for the landing numbers in ``slots``. If the decided landings have other numbers, the
        caller must write the blocks again.
        """
        numbers = {slot.interval: slot.number for slot in slots}
        by_number: dict[int, dict[str, list[Block]]] = {}
        for topic, topic_blocks in blocks.items():
            for block in topic_blocks:
                by_number.setdefault(block.landing, {}).setdefault(topic, []).append(block)
        decided = []
        for interval, is_last in _with_last(intervals):
            number = numbers.get(interval)
            made_of = by_number.get(number, {}) if number is not None else {}
            landing = self._landing(interval, made_of, is_last=is_last)
            if landing is not None:
                decided.append(landing)
        return decided

    def _landing(
        self, interval: tuple[int, int] | None, made_of: Mapping[str, Sequence[Block]], *, is_last: bool
    ) -> DecidedLanding | None:
        epoch = self._rules.by_epoch[interval[0]] if self._rules.by_epoch and interval else None
        landed_ms = interval[1] if interval else self._rules.now_ms
        if epoch is not None:
            landed_ms = epoch.watermark_ms
        deliveries = dict(self._deliveries)
        for topic, block in _each(made_of):
            if block.end > block.start:
                deliveries[TopicPartition(topic, block.partition)] = Delivery(block.max_timestamp, landed_ms)
        declared_ms = epoch.complete_ms if epoch is not None else None
        if is_last and self._rules.declared_ms is not None:
            declared_ms = self._rules.declared_ms
        watermark = decide_watermark(
            self._rules.policy,
            deliveries,
            landed_ms=landed_ms,
            interval_end_ms=interval[1] if interval else None,
            declared_ms=declared_ms,
            before_ms=self._watermark,
        )
        # A landing without blocks that does not raise the watermark would give jobs an epoch in which nothing happens.
        if not made_of and watermark.time_ms <= self._watermark:
            return None
        self._number += 1
        self._watermark, self._deliveries = watermark.time_ms, deliveries
        self._ranges = self._next_ranges(made_of, max(self._watermark, epoch.watermark_ms if epoch else UNKNOWN))
        refused: Counter[str] = Counter()
        for topic, block in _each(made_of):
            refused[topic] += block.quarantined
        counts = {
            "rows": sum(block.end - block.start for _, block in _each(made_of)),
            "quarantined": refused.total(),
            "behind": sum(block.behind for _, block in _each(made_of)),
            "enforced": len(watermark.idle),
        }
        unarrived = sum(block.unarrived for _, block in _each(made_of))
        counts |= {"unarrived": unarrived} if unarrived else {}
        arrived = interval if epoch is None else None
        landing = Landing(
            self._number,
            self._rules.generation,
            self._watermark,
            self._ranges,
            arrived,
            counts,
            watermark.idle,
            dict(+refused),
            held_ms=epoch.held_ms if epoch is not None else 0,
        )
        for topic, blocks in made_of.items():
            flat = flat_columns(blocks, self._flat.get(topic))
            self._flat |= {} if flat is None else {topic: flat}
        by_topic = {topic: tuple(blocks) for topic, blocks in made_of.items()}
        return DecidedLanding(landing, interval, by_topic, landed_ms, dict(self._flat))

    def _next_ranges(
        self, made_of: Mapping[str, Sequence[Block]], released_ms: int
    ) -> dict[TopicPartition, LandedRange]:
        taken = {
            TopicPartition(topic, block.partition): block for topic, block in _each(made_of) if block.end > block.start
        }
        ranges: dict[TopicPartition, LandedRange] = {}
        for tp in sorted({*self._ranges, *taken}):
            before = self._ranges.get(tp, LandedRange(0, 0, UNKNOWN, 0))
            block = taken.get(tp)
            start, end = (block.start, block.end) if block else (before.end, before.end)
            largest = block.max_timestamp if block else before.max_timestamp
            base = block.base if block else before.base
            held: list[HeldFile] = [*self._held.get(tp, ())]
            if block and block.files:
                held += [held_file(tp.topic, file) for file in block.files]
            elif block:
                # A log with source offsets has no files of its own, so its blocks have none.
                held.append(held_range(tp, LandedRange(start, end, largest, start, base)))
            release, self._held[tp] = release_offset(held, before.release, end, released_ms, self._first_above)
            ranges[tp] = LandedRange(start, end, largest, release, base)
        return ranges


def _with_last(intervals: Sequence[tuple[int, int] | None]) -> Iterator[tuple[tuple[int, int] | None, bool]]:
    for index, interval in enumerate(intervals, start=1):
        yield interval, index == len(intervals)


def _each(made_of: Mapping[str, Sequence[Block]]) -> Iterator[tuple[str, Block]]:
    for topic, blocks in made_of.items():
        for block in blocks:
            yield topic, block


def all_refused(blocks: Sequence[Block]) -> tuple[int, str] | None:
    """Return how many records were quarantined, and the reason for the first; None if there are none, or if any was landed."""
    count = sum(block.quarantined for block in blocks)
    if not count or any(block.end > block.start for block in blocks):
        return None
    return count, next(block.refused for block in blocks if block.quarantined)
