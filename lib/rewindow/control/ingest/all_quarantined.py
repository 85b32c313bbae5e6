"""Warn about a log of which a call has landed no record, because all new ones were quarantined. Pure.

Records that are quarantined by ones and twos are what the policies are for. If all of them are, the source has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewindow.contracts.ingest import FeedSpec
from rewindow.contracts.landing import Block
from rewindow.control.ingest.decide import DecidedLanding


def all_quarantined(feed: FeedSpec, decided: Sequence[DecidedLanding]) -> Iterator[str]:
    """Yield a sentence for each log with new records, none of which was landed."""
    for spec in feed.logs:
        blocks = [block for landing in decided for block in landing.blocks.get(spec.topic, ())]
        if refused := all_refused(blocks):
            count, why = refused
            what = "the only new record" if count == 1 else f"all {count:,} new records"
            were = "was" if count == 1 else "were"
            yield f"feed {feed.feed}: {what} of the log {spec.topic} {were} quarantined, the first because of: {why}"


def all_refused(blocks: Sequence[Block]) -> tuple[int, str] | None:
    """Return how many records were quarantined, and why the first was; None if none was, or if some were landed."""
    count = sum(block.quarantined for block in blocks)
    if not count or any(block.end > block.start for block in blocks):
        return None
    return count, next(block.refused for block in blocks if block.quarantined)
