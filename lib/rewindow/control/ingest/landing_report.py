"""What `land` reports: the landings of a call, why nothing was landed, and warnings about probable mistakes in the sources. Pure.

These are the warnings:

* All new records of a log were quarantined. A few quarantined records are normal. If all are, the source has probably changed.
* Records have no key. Kafka and logs allow that, but operators that group or join by key skip such records. Often an empty cell
  in the source is the cause.
* A column has become null or constant in all records.
* The source is the output table of a job, but is declared as a table. A job writes the rows of a run partition by partition, so
  many rows would be late. If the source were declared as the job's output, its rows would be landed epoch by epoch.
* The function that extracts event times has changed since the last landing, so the log has times from two versions of it.
* A source has text files without rows, or files whose last line has no line end.
* Rows for the quarantine were lost before they were published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import DAY_GRID, FILE_ORDER, FeedSpec, SourceLook
from rewindow.contracts.instants import instant
from rewindow.contracts.landing_protocol import Block
from rewindow.control.health.phrases import counted
from rewindow.control.health.waiting_sources import not_followed
from rewindow.control.ingest.decide import DecidedLanding, all_refused
from rewindow.control.ingest.discover import Due, NothingDue
from rewindow.control.ingest.feed_progress import Flat
from rewindow.control.ingest.intervals import kept_grid
from rewindow.control.ingest.landings import Feed, Landing
from rewindow.control.ingest.protocols import Call, LandRequest, LostRows
from rewindow.errors import ReasonMessage, WarningMessage

_SHOWN = 3
"""The most partitions that a warning names."""


@dataclass(frozen=True, slots=True)
class LandReport:
    """The result of a call: the numbers of its landings, their total counts, and the feed's watermark (epoch ms, -1: none).

    ``was_interrupted``: an earlier call started this generation and died before it published the landings. This call only
    published them.
    """

    feed: str
    generation: int
    watermark_ms: int
    landings: tuple[int, ...] = ()
    rows: int = 0
    quarantined: int = 0
    behind: int = 0
    unarrived: int = 0
    """The number of quarantined rows without an arrival."""
    enforced: int = 0
    was_interrupted: bool = False
    warnings: tuple[WarningMessage, ...] = ()
    """Warnings about probable mistakes: see the docstring of this module."""
    orders: tuple[ReasonMessage, ...] = ()
    """In the first landings of a generation: how records are ordered in each log whose settings name no order."""
    waiting: ReasonMessage | None = None
    """Why nothing was landed, or why some intervals that are over were not landed. For example, rows wait for their interval
    to end."""
    held_ms: int = 0
    """If the output of a job was landed: how long (ms) the job may hold rows back. The feed's watermark is lower by this
    time."""

    @classmethod
    def of(cls, feed: str, landings: Sequence[Landing], *, was_interrupted: bool = False) -> LandReport:
        """Return the report of some landings of one generation."""
        counts = [landing.counts or {} for landing in landings]
        return cls(
            feed,
            landings[-1].generation,
            landings[-1].watermark_ms,
            tuple(landing.number for landing in landings),
            held_ms=landings[-1].held_ms,
            rows=sum(count.get("rows", 0) for count in counts),
            quarantined=sum(count.get("quarantined", 0) for count in counts),
            behind=sum(count.get("behind", 0) for count in counts),
            unarrived=sum(count.get("unarrived", 0) for count in counts),
            enforced=sum(count.get("enforced", 0) for count in counts),
            was_interrupted=was_interrupted,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values. Unknown or absent values are None."""
        watermark_ms = None if self.watermark_ms < 0 else self.watermark_ms
        codes = [warning.code for warning in self.warnings]
        waiting_code = self.waiting.code if self.waiting else None
        return {
            **asdict(self),
            "warning_codes": codes,
            "watermark_ms": watermark_ms,
            "order_codes": [order.code for order in self.orders],
            "waiting_code": waiting_code,
        }


def report_of(call: Call, due: Due, decided: Sequence[DecidedLanding], *, has_lost_files: bool) -> LandReport:
    """Return the report of a call that made landings. ``has_lost_files``: files of earlier landings are gone."""
    report = LandReport.of(call.feed.feed, [decision.landing for decision in decided])
    flat = [call.progress.flat, *(landing.flat for landing in decided)]
    return replace(
        report,
        # This is reported once per generation, because the order never changes within a generation.
        orders=tuple(_orders(call.feed)) if call.generation.is_new else (),
        waiting=not_followed(call.feed, due.window.until_ms) if due.leaves_open else None,
        warnings=(
            *((_replaced(call.feed),) if has_lost_files else ()),
            *_kept_grid(call),
            *_files_out_of_order(call.feed, due.inspected),
            *_outputs_as_tables(call.feed, due.inspected),
            *_empty_files(call.feed, due.inspected),
            *_open_ended_files(call.feed, due.inspected, call.progress.number),
            *changed_extractors(call.progress.feed, call.request.extractors),
            *_all_quarantined(call.feed, decided, call.progress.number),
            *_keyless_records(call.feed, decided),
            *(
                sentence
                for number, (before, now) in zip(report.landings, pairwise(flat), strict=True)
                for sentence in _flat_columns_found(call.feed.feed, number, before, now)
            ),
            *declared_too_low(call.feed, call.request, report.watermark_ms),
        ),
    )


def nothing_landed(call: Call, nothing: NothingDue, with_nulls: str = "") -> LandReport:
    """Return the report of a call that made no landing.

    ``with_nulls``: the new columns, which are null in the kept landings.
    """
    waiting, watermark_ms = nothing.waiting, call.progress.watermark_ms
    notes = (*_empty_files(call.feed, nothing.inspected), *declared_too_low(call.feed, call.request, watermark_ms))
    others = waiting or "nothing is new to land"
    if call.generation.is_change:
        waiting = ReasonMessage(
            "generation-keeps-landings",
            "generation {generation} keeps landings 1 to {kept}{nulls}, and {others}",
            generation=call.generation.number,
            kept=call.generation.kept,
            nulls=with_nulls,
            others=others,
        )
    elif call.generation.is_new and call.generation.kept:
        waiting = ReasonMessage(
            "generation-not-started",
            "no generation was started, because --keep {kept} keeps all landings as they are, and {others}",
            kept=call.generation.kept,
            others=others,
        )
    return LandReport(call.feed.feed, call.generation.number, watermark_ms, warnings=notes, waiting=waiting)


def declared_too_low(feed: FeedSpec, request: LandRequest, watermark_ms: int) -> tuple[WarningMessage, ...]:
    """Return a warning if a call declares a watermark below the feed's watermark, which never decreases."""
    if request.watermark_ms is None or request.watermark_ms >= watermark_ms:
        return ()
    warning = WarningMessage(
        "declared-watermark-too-low",
        "feed {feed}: the log was complete through {reached} already, so the declared {declared} changes nothing",
        feed=feed.feed,
        reached=instant(watermark_ms),
        declared=instant(request.watermark_ms),
    )
    return (warning,)


def _kept_grid(call: Call) -> tuple[WarningMessage, ...]:
    """Return the warning that the feed keeps the intervals of its older landings.

    Returns none once a landing records by which rule its interval was computed.
    """
    feed, progress = call.feed, call.progress
    if (
        feed.every is None
        or feed.grid == DAY_GRID
        or progress.feed is None
        or progress.feed.landings[progress.number - 1].grid
    ):
        return ()
    warning = kept_grid(feed, call.request.now_ms)
    return () if warning is None else (warning,)


def _replaced(feed: FeedSpec) -> WarningMessage:
    return WarningMessage(
        "landed-files-replaced",
        "feed {feed}: files of earlier landings are gone, so `why` and `verify` cannot explain what runs made of them. This "
        "generation replaces them",
        feed=feed.feed,
    )


def _all_quarantined(feed: FeedSpec, decided: Sequence[DecidedLanding], landed: int) -> Iterator[WarningMessage]:
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


def lost_from_quarantine(feed: FeedSpec, lost: Sequence[LostRows]) -> Iterator[WarningMessage]:
    """Yield a warning for each lost file whose rows were not yet in the quarantine table."""
    for file in lost:
        yield WarningMessage(
            "quarantined-rows-lost",
            "feed {feed}: {path} is gone, and with it {rows} of the quarantine. "
            "No job reads them, so the feed goes on without them",
            feed=feed.feed,
            path=file.path,
            rows=counted(file.rows, "row"),
        )


def _keyless_records(feed: FeedSpec, decided: Sequence[DecidedLanding]) -> Iterator[WarningMessage]:
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


def _orders(feed: FeedSpec) -> Iterator[ReasonMessage]:
    """Yield how the records of a log are ordered, for each log whose settings name no order.

    The records may have had another order in their topic, so that other records were late there.
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


def _files_out_of_order(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
    """Yield a warning for each log in file order with a new file that a new generation would place before landed files."""
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


def _outputs_as_tables(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
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


def _empty_files(feed: FeedSpec, inspected: Mapping[str, SourceLook]) -> Iterator[WarningMessage]:
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


def _open_ended_files(feed: FeedSpec, inspected: Mapping[str, SourceLook], landed: int) -> Iterator[WarningMessage]:
    """Yield a warning for each log with new files that may be incomplete, because their last line has no line end.

    ``landed``: the number of the generation's landings before the one that contains these files.
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
    """Return the command that lands everything again except the first ``landed`` landings."""
    return f"rewindow land {feed.feed} --new-generation" + (f" --keep {landed}" if landed else "")


def changed_extractors(feed: Feed | None, versions: Mapping[str, str]) -> Iterator[WarningMessage]:
    """Yield a warning for each function whose code has changed since the feed's last landing.

    ``versions``: maps the name of a function (``module:function``) to the version of its code.
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


def _flat_columns_found(
    feed: str, landing: int, before: Mapping[str, Flat], now: Mapping[str, Flat]
) -> Iterator[WarningMessage]:
    """Yield a warning for each column that has just become null or constant in all records.

    In a first landing, only for null columns.
    """
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
