"""Say which landed records have no key. Pure.

Kafka allows them, and so does a log. But what works by key skips them, and a newcomer's first empty cell is an accident.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewindow.contracts.ingest import FeedSpec
from rewindow.contracts.landing import Block
from rewindow.control.ingest.decide import DecidedLanding

_SHOWN = 3
"""Partitions that are named."""


def keyless_records(feed: FeedSpec, decided: Sequence[DecidedLanding]) -> Iterator[str]:
    """Yield a sentence for each log with landed records whose key is null."""
    for spec in feed.logs:
        found = [block for landing in decided for block in landing.blocks.get(spec.topic, ()) if block.keyless]
        records = sum(block.keyless for block in found)
        if records:
            what = "1 record has" if records == 1 else f"{records:,} records have"
            them = "it" if records == 1 else "them"
            yield (
                f"feed {feed.feed}: {what} no key in the log {spec.topic}, because {spec.key[0]} is null ({_where(found)}). "
                f"Jobs skip {them} where they group, aggregate or inner-join by key"
            )


def _where(found: Sequence[Block]) -> str:
    """Return the first offsets: ``partition 0, offsets 3, 7``. Null keys have one partition unless the source assigns it."""
    named = []
    for block in found[:_SHOWN]:
        offsets = ", ".join(map(str, block.keyless_at))
        more = ", ..." if block.keyless > len(block.keyless_at) else ""
        named.append(f"partition {block.partition}, offset{'s' if block.keyless > 1 else ''} {offsets}{more}")
    return "; ".join([*named, *(["..."] if len(found) > _SHOWN else [])])
