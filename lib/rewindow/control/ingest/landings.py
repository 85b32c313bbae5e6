"""A feed as its landing ledger describes it: its definition, its landings with their watermarks, and their epochs. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rewindow.contracts.ingest import SourceOffsets
from rewindow.contracts.tasks import LogSpan
from rewindow.control.plan.sequence import History
from rewindow.errors import InvariantError
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, log_shape


@dataclass(frozen=True, slots=True)
class LogSchema:
    """The typed columns of a log.

    With ``scalar_key`` (``scalar_value``), the key (value) is the value of its only column, not a row.
    """

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    scalar_key: bool
    scalar_value: bool

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "key": [list(c) for c in self.key], "value": [list(c) for c in self.value]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LogSchema:
        """Return the value of a JSON form."""
        key, value = (tuple(Column(*column) for column in data[part]) for part in ("key", "value"))
        return cls(key, value, data["scalar_key"], data["scalar_value"])


@dataclass(frozen=True, slots=True)
class FeedDefinition:
    """The definition of a generation. ``fingerprint`` covers the settings that later landings may not change."""

    feed: str
    generation: int
    partitions: int
    logs: Mapping[str, LogSchema]
    fingerprint: str
    kept: int = 0
    """Landings 1 to ``kept`` are shared with the previous generation."""
    source_offsets: Mapping[str, SourceOffsets] = field(default_factory=dict)
    """Logs that are tables with source offsets: all logs of the feed, or none."""
    recorded: tuple[str, ...] = ()
    """Logs whose files recorded a Kafka topic. These logs have the partitions of the topic."""


def log_shapes(logs: Mapping[str, LogSchema]) -> LogShapes:
    """Return for each topic what tasks read as its keys and values: a row of columns, or the value of a single column."""
    return {
        topic: (log_shape(log.key, is_scalar=log.scalar_key), log_shape(log.value, is_scalar=log.scalar_value))
        for topic, log in logs.items()
    }


def definition_as_json(definition: FeedDefinition) -> dict[str, Any]:
    """Return the body of a GENERATION row."""
    logs = {topic: schema.as_json() for topic, schema in definition.logs.items()}
    source_offsets = {topic: asdict(log) for topic, log in definition.source_offsets.items()}
    return {
        "feed": definition.feed,
        "generation": definition.generation,
        "partitions": definition.partitions,
        "fingerprint": definition.fingerprint,
        "kept": definition.kept,
        "logs": logs,
        **({"source_offsets": source_offsets} if source_offsets else {}),
        **({"recorded": list(definition.recorded)} if definition.recorded else {}),
    }


def definition_from_json(body: Mapping[str, Any]) -> FeedDefinition:
    """Return the definition in the body of a GENERATION row."""
    logs = {topic: LogSchema.from_json(schema) for topic, schema in body["logs"].items()}
    source_offsets = {topic: SourceOffsets(**log) for topic, log in body.get("source_offsets", {}).items()}
    return FeedDefinition(
        body["feed"],
        body["generation"],
        body["partitions"],
        logs,
        body["fingerprint"],
        body["kept"],
        source_offsets,
        tuple(body.get("recorded", ())),
    )


PLAN, LANDING, GENERATION = "PLAN", "LANDING", "GENERATION"


@dataclass(frozen=True, slots=True)
class LandedRange:
    """One topic-partition in one landing: it adds offsets ``[start, end)`` and releases offsets below ``release``.

    ``max_timestamp`` is the largest timestamp of the topic-partition so far, including this landing (-1: none).
    """

    start: int
    end: int
    max_timestamp: int
    release: int
    base: int = 0
    """With source offsets: the source's offset of the record that has offset 0 in the log.

    For a log whose files recorded a topic: the end offset of the topic minus the end offset of the log.
    """

    def as_list(self) -> list[int]:
        """Return the numbers as a list. A ``base`` of 0 is left out."""
        return [self.start, self.end, self.max_timestamp, self.release, *([self.base] if self.base else [])]


@dataclass(frozen=True, slots=True)
class Landing:
    """One landing of a feed. ``generation`` is the generation that landed it; a later generation may have kept it."""

    number: int
    generation: int
    watermark_ms: int
    ranges: Mapping[TopicPartition, LandedRange]
    interval: tuple[int, int] | None = None
    """The interval of arrival ``[start, end)`` in epoch ms; None without ``every``."""
    counts: Mapping[str, int] | None = None
    """Maps each name (``rows``, ``quarantined``, ``behind``, ``enforced``, and if not 0 ``unarrived``) to a number."""
    idle: tuple[TopicPartition, ...] = ()
    """The idle topic-partitions for which the watermark did not wait (D16)."""
    quarantined: Mapping[str, int] | None = None
    """Quarantined rows by topic; None for a landing of an older version, which counted only their sum."""
    extractors: Mapping[str, str] = field(default_factory=dict)
    """Maps the name (``module:function``) of a function that extracted event times to its version."""
    held_ms: int = 0
    """For an epoch of another job: how long (ms) the job may hold rows back. The watermark is lower by this time (ADR-133)."""
    grid: str = ""
    """The rule of the intervals (`FeedSpec.grid`). Empty without ``every``, and in older versions, which used `GRID_OF_1970`."""
    attempt: str = ""
    """The attempt that made this landing. It distinguishes this landing from another with the same number
    (`EpochSpan.landed_by`)."""

    def quarantined_of(self, topics: Collection[str]) -> int:
        """Return the number of quarantined rows of some topics; of all topics if the landing recorded only their sum."""
        if self.quarantined is None:
            return (self.counts or {}).get("quarantined", 0)
        return sum(rows for topic, rows in self.quarantined.items() if topic in topics)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "landing": self.number,
            "generation": self.generation,
            "watermark": self.watermark_ms,
            "interval": list(self.interval) if self.interval else None,
            "counts": dict(self.counts or {}),
            "ranges": [[*tp, *r.as_list()] for tp, r in sorted(self.ranges.items())],
            "given_up": [list(tp) for tp in self.idle],
            **({} if self.quarantined is None else {"quarantined": dict(self.quarantined)}),
            **({"extractors": dict(self.extractors)} if self.extractors else {}),
            **({"held_ms": self.held_ms} if self.held_ms else {}),
            **({"grid": self.grid} if self.grid else {}),
            **({"attempt": self.attempt} if self.attempt else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Landing:
        """Return the value of a JSON form."""
        interval = data["interval"]
        ranges = {TopicPartition(r[0], r[1]): LandedRange(*r[2:]) for r in data["ranges"]}
        return cls(
            number=data["landing"],
            generation=data["generation"],
            watermark_ms=data["watermark"],
            ranges=ranges,
            interval=(interval[0], interval[1]) if interval else None,
            counts=data["counts"],
            idle=tuple(TopicPartition(*tp) for tp in data.get("given_up", ())),
            quarantined=data.get("quarantined"),
            extractors=data.get("extractors", {}),
            held_ms=data.get("held_ms", 0),
            grid=data.get("grid", ""),
            attempt=data.get("attempt", ""),
        )


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed: the definition of its current generation, and its landings 1, 2, 3 ..."""

    definition: FeedDefinition
    landings: History[Landing]
    ledger: str = ""
    """The identity of the landing ledger (ADR-75)."""

    def epoch_range(self, epoch: int, topic_partition: TopicPartition) -> tuple[int, int]:
        """Return the offsets ``[start, end)`` of a topic-partition that epoch ``epoch`` (from 1) releases."""
        before = self.landings[epoch - 2].ranges.get(topic_partition) if epoch > 1 else None
        now = self.landings[epoch - 1].ranges.get(topic_partition)
        start = before.release if before else 0
        return start, now.release if now else start

    def records(self, epochs: range, topic_partition: TopicPartition) -> int:
        """Return how many records of a topic-partition consecutive epochs release; 0 for no epochs."""
        if not epochs:
            return 0
        return self.epoch_range(epochs[-1], topic_partition)[1] - self.epoch_range(epochs[0], topic_partition)[0]

    def spans(self, topic_partition: TopicPartition, start: int, end: int) -> list[LogSpan]:
        """Return the offsets ``[start, end)`` of a topic-partition as one span per generation that landed them."""
        spans: dict[int, LogSpan] = {}
        is_source = topic_partition.topic in self.definition.source_offsets
        first_landing = bisect_right(self.landings, start, key=lambda landing: _end(landing, topic_partition))
        for index in range(first_landing, len(self.landings)):
            landing = self.landings[index]
            landed = landing.ranges.get(topic_partition)
            if landed is None or landed.start == landed.end:
                continue
            if landed.start >= end:
                break
            first, last = max(start, landed.start), min(end, landed.end) - 1
            before = spans.get(landing.generation)
            if before is not None:
                first, last = min(before.first, first), max(before.last, last)
            spans[landing.generation] = LogSpan(landing.generation, first, last, landed.base if is_source else 0)
        return [spans[generation] for generation in sorted(spans)]

    def is_enforced(self, epoch: int, topics: Collection[str], partition: int) -> bool:
        """Return whether a task processes records in an epoch without waiting for an idle partition (KIP-353)."""
        idle = self.landings[epoch - 1].idle
        if not any(tp.partition == partition and tp.topic in topics for tp in idle):
            return False
        ranges = (self.epoch_range(epoch, TopicPartition(topic, partition)) for topic in topics)
        return any(end > start for start, end in ranges)


def _end(landing: Landing, topic_partition: TopicPartition) -> int:
    """Return the offset after the last landed record of a topic-partition. It never decreases from landing to landing."""
    landed = landing.ranges.get(topic_partition)
    return landed.end if landed else 0


def fold_feed(rows: Iterable[tuple[str, Mapping[str, Any]]], before: Feed | None = None) -> Feed | None:
    """Fold the landing ledger's rows ``(kind, body)`` into a feed; None before the first generation.

    ``before`` is the feed that results from the earlier rows. Raises `InvariantError` (70) if landings are not numbered 1, 2, 3
    ... or if a watermark or release decreases.
    """
    definition = before.definition if before else None
    landings: History[Landing] = before.landings if before else History()
    for kind, body in rows:
        if kind == GENERATION:
            definition = definition_from_json(body)
            landings = History(landings[: definition.kept])
        elif kind == LANDING:
            landing = Landing.from_json(body)
            _check_follows(landings, landing)
            landings = landings.append(landing)
    return Feed(definition, landings) if definition else None


def _check_follows(landings: Sequence[Landing], landing: Landing) -> None:
    if landing.number != len(landings) + 1:
        raise InvariantError(
            "landing-number-gap",
            "landing {landing} follows landing {previous}: the landing ledger is corrupt. Do not land or run",
            landing=landing.number,
            previous=len(landings),
        )
    if not landings:
        return
    last = landings[-1]
    decreases = landing.watermark_ms < last.watermark_ms or any(
        landed.release < last.ranges[tp].release for tp, landed in landing.ranges.items() if tp in last.ranges
    )
    if decreases:
        raise InvariantError(
            "landing-revokes-release",
            "landing {landing} revokes what landing {previous} released: the landing ledger is corrupt. Do "
            "not land or run",
            landing=landing.number,
            previous=last.number,
        )


@dataclass(frozen=True, slots=True)
class Delivery:
    """The largest timestamp of a topic-partition, and the landing time at which it last delivered."""

    largest: int
    landed_ms: int


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
