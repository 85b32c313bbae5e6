"""The warnings of a landing about probable mistakes in its sources, and the order in which it lands their records. Pure.

These are the warnings:

* All new records of a log were quarantined. A few quarantined records are normal, but if there are no others, the source changed.
* Records have no key. Kafka and logs allow that, but operators that group or join by key skip such records, and often an empty
  cell in the source is the cause.
* A column has become null or constant in all records.
* The source is the output table of a job. A job writes the rows of a run partition by partition. If the source is declared as the
  job's output, its rows are landed by epochs and in the order of epochs. If it is landed as a table, many rows are late.
* The function that extracts event times has changed since the last landing, so that the log has times from two functions.
* A source has text files without rows, or files that do not end with the end of a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import FILE_ORDER, FeedSpec, SourceLook
from rewindow.contracts.landing_protocol import Block
from rewindow.control.ingest.decide import DecidedLanding, all_refused
from rewindow.control.ingest.feed_progress import Flat
from rewindow.control.ingest.landings import Feed
from rewindow.errors import ReasonMessage, WarningMessage

_SHOWN = 3
"""The most partitions that a warning names."""


def all_quarantined(feed: FeedSpec, decided: Sequence[DecidedLanding], landed: int) -> Iterator[WarningMessage]:
    """Yield a warning for each log whose new records were all quarantined.

    ``landed``: the number of the generation's landings before these.
    """
    for spec in feed.logs:
        blocks = [block for landing in decided for block in landing.blocks.get(spec.topic, ())]
        if refused := all_refused(blocks):
            count, why = refused
            all_records = "the only new record" if count == 1 else f"all {count:,} new records"
            were = "was" if count == 1 else "were"
            yield WarningMessage(
                "landing-all-quarantined",
                "feed {feed}: {what} of the log {topic} {were} quarantined, the first because of: {reason}. After a correction, "
                "`{again}` lands {them} again",
                feed=feed.feed,
                what=all_records,
                topic=spec.topic,
                were=were,
                reason=why,
                again=_again(feed, landed),
                them="it" if count == 1 else "them",
            )


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


def open_ended_files(feed: FeedSpec, inspected: Mapping[str, SourceLook], landed: int) -> Iterator[WarningMessage]:
    """Yield a warning for each log whose source has new files that may be incomplete, because their last line has no end.

    ``landed``: the number of the generation's landings before the one that takes these files.
    """
    for topic, look in inspected.items():
        if look.open_ended:
            is_one = len(look.open_ended) == 1
            do, were, last = ("does", "it was", "its last row") if is_one else ("do", "they were", "their last rows")
            more = "" if is_one else f" and {len(look.open_ended) - 1} more files"
            yield WarningMessage(
                "files-end-within-line",
                "feed {feed}: {file} of the log {topic}{more} {do} not end with the end of a line. If {were} still being "
                "written, {last} may be cut, with wrong values. Compare, and once the file is complete land it again: `{again}`. "
                "Write files elsewhere, and move them into the folder",
                feed=feed.feed,
                again=_again(feed, landed),
                file=look.open_ended[0],
                topic=topic,
                more=more,
                do=do,
                were=were,
                last=last,
            )


def _again(feed: FeedSpec, landed: int) -> str:
    """Return the command that lands again what comes after the first ``landed`` landings."""
    return f"rewindow land {feed.feed} --new-generation" + (f" --keep {landed}" if landed else "")


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


def flat_columns_found(
    feed: str, landing: int, before: Mapping[str, Flat], now: Mapping[str, Flat]
) -> Iterator[WarningMessage]:
    """Yield a warning for each column that is null, also in a first landing, or constant, and was not so before."""
    for topic, columns in sorted(now.items()):
        flat_before = before.get(topic)
        for name, value in columns.items():
            if value is None and (flat_before is None or flat_before.get(name, "") is not None):
                yield WarningMessage(
                    "column-all-null",
                    "feed {feed}, landing {landing}: the column {column} of {topic} is null in every record",
                    feed=feed,
                    landing=landing,
                    column=name,
                    topic=topic,
                )
            elif value is not None and flat_before is not None and name not in flat_before:
                yield WarningMessage(
                    "column-suddenly-constant",
                    "feed {feed}, landing {landing}: the column {column} of {topic} is suddenly {value!r} in every record",
                    feed=feed,
                    landing=landing,
                    column=name,
                    topic=topic,
                    value=value,
                )
