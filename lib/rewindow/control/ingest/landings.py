"""What a feed's landing ledger says: its definition, its landings and the epochs they release. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rewindow.contracts.ingest import SourceOffsets
from rewindow.contracts.tasks import LogSpan
from rewindow.errors import InvariantError
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.binding import LogShapes, log_shape
from rewindow.streams.serde.schema import Column

PLAN, LANDING, GENERATION = "PLAN", "LANDING", "GENERATION"


@dataclass(frozen=True, slots=True)
class LogSchema:
    """The typed columns of a log. ``scalar_key`` / ``scalar_value``: one column is the bare value, not a row of one."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    scalar_key: bool
    scalar_value: bool

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return {**asdict(self), "key": [list(c) for c in self.key], "value": [list(c) for c in self.value]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LogSchema:
        """Rebuild what `as_json` made."""
        key, value = (tuple(Column(*column) for column in data[part]) for part in ("key", "value"))
        return cls(key, value, data["scalar_key"], data["scalar_value"])


@dataclass(frozen=True, slots=True)
class FeedDefinition:
    """What a generation was landed under. ``fingerprint`` covers all that a later landing may not change."""

    feed: str
    generation: int
    partitions: int
    logs: Mapping[str, LogSchema]
    fingerprint: str
    kept: int = 0
    """Landings 1..kept are those of the generation before."""
    source_offsets: Mapping[str, SourceOffsets] = field(default_factory=dict)
    """The logs that are tables with partitions and offsets of their own: all logs of the feed, or none."""


@dataclass(frozen=True, slots=True)
class LandedRange:
    """Of one topic-partition in one landing: offsets ``[start, end)`` were added, offsets below ``release`` are released.

    ``max_timestamp`` is the largest timestamp that the topic-partition ever had, up to and with this landing (-1: none).
    """

    start: int
    end: int
    max_timestamp: int
    release: int
    base: int = 0
    """What the source calls offset 0, where it has offsets of its own."""

    def as_list(self) -> list[int]:
        """Return the numbers; a base of 0 is left out."""
        return [self.start, self.end, self.max_timestamp, self.release, *([self.base] if self.base else [])]


@dataclass(frozen=True, slots=True)
class Landing:
    """One addition to a feed. ``generation`` is the one that made it (an older one if it was kept)."""

    number: int
    generation: int
    watermark_ms: int
    ranges: Mapping[TopicPartition, LandedRange]
    interval: tuple[int, int] | None = None
    """``[start, end)`` of arrival in epoch ms, with ``every``."""
    counts: Mapping[str, int] | None = None
    """``rows``, ``quarantined``, ``behind``, ``enforced``."""
    given_up: tuple[TopicPartition, ...] = ()
    """The topic-partitions that its watermark did not wait for any longer (D16)."""

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return {
            "landing": self.number,
            "generation": self.generation,
            "watermark": self.watermark_ms,
            "interval": list(self.interval) if self.interval else None,
            "counts": dict(self.counts or {}),
            "ranges": [[*tp, *r.as_list()] for tp, r in sorted(self.ranges.items())],
            "given_up": [list(tp) for tp in self.given_up],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Landing:
        """Rebuild what `as_json` made."""
        interval = data["interval"]
        ranges = {TopicPartition(r[0], r[1]): LandedRange(*r[2:]) for r in data["ranges"]}
        return cls(
            number=data["landing"],
            generation=data["generation"],
            watermark_ms=data["watermark"],
            ranges=ranges,
            interval=(interval[0], interval[1]) if interval else None,
            counts=data["counts"],
            given_up=tuple(TopicPartition(*tp) for tp in data.get("given_up", ())),
        )


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed as its ledger tells it: the current generation's definition and its landings 1, 2, 3 ..."""

    definition: FeedDefinition
    landings: tuple[Landing, ...]

    def epoch_range(self, epoch: int, topic_partition: TopicPartition) -> tuple[int, int]:
        """Return the offsets ``[start, end)`` that epoch ``epoch`` (1, 2, ...) releases of a topic-partition."""
        before = self.landings[epoch - 2].ranges.get(topic_partition) if epoch > 1 else None
        now = self.landings[epoch - 1].ranges.get(topic_partition)
        start = before.release if before else 0
        return start, now.release if now else start

    def spans(self, where: TopicPartition, start: int, end: int) -> list[LogSpan]:
        """Return which generations landed the offsets ``[start, end)`` of a topic-partition: a span of each."""
        spans: dict[int, LogSpan] = {}
        for landing in self.landings:
            landed = landing.ranges.get(where)
            if landed is None or landed.start >= end or landed.end <= start or landed.start == landed.end:
                continue
            first, last = max(start, landed.start), min(end, landed.end) - 1
            before = spans.get(landing.generation)
            if before is not None:
                first, last = min(before.first, first), max(before.last, last)
            spans[landing.generation] = LogSpan(landing.generation, first, last, landed.base)
        return [spans[generation] for generation in sorted(spans)]

    def is_enforced(self, epoch: int, topics: Collection[str], partition: int) -> bool:
        """Return whether a task takes records in an epoch although one of its topics is not waited for (KIP-353)."""
        given_up = self.landings[epoch - 1].given_up
        if not any(where.partition == partition and where.topic in topics for where in given_up):
            return False
        ranges = (self.epoch_range(epoch, TopicPartition(topic, partition)) for topic in topics)
        return any(end > start for start, end in ranges)


def fold_feed(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Feed | None:
    """Return what the landing ledger's rows ``(kind, body)`` say, in ledger order; None before the first generation.

    Raises `InvariantError` (70) if landings are not numbered 1, 2, 3 ... or a watermark or release falls.
    """
    definition: FeedDefinition | None = None
    landings: list[Landing] = []
    for kind, body in rows:
        if kind == GENERATION:
            definition = _definition_from_json(body)
            landings = landings[: definition.kept]
        elif kind == LANDING:
            landing = Landing.from_json(body)
            _check_follows(landings, landing)
            landings.append(landing)
    return Feed(definition, tuple(landings)) if definition else None


def log_shapes(logs: Mapping[str, LogSchema]) -> LogShapes:
    """Return for each topic the shapes of its key and value, as a task reads them."""
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
        **({"placed": source_offsets} if source_offsets else {}),
    }


def _definition_from_json(body: Mapping[str, Any]) -> FeedDefinition:
    logs = {topic: LogSchema.from_json(schema) for topic, schema in body["logs"].items()}
    source_offsets = {topic: SourceOffsets(**log) for topic, log in body.get("placed", {}).items()}
    return FeedDefinition(
        body["feed"], body["generation"], body["partitions"], logs, body["fingerprint"], body["kept"], source_offsets
    )


def _check_follows(landings: Sequence[Landing], landing: Landing) -> None:
    if landing.number != len(landings) + 1:
        message = f"landing {landing.number} follows landing {len(landings)}: the landing ledger is damaged; do not land or run"
        raise InvariantError(message)
    if not landings:
        return
    last = landings[-1]
    falls = landing.watermark_ms < last.watermark_ms or any(
        landed.release < last.ranges[tp].release for tp, landed in landing.ranges.items() if tp in last.ranges
    )
    if falls:
        message = (
            f"landing {landing.number} takes back what landing {last.number} released: the landing ledger is damaged"
        )
        raise InvariantError(message)
