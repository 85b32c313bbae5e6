"""Write the due rows of a feed's logs, and decide the landings that they make."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import LogSpec, LogWrite, PendingLanding, TimestampPolicy
from rewindow.contracts.instants import unit_in_reason
from rewindow.contracts.landing import Block
from rewindow.control.ingest.all_quarantined import all_refused
from rewindow.control.ingest.decide import DecidedLanding, LandingRules, Numbering
from rewindow.control.ingest.discover import Due
from rewindow.control.ingest.problems import raise_all
from rewindow.control.ingest.protocols import Call
from rewindow.control.ingest.sources import watermark_policy
from rewindow.control.ingest.watermarks import HeldFile
from rewindow.errors import DataError, InvariantError, RewindowError

_WRITES_MAX = 3
"""The expected numbers of landings are right at once or after one correction. More means that the rows change."""


def write_logs(call: Call, due: Due) -> Generator[str, None, tuple[Due, list[DecidedLanding]]]:
    """Write the logs under the expected landing numbers and decide the landings; write again if the numbers differ."""
    feed, request = call.feed, call.request
    policy = watermark_policy(feed)
    rules = LandingRules(call.generation.number, policy, request.now_ms, request.watermark_ms, due.epochs)
    for _ in range(_WRITES_MAX):
        blocks: dict[str, list[Block]] = {}
        problems: list[RewindowError] = []
        for spec in feed.logs if due.slots else ():  # without slots nothing is written: only the watermark rises
            yield f"write {spec.topic}"
            try:
                blocks[spec.topic] = call.engine.write(_log_write(call, spec, due), due.looks[spec.topic], due.window)
                _check_some_landed(call, spec, blocks[spec.topic])
            except DataError as error:  # the other logs may have bad rows, too
                problems.append(error)
            if spec.source.format not in TABLE_FORMATS:
                call.engine.check_unchanged(spec.source, due.looks[spec.topic])
        raise_all(feed.feed, problems)
        numbering = Numbering(call.progress, rules, partial(_first_above, call))
        decided = numbering.decide(due.intervals, blocks, due.slots)
        slots = tuple(_slot(landing) for landing in decided)
        written = {block.landing for topic_blocks in blocks.values() for block in topic_blocks}
        if {slot for slot in due.slots if slot.number in written} <= set(slots):
            return due, decided
        due = replace(due, slots=slots)
        call.tables.remove_orphans(feed.feed, [spec.topic for spec in feed.logs], [call.attempt.id])
    message = (
        f"feed {feed.feed}: its sources give different rows on each read, so they cannot be landed: fix the source"
    )
    raise InvariantError(message)


def _check_some_landed(call: Call, spec: LogSpec, blocks: Sequence[Block]) -> None:
    """Reject a log whose first records would all be quarantined: the column or format is wrong, not the records."""
    refused = all_refused(blocks)
    if refused is None:
        return
    quarantined, why = refused
    has_records = any(where.topic == spec.topic and landed.end for where, landed in call.progress.ranges.items())
    unit = unit_in_reason(why)
    if has_records and unit is None:
        return
    fix = "fix `timestamp:`, `units:`, `max_ahead` or the source"
    if unit is not None:
        fix = spec.unit_fix(why, unit)
    what = "the only record" if quarantined == 1 else f"all {quarantined} records"
    message = (
        f"feed {call.feed.feed}: {what} of the log {spec.topic} would be quarantined, the first "
        f"because of: {why}. Nothing was landed: {fix}"
    )
    raise DataError(message)


def _first_above(call: Call, file: HeldFile, offset: int, time_ms: int) -> int | None:
    if file.path:
        return call.tables.first_above(call.feed.feed, file, offset, time_ms)
    spec = next((spec for spec in call.feed.logs if spec.topic == file.topic), None)
    if spec is None:  # the feed no longer has this log, nor its table: what it holds waits for the last of its records
        return offset
    found = call.engine.first_above(spec, file.partition, (offset + file.base, file.end + file.base), time_ms)
    return None if found is None else found - file.base


def _slot(decided: DecidedLanding) -> PendingLanding:
    number = decided.landing.number
    return PendingLanding(number, *decided.interval) if decided.interval else PendingLanding(number)


def _with_keys(spec: LogSpec, keys: Sequence[str]) -> LogSpec:
    """Return how to build a log whose rows also bring the keys of the job's output that they come from."""
    renames = spec.renames or {}
    return replace(spec, order=(*spec.order, *(renames.get(key, key) for key in keys)))


def _log_write(call: Call, spec: LogSpec, due: Due) -> LogWrite:
    log_root, quarantine_root = call.tables.roots(call.feed.feed, spec.topic)
    return LogWrite(
        feed=call.feed.feed,
        generation=call.generation.number,
        attempt=call.attempt.id,
        partitions=call.feed.partitions,
        spec=_with_keys(spec, due.looks[spec.topic].keys),
        columns=due.columns[spec.topic],
        log_root=log_root,
        quarantine_root=quarantine_root,
        landings=due.slots,
        starts={
            where.partition: (landed.end, landed.max_timestamp)
            for where, landed in call.progress.ranges.items()
            if where.topic == spec.topic
        },
        policy=TimestampPolicy(spec.invalid, None if spec.is_output else call.feed.max_ahead_ms, spec.unreadable),
        now_ms=call.request.now_ms,
        memory_bytes=call.feed.memory_bytes,
        bases={
            where.partition: landed.base
            for where, landed in call.progress.ranges.items()
            if where.topic == spec.topic and landed.end
        },
    )
