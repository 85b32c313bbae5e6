"""What `land` warns about: logs without records or keys, changed extractors, sources that are unlikely to be meant. Pure.

* Records that are quarantined by ones and twos are what the policies are for. If all of them are, the source has changed.
* Kafka allows records without a key, and so does a log. But what works by key skips them, and a newcomer's first empty cell
  is an accident.
* A job writes the rows of a run partition by partition. Landed by epochs, with their watermarks, they are in the order of
  their epochs; landed by commits, many of them are later than what came before.
* A log has times of two kinds if the function that extracts them has changed since the last landing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rewindow.contracts.ingest import FeedSpec, SourceLook
from rewindow.contracts.landing import Block
from rewindow.control.ingest.decide import DecidedLanding
from rewindow.control.ingest.landings import Feed
from rewindow.errors import WarningMessage

_SHOWN = 3
"""Partitions that are named."""


def all_quarantined(feed: FeedSpec, decided: Sequence[DecidedLanding]) -> Iterator[WarningMessage]:
    """Yield a sentence for each log with new records, none of which was landed."""
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
    """Return how many records were quarantined, and why the first was; None if none was, or if some were landed."""
    count = sum(block.quarantined for block in blocks)
    if not count or any(block.end > block.start for block in blocks):
        return None
    return count, next(block.refused for block in blocks if block.quarantined)


def keyless_records(feed: FeedSpec, decided: Sequence[DecidedLanding]) -> Iterator[WarningMessage]:
    """Yield a sentence for each log with landed records whose key is null."""
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


def outputs_as_tables(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
    """Yield a sentence for each log whose source is the table of a job's output."""
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
    """Yield a sentence for each log whose source has new text files without rows."""
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
    """Yield a sentence for each log whose source has new files that may be half written."""
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
    """Yield a sentence for each function whose code differs from that of the feed's last landing."""
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
    """Return the first offsets: ``partition 0, offsets 3, 7``. Null keys have one partition unless the source assigns it."""
    named = []
    for block in blocks[:_SHOWN]:
        offsets = ", ".join(map(str, block.keyless_at))
        more = ", ..." if block.keyless > len(block.keyless_at) else ""
        named.append(f"partition {block.partition}, offset{'s' if block.keyless > 1 else ''} {offsets}{more}")
    return "; ".join([*named, *(["..."] if len(blocks) > _SHOWN else [])])
