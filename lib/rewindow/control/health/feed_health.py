"""The health of a feed: its line in a listing, figures of its last landings, and rows that wait or arrive in the future."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.contracts.ingest import FeedSpec
from rewindow.control.health.entries import Entry, Status, age_ms
from rewindow.control.health.inputs import held_records
from rewindow.control.health.waiting_sources import UNKNOWN_ROWS
from rewindow.control.ingest.feed_progress import Progress
from rewindow.control.ingest.intervals import grid_of, later_rows
from rewindow.control.ingest.landings import Landing
from rewindow.errors import Message, ReasonMessage
from rewindow.streams.duration import in_words
from rewindow.streams.record import known_time

LANDINGS = 24
"""How many of the last landings count for the shares in a feed's figures."""


@dataclass(frozen=True, slots=True)
class FeedHealth:
    """The state of a feed's ledger and sources. ``details``: what is new, what waits, and what is unknown."""

    progress: Progress
    is_due: bool
    is_landing: bool
    details: Sequence[Message] = ()
    spec: FeedSpec | None = None
    every: str = ""
    behind: Sequence[str] = ()
    """The logs with new files that contain rows of landed intervals. These intervals were declared complete without these
    rows."""


def feed_entry(name: str, health: FeedHealth) -> Entry:
    """Return the line of a feed in a listing."""
    landed = health.progress.feed
    status = Status.NEVER_LANDED if landed is None else Status.DUE if health.is_due else Status.FRESH
    held_ms = landed.landings[-1].held_ms if landed and landed.landings else 0
    below = ReasonMessage(
        "watermark-below-job",
        "complete through {lag} less than its job, which may hold rows back",
        lag=in_words(held_ms),
    )
    return Entry(
        name,
        Status.RUNNING if health.is_landing else status,
        health.details or ([below] if held_ms else ()),
        epoch=len(landed.landings) if landed else None,
        watermark_ms=known_time(health.progress.watermark_ms),
    )


def rows_of_passed_intervals(health: FeedHealth, now_ms: int) -> str:
    """Return words for what is due if the next two intervals after the last landed one are already over; ``""`` otherwise."""
    spec, through_ms = health.spec, health.progress.through_ms
    if spec is None or spec.every is None or through_ms is None:
        return ""
    grid = grid_of(spec)
    if grid.after(grid.after(through_ms)) > now_ms:
        return ""
    if health.is_due:
        return "more is due"
    return UNKNOWN_ROWS if [*health.details] == [UNKNOWN_ROWS] else ""


def quarantined_logs(progress: Progress) -> Iterator[tuple[str, int]]:
    """Yield the topic of each log whose records were all quarantined in the last landing, and the number of these records."""
    last = progress.feed.landings[-1] if progress.feed and progress.feed.landings else None
    for topic, count in ((last.quarantined or {}) if last else {}).items():
        if last and not any(landed.end > landed.start for tp, landed in last.ranges.items() if tp.topic == topic):
            yield topic, count


def future_rows(progress: Progress, now_ms: int) -> Iterator[tuple[str, str, int]]:
    """Yield ``(log, file, time)`` for each log with landed rows that arrive after ``now_ms``: its first such row.

    The file and the arrival time (epoch ms) come from the source's position, which the last landing recorded.
    """
    # Logs that a new generation has removed still have a position.
    logs = progress.declared.get("logs", progress.positions)
    for topic, position in progress.positions.items():
        later = {name: arrival_ms for name, arrival_ms in (later_rows(position) or {}).items() if arrival_ms > now_ms}
        if topic in logs and later:
            name = min(later, key=lambda file: (later[file], file))
            yield topic, name, later[name]


def feed_figures(entry: Entry, progress: Progress | None, landed_at_ms: int | None, now_ms: int) -> dict[str, Any]:
    """Return figures by name: how far a feed is landed, and how many rows its last landings quarantined or got late.

    A figure is None if it is unknown.
    """
    feed = progress.feed if progress else None
    landings: Sequence[Landing] = feed.landings if feed else ()
    counts = [landing.counts or {} for landing in landings[-LANDINGS:]]
    landed, quarantined, behind = (
        sum(count.get(word, 0) for count in counts) for word in ("rows", "quarantined", "behind")
    )
    return {
        "landings": len(landings) if progress else None,
        "watermark_ms": entry.watermark_ms,
        "age_ms": age_ms(entry.watermark_ms, now_ms),
        "through_ms": progress.through_ms if progress else None,
        "landed_at_ms": known_time(landed_at_ms) if landed_at_ms else None,
        "over_landings": len(counts),
        "rows": landed,
        "behind": behind,
        "behind_share": behind / landed if landed else None,
        "quarantined": quarantined,
        "quarantined_share": quarantined / (landed + quarantined) if landed + quarantined else None,
        "held": sum(held.records for held in held_records(feed)) if feed else 0,
    }
