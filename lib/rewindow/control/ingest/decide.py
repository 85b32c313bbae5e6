"""Turn blocks of rows into landings with numbers, watermarks and releases, and warn about probable mistakes. Pure.

Landings are decided in the order of their intervals. These are the warnings:

* All new records of a log were quarantined. A few quarantined records are normal, but if there are no others, the source changed.
* Records have no key. Kafka and logs allow that, but operators that group or join by key skip such records, and often an empty
  cell in the source is the cause.
* The source is the output table of a job. A job writes the rows of a run partition by partition. If the source is declared as the
  job's output, its rows are landed by epochs and in the order of epochs. If it is landed as a table, many rows are late.
* The function that extracts event times has changed since the last landing, so that the log has times from two functions.
* A source has text files without rows, or files that do not end with the end of a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import FILE_ORDER, EpochTimes, FeedSpec, PendingLanding, SourceLook
from rewindow.contracts.landing_protocol import Block
from rewindow.control.ingest.feed_progress import Flat, Progress, flat_columns, held_file, held_range
from rewindow.control.ingest.landings import Feed, LandedRange, Landing
from rewindow.control.ingest.watermarks import (
    Delivery,
    FirstAbove,
    HeldFile,
    WatermarkPolicy,
    decide_watermark,
    release_offset,
)
from rewindow.errors import ReasonMessage, WarningMessage
from rewindow.streams.record import UNKNOWN, TopicPartition


@dataclass(frozen=True, slots=True)
class DecidedLanding:
    """A landing with its interval (of arrival, or of epochs of a job), its blocks by topic, and its landing time (epoch ms)."""

    landing: Landing
    interval: tuple[int, int] | None
    blocks: Mapping[str, tuple[Block, ...]]
    landed_ms: int
    flat: Mapping[str, Flat]
    """From topic to its flat columns (see `feed_progress.Flat`) in this landing, or in the last landing with enough records."""

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

    ``declared_ms`` (``--watermark``) applies to the last landing of the call. ``by_epoch``: the times of each epoch, if the
    intervals are epochs of another job. Such a landing releases all records up to the epoch's watermark, but its own watermark
    is lower by the time for which the job may hold rows back (ADR-133).
    """

    generation: int
    policy: WatermarkPolicy
    now_ms: int
    declared_ms: int | None = None
    by_epoch: Mapping[int, EpochTimes] | None = None


class Numbering:
    """The state from which the landings of one call are numbered and decided, interval by interval.

    An interval becomes a landing if it has blocks or raises the watermark.
    """

    def __init__(self, progress: Progress, rules: LandingRules, first_above: FirstAbove) -> None:
        """Continue from the last landing."""
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

        ``blocks``, by topic, have the numbers of the ``slots`` for which they were written. If the landings get other
        numbers, the caller must write the blocks again.
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
                # The blocks of a log with source offsets have no files.
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


_SHOWN = 3
"""The most partitions that a warning names."""


def all_quarantined(feed: FeedSpec, decided: Sequence[DecidedLanding]) -> Iterator[WarningMessage]:
    """Yield a warning for each log whose new records were all quarantined."""
    for spec in feed.logs:
        blocks = [block for landing in decided for block in landing.blocks.get(spec.topic, ())]
        if refused := all_refused(blocks):
            count, why = refused
            all_records = "the only new record" if count == 1 else f"all {count:,} new records"
            were = "was" if count == 1 else "were"
            yield WarningMessage(
                "landing-all-quarantined",
                "feed {feed}: {what} of the log {topic} {were} quarantined, the first because of: {reason}",
                feed=feed.feed,
                what=all_records,
                topic=spec.topic,
                were=were,
                reason=why,
            )


def all_refused(blocks: Sequence[Block]) -> tuple[int, str] | None:
    """Return the number of quarantined records and the reason for the first; None if there are none, or records were landed."""
    count = sum(block.quarantined for block in blocks)
    if not count or any(block.end > block.start for block in blocks):
        return None
    return count, next(block.refused for block in blocks if block.quarantined)


def keyless_records(feed: FeedSpec, decided: Sequence[DecidedLanding]) -> Iterator[WarningMessage]:
    """Yield a warning for each log with landed records whose key is null."""
    for spec in feed.logs:
        blocks = [block for landing in decided for block in landing.blocks.get(spec.topic, ()) if block.keyless]
        records = sum(block.keyless for block in blocks)
        if records:
            have = "1 record has" if records == 1 else f"{records:,} records have"
            them = "it" if records == 1 else "them"
            yield WarningMessage(
                "records-without-key",
                "feed {feed}: {what} no key in the log {topic}, because {column} is null ({where}). Jobs skip {them} where they "
                "group, aggregate or inner-join by key",
                feed=feed.feed,
                what=have,
                topic=spec.topic,
                column=spec.key[0],
                where=_where(blocks),
                them=them,
            )


def orders(feed: FeedSpec) -> Iterator[ReasonMessage]:
    """Yield the rule that orders a log's records, for each log that states no order itself.

    Its records may have had another order in their topic, and other records may have been late there.
    """
    for spec in feed.logs:
        if spec.arrived_at or spec.order or spec.in_file_order or spec.source_offsets:
            continue
        is_table = spec.source.format in TABLE_FORMATS
        yield ReasonMessage(
            "order-of-records",
            "In the log {topic}, records of one {unit} are in the order of {values}, {consequence}. If they had another order in "
            "their topic, set `order: {order}`, and land a new generation",
            topic=spec.topic,
            unit="commit" if is_table else "landing",
            values="key and value, because `timestamp:` is a function" if spec.extractor else "their timestamps",
            consequence="so other records are late than in a topic" if spec.extractor else "so none of them is late",
            order="[COLUMN]" if is_table else FILE_ORDER,
        )


def files_out_of_order(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
    """Yield a warning for each log in file order with a new file that would precede landed files in a new generation."""
    for spec in feed.logs:
        look = inspected[spec.topic]
        name = min((piece.name for piece in look.fresh), default="")
        if spec.in_file_order and look.fresh and look.landed and name < look.landed[-1].name:
            yield WarningMessage(
                "file-before-landed",
                "feed {feed}: {file} of the log {topic} is landed after {landed}, but its name comes before. In a new generation "
                "its rows come first: name files in the order of their rows",
                feed=feed.feed,
                file=name,
                topic=spec.topic,
                landed=look.landed[-1].name,
            )


def outputs_as_tables(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
    """Yield a warning for each log whose source is declared as a table, but is the table of a job's output."""
    for topic, look in inspected.items():
        if look.owner is not None:
            yield WarningMessage(
                "output-landed-as-table",
                "feed {feed}: the source of the log {topic} is an output of the job {job}. Landed as a table, its rows have no "
                "watermarks and may be late: `source: {{job: {job}, output: TOPIC}}` lands it by epochs",
                feed=feed.feed,
                topic=topic,
                job=look.owner,
            )


def empty_files(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
    """Yield a warning for each log whose source has new text files without rows."""
    for topic, look in inspected.items():
        if look.empty:
            others = len(look.empty) - 1
            more = f" and {others} more file{'s' if others > 1 else ''} have" if others else " has"
            it = "they have" if others else "it has"
            yield WarningMessage(
                "files-without-rows",
                "feed {feed}: {file} of the log {topic}{more} no rows, and will be landed once {they_have} some",
                feed=feed.feed,
                file=look.empty[0],
                topic=topic,
                more=more,
                they_have=it,
            )


def open_ended_files(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
    """Yield a warning for each log whose source has new files that may be incomplete, because their last line has no end."""
    for topic, look in inspected.items():
        if look.open_ended:
            is_one = len(look.open_ended) == 1
            do, were, last = ("does", "it was", "its last row") if is_one else ("do", "they were", "their last rows")
            more = "" if is_one else f" and {len(look.open_ended) - 1} more files"
            yield WarningMessage(
                "files-end-within-line",
                "feed {feed}: {file} of the log {topic}{more} {do} not end with the end of a line. If {were} still being "
                "written, {last} may be cut, with wrong values: compare, and once all is there land again with `rewindow "
                "land {feed} --new-generation`. Write files elsewhere, and move them into the folder",
                feed=feed.feed,
                file=look.open_ended[0],
                topic=topic,
                more=more,
                do=do,
                were=were,
                last=last,
            )


def changed_extractors(feed: Feed | None, versions: Mapping[str, str]) -> Iterator[WarningMessage]:
    """Yield a warning for each function whose code has changed since the feed's last landing.

    ``versions``: from the name of a function (``module:function``) to the version of its code.
    """
    if feed is None or not feed.landings:
        return
    last, name = feed.landings[-1], feed.definition.feed
    for function, version in versions.items():
        if last.extractors.get(function, version) != version:
            yield WarningMessage(
                "extractor-changed",
                "feed {feed}: {function} has changed since landing {landing}. Landed records keep their times; `rewindow land "
                "{feed} --new-generation` lands them again with the new ones",
                feed=name,
                function=function,
                landing=last.number,
            )


def _where(blocks: Sequence[Block]) -> str:
    """Return the partitions and first offsets of records without a key, such as ``partition 0, offsets 3, 7``."""
    named = []
    for block in blocks[:_SHOWN]:
        offsets = ", ".join(map(str, block.keyless_at))
        more = ", ..." if block.keyless > len(block.keyless_at) else ""
        named.append(f"partition {block.partition}, offset{'s' if block.keyless > 1 else ''} {offsets}{more}")
    return "; ".join([*named, *(["..."] if len(blocks) > _SHOWN else [])])
