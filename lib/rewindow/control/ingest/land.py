"""`land FEED`: turn new rows of the feed's sources into landings. Jobs then depend neither on clocks nor on arrival times.

recover -> look -> prepare -> plan -> write, log by log -> decide -> publish

Offsets are assigned once. Rows are written as staged files, then the driver computes the landings' watermarks. One append to
the feed's ledger makes all landings valid. If the process is killed before the append, nothing was landed. If it is killed
after the append, any process can publish the landings, and a repeated `--new-generation` does not start another generation
(ADR-79). `steps` is a generator, as in `control.run`. It yields the name of each step before the step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from rewindow.config.feed import TABLE_FORMATS, FeedConfig, feed_spec
from rewindow.contracts.ingest import FeedSpec, LogSpec, LogWrite, PendingLanding, TimestampPolicy
from rewindow.contracts.instants import instant
from rewindow.contracts.landing_protocol import Block, LandingEngine
from rewindow.contracts.row_faults import FaultKind, fault_of
from rewindow.control.health.waiting_sources import waiting_files, waiting_read
from rewindow.control.heartbeat import STALLED_MS, Heartbeat, is_alive, this_attempt
from rewindow.control.ingest.decide import DecidedLanding, LandingRules, Numbering, all_refused
from rewindow.control.ingest.discover import (
    Due,
    NothingDue,
    find_due,
    nothing_to_begin_with,
    watermark_policy,
    without_landings,
)
from rewindow.control.ingest.feed_progress import Progress, fold_progress, with_landed_grid
from rewindow.control.ingest.generations import (
    generation_body,
    log_schemas,
    mistakes,
    newest_generation,
    next_generation,
    null_in_kept,
)
from rewindow.control.ingest.landed_fields import raise_all
from rewindow.control.ingest.landing_report import (
    LandReport,
    declared_too_low,
    lost_from_quarantine,
    nothing_landed,
    report_of,
)
from rewindow.control.ingest.landings import GENERATION, LANDING, PLAN, HeldFile
from rewindow.control.ingest.protocols import Call, LandingTables, LandRequest, LostRows
from rewindow.control.ledger_steps import PLANS, drive, update
from rewindow.control.plan.job_fold import NOTE
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import Attempt
from rewindow.errors import (
    DataError,
    InvariantError,
    NotNowError,
    ReasonMessage,
    RewindowError,
    StorageError,
    UsageError,
)

_Steps = Generator[str, None, LandReport]
_WRITES_MAX = 3
"""How many times logs are written at most. The second time, the expected landing numbers are right, unless rows change
meanwhile."""


def land(
    config: FeedConfig,
    tables: LandingTables,
    engine: LandingEngine,
    *,
    now_ms: int,
    until_ms: int | None = None,
    watermark_ms: int | None = None,
    new_generation: bool = False,
    keep: int | None = None,
    extractors: Mapping[str, str] | None = None,
    stalled_ms: int = STALLED_MS,
    on_step: Callable[[str], None] | None = None,
) -> LandReport:
    """Land new rows of a feed's sources. This process is the attempt.

    ``now_ms`` is the recorded time of the landings and the default of ``until_ms``. `Heartbeat` describes ``stalled_ms``, and
    `LandRequest` the other parameters. If a `RewindowError` is raised, either nothing was landed, or everything was landed and
    the next call publishes it.
    """
    feed = feed_spec(config, project_root=engine.project_root, warehouse=tables.warehouse)
    request = LandRequest(now_ms, until_ms, watermark_ms, new_generation, keep or 0, extractors or {})
    attempt = this_attempt()
    with Heartbeat(tables.warehouse, attempt, stalled_ms):
        return drive(steps(feed, tables, engine, request, attempt, partial(is_alive, tables.warehouse)), on_step)


def steps(
    feed: FeedSpec,
    tables: LandingTables,
    engine: LandingEngine,
    request: LandRequest,
    attempt: Attempt,
    alive: Callable[[Attempt], bool],
) -> _Steps:
    """Land new rows, step by step. Raises as `land`."""
    lost: list[LostRows] = []
    report = yield from _land_steps(feed, tables, engine, request, attempt, alive, lost)
    return replace(report, warnings=(*lost_from_quarantine(feed, lost), *report.warnings))


def _land_steps(
    feed: FeedSpec,
    tables: LandingTables,
    engine: LandingEngine,
    request: LandRequest,
    attempt: Attempt,
    alive: Callable[[Attempt], bool],
    lost: list[LostRows],
) -> _Steps:
    yield "recover"
    is_published, is_lost = True, False
    try:
        for step in tables.publish_steps(feed.feed, lost):
            is_published = False
            yield step
    except StorageError:
        # Some files of landings are gone. A new generation that keeps no landings does not need them.
        if not request.new_generation or request.keep:
            raise
        is_lost = True
    if request.new_generation and not is_published and not is_lost:
        repeated = newest_generation(tables.state(feed.feed), feed, request.keep)
        if repeated:
            report = LandReport.of(feed.feed, repeated, was_interrupted=True)
            return replace(report, warnings=declared_too_low(feed, request, report.watermark_ms))
    call = _call(feed, tables, engine, request, attempt)
    feed, progress = call.feed, call.progress
    _check_declared(call)
    _refuse_if_alive(feed, progress, attempt, alive)
    yield "look"
    due, nothing = find_due(call), NothingDue()
    if isinstance(due, NothingDue):
        call = _with_changed_files(call)
        if not call.generation.is_change:
            yield from _give_up(call)
            return nothing_landed(call, due)
        nothing, due = due, without_landings(call)
    yield "prepare"
    copied = {spec.topic: due.columns[spec.topic] for spec in feed.logs if spec.source_offsets is None}
    tables.prepare(feed.feed, log_schemas(copied))
    yield from _append(call, PLANS, [LedgerRow(progress.seq + 1, PLAN, {"attempt": asdict(attempt)}, request.now_ms)])
    if progress.unfinished:
        tables.remove_orphans(feed.feed, [spec.topic for spec in feed.logs], [dead.id for dead in progress.unfinished])
    try:
        due, decided = yield from _write_logs(call, due)
    except StorageError as error:
        # These files may be missing because another `land` took over and deleted them.
        _refuse_if_overtaken(call, error)
        raise
    decided = [_as_landed(call, decision) for decision in decided]
    yield from _append(call, "decide", _ledger_rows(call, due, decided))
    if not decided:
        return _without_rows(call, due, nothing.waiting)
    yield "publish"
    yield from tables.publish_steps(feed.feed, lost)
    return report_of(call, due, decided, has_lost_files=is_lost)


def _without_rows(call: Call, due: Due, waiting: ReasonMessage | None) -> LandReport:
    """Return the report of a call that found new files or rows, but no due rows and no higher watermark."""
    feed, request = call.feed, call.request
    if call.generation.is_change and not call.generation.kept:
        raise nothing_to_begin_with(call)
    if request.until_ms is None:
        waiting = waiting or waiting_files(feed, due.inspected, request.now_ms)
    else:
        fresh = sum(len(look.fresh) for look in due.inspected.values())
        waiting = waiting or waiting_read(feed, fresh, "new file", request.until_ms)
    return nothing_landed(call, NothingDue(waiting, due.inspected), null_in_kept(call.generation.columns, due.columns))


def _give_up(call: Call) -> Generator[str, None, None]:
    """Record that dead attempts landed nothing, and delete their files."""
    # Any landing would do this, too, but this call makes no landing.
    dead = [attempt.id for attempt in call.progress.unfinished]
    first_seq, now_ms = call.progress.seq + 1, call.request.now_ms
    if dead:
        rows = [LedgerRow(seq, NOTE, {"attempt": attempt_id}, now_ms) for seq, attempt_id in enumerate(dead, first_seq)]
        yield from _append(call, "give up", rows)
        call.tables.remove_orphans(call.feed.feed, [spec.topic for spec in call.feed.logs], dead)


def _check_declared(call: Call) -> None:
    """Raise `UsageError` (2) for a declared watermark far in the future."""
    # All records up to that time would be late, and no later call can lower a watermark.
    ahead_ms, declared_ms = call.feed.max_ahead_ms, call.request.watermark_ms
    if ahead_ms is None or declared_ms is None:
        return
    last_ms = max(call.request.now_ms, call.progress.watermark_ms) + ahead_ms
    if declared_ms > last_ms:
        raise UsageError(
            "watermark-in-future",
            "feed {feed}: the declared watermark {watermark} is in the future, and all records up to "
            "then would be late. Declare at most {limit}, or set `landing: {{max_ahead: none}}`",
            feed=call.feed.feed,
            watermark=instant(declared_ms),
            limit=instant(last_ms),
        )


def _call(feed: FeedSpec, tables: LandingTables, engine: LandingEngine, request: LandRequest, attempt: Attempt) -> Call:
    rows = tables.state(feed.feed)
    progress = fold_progress(rows)
    wrong = mistakes(feed, progress, engine.look, engine.wrong_columns)
    generation = next_generation(
        feed, progress, new_generation=request.new_generation, keep=request.keep, mistakes=wrong
    )
    if generation.is_new:
        progress = replace(fold_progress(rows, keep=generation.kept), unfinished=progress.unfinished)
    progress = progress.waiting_for({spec.topic for spec in feed.logs})
    feed = with_landed_grid(feed, progress)
    return Call(feed, request, progress, generation, attempt, tables, engine)


def _with_changed_files(call: Call) -> Call:
    """Return the call. Its new generation counts as a change if it keeps all landings and the landed files have changed."""
    generation = call.generation
    if generation.is_change or not generation.kept or not generation.is_new or not call.feed.every:
        return call
    recorded, now = fold_progress(call.tables.state(call.feed.feed)).positions, without_landings(call).positions(None)
    is_change = any(recorded.get(topic, {}).get("files") != position.get("files") for topic, position in now.items())
    return replace(call, generation=replace(generation, is_change=is_change))


def _refuse_if_alive(feed: FeedSpec, progress: Progress, attempt: Attempt, alive: Callable[[Attempt], bool]) -> None:
    for other in progress.unfinished:
        is_me = (other.host, other.pid, other.pid_started) == (attempt.host, attempt.pid, attempt.pid_started)
        if not is_me and alive(other):
            raise NotNowError(
                "feed-being-landed",
                "feed {feed} is being landed by process {process} on {host}: wait for it, or stop it",
                feed=feed.feed,
                process=other.pid,
                host=other.host,
            )


def _as_landed(call: Call, decision: DecidedLanding) -> DecidedLanding:
    """Return the landing with the versions of this call's extractors and with its rule of intervals."""
    grid = call.feed.grid if call.feed.every else ""
    return replace(decision, landing=replace(decision.landing, extractors=call.request.extractors, grid=grid))


def _ledger_rows(call: Call, due: Due, decided: Sequence[DecidedLanding]) -> list[LedgerRow]:
    """Return the rows to append after this call's PLAN row: the new generation, if any, and the landings; otherwise a NOTE."""
    starts = call.generation.is_new and (decided or (call.generation.is_change and call.generation.kept))
    bodies: list[tuple[str, Mapping[str, Any]]] = [] if decided or starts else [(NOTE, {"attempt": call.attempt.id})]
    if starts:
        rebased = due.positions(None) if call.generation.kept and call.feed.every else {}
        bodies.append((GENERATION, generation_body(call.feed, call.generation, due.columns, rebased)))
    for index, landing in enumerate(decided):
        positions = due.positions(landing.interval) if due.epochs or not index else {}
        bodies.append((LANDING, landing.as_json(call.attempt.id, positions)))
    now_ms, first_seq = call.request.now_ms, call.progress.seq + 2
    return [LedgerRow(seq, kind, body, now_ms) for seq, (kind, body) in enumerate(bodies, start=first_seq)]


def _append(call: Call, step: str, rows: list[LedgerRow]) -> Generator[str, None, None]:
    """Append rows if the ledger has not grown since it was read. Raises `NotNowError` (75) if another `land` appended first."""

    def decide(ledger: Sequence[LedgerRow]) -> list[LedgerRow]:
        if len(ledger) != rows[0].seq - 1:
            raise _overtaken(call)
        return rows

    yield from update(call.tables, call.feed.feed, step, decide)


def _refuse_if_overtaken(call: Call, error: StorageError) -> None:
    if len(call.tables.state(call.feed.feed)) > call.progress.seq + 1:
        raise _overtaken(call) from error


def _overtaken(call: Call) -> NotNowError:
    return NotNowError(
        "landing-overtaken",
        "feed {feed}: another `land` was faster, so this one landed nothing: run it again",
        feed=call.feed.feed,
    )


def _write_logs(call: Call, due: Due) -> Generator[str, None, tuple[Due, list[DecidedLanding]]]:
    """Write the logs with the expected landing numbers, and decide the landings. If these get other numbers, write again."""
    feed, request = call.feed, call.request
    policy = watermark_policy(feed)
    rules = LandingRules(call.generation.number, policy, request.now_ms, request.watermark_ms, due.epochs)
    for _ in range(_WRITES_MAX):
        blocks: dict[str, list[Block]] = {}
        problems: list[RewindowError] = []
        # Without slots no rows are due, and only the watermark rises.
        for spec in feed.logs if due.slots else ():
            yield f"write {spec.topic}"
            try:
                blocks[spec.topic] = call.engine.write(
                    _log_write(call, spec, due), due.inspected[spec.topic], due.window
                )
                _check_some_landed(call, spec, blocks[spec.topic])
            except DataError as error:
                # The other logs are checked, too, so that one error names the problems of all logs.
                problems.append(error)
            if spec.source.format not in TABLE_FORMATS:
                call.engine.check_unchanged(spec.source, due.inspected[spec.topic])
        raise_all(feed.feed, problems)
        numbering = Numbering(call.progress, rules, partial(_first_above, call))
        decided = numbering.decide(due.intervals, blocks, due.slots)
        slots = tuple(PendingLanding(made.landing.number, *(made.interval or ())) for made in decided)
        written = {block.landing for topic_blocks in blocks.values() for block in topic_blocks}
        if {slot for slot in due.slots if slot.number in written} <= set(slots):
            return due, decided
        due = replace(due, slots=slots)
        call.tables.remove_orphans(feed.feed, [spec.topic for spec in feed.logs], [call.attempt.id])
    raise InvariantError(
        "source-not-deterministic",
        "feed {feed}: its sources give different rows on each read, so they cannot be landed: fix the source",
        feed=feed.feed,
    )


def _check_some_landed(call: Call, spec: LogSpec, blocks: Sequence[Block]) -> None:
    """Raise `DataError` (65) if all new records would be quarantined, and the configuration is probably wrong.

    The configuration is probably wrong if these are the log's first records, or if their timestamps have another unit.
    """
    # Then the configured column, format or unit is wrong, not the records.
    refused = all_refused(blocks)
    if refused is None:
        return
    quarantined, why = refused
    has_records = any(where.topic == spec.topic and landed.end for where, landed in call.progress.ranges.items())
    fault = fault_of(why)
    is_of_unit = fault.kind == FaultKind.OTHER_UNIT
    if has_records and not is_of_unit:
        return
    fix = spec.unit_fix(fault) if is_of_unit else "Fix `timestamp:`, `units:`, `max_ahead` or the source"
    records = "the only record" if quarantined == 1 else f"all {quarantined} records"
    raise DataError(
        "log-all-quarantined",
        "feed {feed}: {records} of the log {topic} would be quarantined, the first because of: {reason}. Nothing "
        "was landed. {fix}",
        feed=call.feed.feed,
        records=records,
        topic=spec.topic,
        reason=why,
        fix=fix,
    )


def _first_above(call: Call, file: HeldFile, offset: int, time_ms: int) -> int | None:
    if file.path:
        return call.tables.first_above(call.feed.feed, file, offset, time_ms)
    spec = next((spec for spec in call.feed.logs if spec.topic == file.topic), None)
    # Records of a log that the feed no longer has cannot be read. They stay held back until the watermark passes all of them.
    if spec is None:
        return offset
    offset_above = call.engine.first_above(spec, file.partition, (offset + file.base, file.end + file.base), time_ms)
    return None if offset_above is None else offset_above - file.base


def _with_keys(spec: LogSpec, keys: Sequence[str]) -> LogSpec:
    """Return the log with ``keys`` added to the columns of its order, so that its rows contain these columns.

    ``keys`` are the key columns of the output that the log lands.
    """
    renames = spec.renames or {}
    return replace(spec, order=(*spec.order, *(renames.get(key, key) for key in keys)))


def _log_write(call: Call, spec: LogSpec, due: Due) -> LogWrite:
    log_root, quarantine_root = call.tables.roots(call.feed.feed, spec.topic)
    return LogWrite(
        feed=call.feed.feed,
        generation=call.generation.number,
        attempt=call.attempt.id,
        partitions=call.feed.partitions,
        spec=_with_keys(spec, due.inspected[spec.topic].keys),
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
