"""Find the rows of a feed's sources that are due. This happens before planning, so that a call with no work writes no ledger row.

A log may get another source while landings are kept. With `every`, the rows that arrive after the last kept interval are new.
Without `every`, the landed position decides which rows are new. The position stays valid if the landed files were moved to
another folder, or if a table was moved. In any other source it has no meaning: all rows would count as new, even rows that the
kept landings contain (ADR-142).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import (
    JOB,
    Arrivals,
    EpochTimes,
    FeedSpec,
    Intervals,
    LogColumns,
    LogSpec,
    PendingLanding,
    ReadWindow,
    SourceLook,
)
from rewindow.contracts.row_faults import FaultKind, fault_of
from rewindow.contracts.text_options import other_form
from rewindow.control.health.waiting_sources import (
    not_followed,
    waiting_read,
    waiting_refused,
    waiting_rows,
    waiting_sources,
    waiting_unread,
)
from rewindow.control.ingest.decide import WatermarkPolicy, decide_watermark
from rewindow.control.ingest.feed_progress import fold_progress
from rewindow.control.ingest.generations import FILES, grown, is_same_origin, kind_of, position_of
from rewindow.control.ingest.intervals import (
    Epochs,
    Grid,
    Idleness,
    due_intervals,
    grid_of,
    with_later,
    without_finished,
)
from rewindow.control.ingest.landed_fields import LandedFields, check_fields, landed_fields, raise_all
from rewindow.control.ingest.protocols import Call
from rewindow.errors import ConfigError, DataError, LandedFileError, ReasonMessage, SourceError, StorageError
from rewindow.streams.record import UNKNOWN


@dataclass(frozen=True, slots=True)
class NothingDue:
    """Nothing is due. ``waiting``: why rows wait for the end of their interval, if this is known."""

    waiting: ReasonMessage | None = None
    inspected: Mapping[str, SourceLook] = field(default_factory=dict)


def _inspect_sources(call: Call) -> _Sources | NothingDue:
    """Inspect all sources of a feed without reading rows. Raises as `find_due` does."""
    if all(spec.is_output for spec in call.feed.logs):
        return _inspect_epochs(call)
    grid, window = _complete_intervals(call)
    if window.until_ms is not None and window.through_ms is not None and window.through_ms >= window.until_ms:
        return _nothing_due(call)
    inspected = {spec.topic: _look_at(call, spec, window) for spec in call.feed.logs}
    has_rows = any(look.fresh or (grid and look.rest) for look in inspected.values())
    if not has_rows and (_waits_for_later_rows(call) or not _rises(call, window)):
        return _nothing_due(call, inspected)
    return _Sources(inspected, window, grid, has_rows=has_rows)


def epoch_times(inspected: Iterable[SourceLook]) -> dict[int, EpochTimes]:
    """Return the times of the new epochs of the job whose outputs are landed, by the number of the epoch."""
    # If several outputs of the job are landed, the longest time for which one of them may be held back applies to all.
    times: dict[int, EpochTimes] = {}
    for look in inspected:
        for epoch in look.epochs:
            before = times.get(epoch.number, epoch.times)
            times[epoch.number] = EpochTimes(epoch.watermark_ms, max(before.held_ms, epoch.held_ms))
    return times


def _complete_intervals(call: Call) -> tuple[Grid | None, ReadWindow]:
    """Return a feed's intervals of arrival (None without `every`), and the window of complete intervals that are not landed."""
    feed = call.feed
    if not feed.every:
        return None, ReadWindow()
    grid, now_ms, until_ms = grid_of(feed), call.request.now_ms, call.request.until_ms
    # An interval that has not ended is never landed, even if it was requested, because all its later rows would be late.
    until = grid.start_of(now_ms if until_ms is None else min(until_ms, now_ms))
    return grid, ReadWindow(call.progress.through_ms, until)


def _look_at(call: Call, spec: LogSpec, window: ReadWindow) -> SourceLook:
    """Inspect a source. If a new generation keeps landings, only rows that arrived after the kept intervals are due.

    Raises `ConfigError` (78) if `land` cannot know which rows are new (see `_check_goes_on`).
    """
    generation = call.generation
    is_rebased = generation.is_new and window.until_ms is not None and spec.topic in generation.columns
    position = None if is_rebased else call.progress.positions.get(spec.topic)
    if generation.is_new and position is not None:
        _check_goes_on(call, spec, position, window)
    if spec.source.format in TABLE_FORMATS:
        look = call.tables.look(spec, position, window)
    else:
        look = call.engine.look(spec.source, position)
        if window.until_ms is not None:
            look = without_finished(look, position, window.until_ms)
    return replace(look, fresh=(), rest=(*look.rest, *look.fresh)) if is_rebased else look


def _rises(call: Call, window: ReadWindow) -> bool:
    """Return whether the watermark rises even without new rows: it is declared, or an idle partition times out (D16)."""
    # A later landing time can only end the wait for idle partitions, so it is enough to try the end of the last due interval.
    landed_ms = call.request.now_ms if window.until_ms is None else window.until_ms
    watermark = decide_watermark(
        watermark_policy(call.feed),
        call.progress.deliveries,
        landed_ms=landed_ms,
        interval_end_ms=window.until_ms,
        declared_ms=call.request.watermark_ms,
        before_ms=call.progress.watermark_ms,
    )
    return watermark.time_ms > call.progress.watermark_ms


def _waits_for_later_rows(call: Call) -> bool:
    """Return whether an interval counts as complete only when a later row has arrived.

    With `watermark: interval_end`, the end of an interval declares that all rows of the interval are there. A caller who gives
    `--until` or `--watermark` knows that they are. The clock cannot know, because a source may lag.
    """
    feed, request = call.feed, call.request
    is_declared = request.until_ms is not None or request.watermark_ms is not None
    return feed.interval_end and feed.every is not None and not is_declared and any(map(_may_lag, feed.logs))


def _may_lag(spec: LogSpec) -> bool:
    """Return whether rows of a log may become visible after their arrival. Rows that arrive with a table's commit do not."""
    return not spec.is_output and (spec.source.format not in TABLE_FORMATS or spec.arrived_at is not None)


def _followed(
    call: Call,
    columns: Mapping[str, LogColumns],
    inspected: Mapping[str, SourceLook],
    window: ReadWindow,
    grid: Grid,
) -> ReadWindow:
    """Return the window up to the first interval that may be incomplete. A log without later rows may still get rows of it.

    A log that has never delivered rows does not shorten the window. In a new generation, intervals that are already landed
    count as complete.
    """
    landed = fold_progress(call.tables.state(call.feed.feed)).through_ms or UNKNOWN
    ends = [window.until_ms or 0]
    for spec in filter(_may_lag, call.feed.logs):
        arrivals = call.engine.intervals(spec, columns[spec.topic], inspected[spec.topic], window, grid)
        last = max((start for start in arrivals.starts if start is not None), default=None)
        has_delivered = any(where.topic == spec.topic for where in call.progress.deliveries)
        if not arrivals.waiting and (last is not None or has_delivered):
            ends.append(max(UNKNOWN if last is None else last, landed))
    return replace(window, until_ms=min(ends))


def watermark_policy(feed: FeedSpec) -> WatermarkPolicy:
    """Return the watermark policy of a feed."""
    return WatermarkPolicy(feed.max_task_idle_ms, feed.lag_ms, feed.interval_end)


@dataclass(frozen=True, slots=True)
class _Sources:
    """The inspected sources by topic, and the window of arrival.

    If ``has_rows`` is false, no rows can be due, and only the watermark rises.
    """

    inspected: Mapping[str, SourceLook]
    window: ReadWindow
    grid: Grid | Epochs | None = None
    epochs: Mapping[int, EpochTimes] | None = None
    has_rows: bool = True


def _inspect_epochs(call: Call) -> _Sources | NothingDue:
    """Return the inspected outputs of another job, and the epochs of this job that the feed has not landed."""
    inspected = {spec.topic: _look_at(call, spec, ReadWindow()) for spec in call.feed.logs}
    epochs = epoch_times(inspected.values())
    if not epochs:
        for run in (look.on_hold for look in inspected.values() if look.on_hold):
            return NothingDue(
                ReasonMessage(
                    "source-run-on-hold",
                    "nothing new to land: run {run} of its job is on hold, and what follows is not published",
                    run=run,
                )
            )
        return NothingDue()
    inspected = {topic: replace(look, fresh=(), rest=look.fresh) for topic, look in inspected.items()}
    return _Sources(inspected, ReadWindow(min(epochs), max(epochs) + 1), Epochs(), epochs)


def _nothing_due(call: Call, inspected: Mapping[str, SourceLook] | None = None) -> NothingDue:
    """Return why rows wait for the end of their interval. Without ``inspected``, only files are inspected, not tables."""
    feed, through, until_ms = call.feed, call.progress.through_ms, call.request.until_ms
    if feed.every is None or through is None:
        return NothingDue(None, inspected or {})
    # Tables are left out, because inspecting a table may start Spark.
    logs = [spec for spec in feed.logs if spec.source.format not in TABLE_FORMATS]
    # The files are inspected even if all requested intervals are landed, so that missing or changed landed files are refused.
    try:
        inspected = inspected or {spec.topic: _look_at(call, spec, ReadWindow(through, through)) for spec in logs}
    except StorageError as error:
        # With `--until`, an unreadable new file is no error. It may be incomplete yet, and none of its rows is due.
        if until_ms is None:
            raise
        return NothingDue(waiting_refused(feed, until_ms, error))
    if until_ms is not None:
        return NothingDue(waiting_unread(feed, inspected, until_ms), inspected)
    if _waits_for_later_rows(call) and grid_of(feed).after(through) <= call.request.now_ms:
        return NothingDue(not_followed(feed, through), inspected)
    return NothingDue(waiting_sources(feed, inspected, call.progress.positions, call.request.now_ms), inspected)


def _check_goes_on(call: Call, spec: LogSpec, position: Mapping[str, Any], window: ReadWindow) -> None:
    """Raise `ConfigError` (78) if a log of a new generation has another source, in which its landed position has no meaning."""
    source = spec.source
    before = call.progress.declared.get("logs", {}).get(spec.topic, {}).get("source")
    was = before["name"] if before else None
    if position_of(position, source.format) is None:
        raise _another(call, spec, was, "is of another kind")
    if before and not is_same_origin(before, {"format": source.format, "name": source.name}):
        raise _another(call, spec, was, "is of another job")
    if was == source.name or source.format == JOB:
        return
    if kind_of(source.format) == FILES:
        try:
            call.engine.look(source, position)
        except LandedFileError as error:
            raise _another(call, spec, was, f"does not have the landed file {error.facts['file']} as it was") from error
    elif call.tables.look(spec, None, window).position["id"] != position["id"]:
        raise _another(call, spec, was, "is another table")


def _another(call: Call, spec: LogSpec, was: str | None, why: str) -> ConfigError:
    feed, name = call.feed.feed, spec.source.name
    change = f"{was} -> {name}" if was and was != name else name
    return ConfigError(
        "log-source-replaced",
        "--keep {keep}: the log {topic} has a new source ({change}), which {reason}. Without `every`, "
        "`land` cannot know which of its rows the kept landings have, and would land them twice. Restore "
        "the source, give the new one a log of its own, or land everything again: `rewindow land {feed} "
        "--new-generation`",
        keep=call.generation.kept,
        topic=spec.topic,
        change=change,
        reason=why,
        feed=feed,
    )


Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Due:
    """What a call has to land.

    ``inspected`` and ``columns`` are the sources and their columns, by topic. Rows whose arrival is in ``window`` are due.
    ``intervals`` are the intervals that may become landings; ``(None,)`` without ``every``. ``slots`` are the expected landings
    with their numbers. The rows that are read decide which landings are made (`control.ingest.decide`).
    """

    inspected: Mapping[str, SourceLook]
    columns: Mapping[str, LogColumns]
    window: ReadWindow
    intervals: tuple[Interval | None, ...]
    slots: tuple[PendingLanding, ...]
    epochs: Mapping[int, EpochTimes] | None = None
    """For a feed of another job's outputs: the times of the job's new epochs by number. These epochs are the intervals."""
    leaves_open: bool = False
    """Whether some intervals that are over are not landed, because no later row shows that all their rows have arrived."""

    def positions(self, interval: Interval | None) -> dict[str, Mapping[str, Any]]:
        """Return the sources' positions after the landing of an interval."""
        if self.epochs is None or interval is None:
            return {topic: look.position for topic, look in self.inspected.items()}
        return {topic: _position(look, interval[0]) for topic, look in self.inspected.items()}


def find_due(call: Call) -> Due | NothingDue:
    """Return what is due.

    Raises `SourceError` (66) if a source changed since it was landed, `ConfigError` (78) if a source cannot be landed as
    configured.
    """
    sources = _inspect_sources(call)
    if isinstance(sources, NothingDue):
        return sources
    inspected, window = sources.inspected, sources.window
    columns = _all_columns(call, inspected)
    inspected = {
        spec.topic: _checked(call, spec, columns[spec.topic], inspected[spec.topic]) for spec in call.feed.logs
    }
    if sources.grid is None:
        slot = PendingLanding(call.progress.number + 1)
        return Due(inspected, columns, window, (None,), (slot,) if sources.has_rows else ())
    over_ms = window.until_ms
    if isinstance(sources.grid, Grid) and _waits_for_later_rows(call):
        window = _followed(call, columns, inspected, window, sources.grid)
    arrivals_of: dict[str, Arrivals] = {}
    arrivals = (
        partial(_arrivals, call, columns, inspected, window, sources.grid, arrivals_of)
        if sources.has_rows
        else frozenset
    )
    idleness = Idleness(
        call.feed.max_task_idle_ms, tuple(delivery.landed_ms for delivery in call.progress.deliveries.values())
    )
    intervals, expected = due_intervals(
        sources.grid, window, arrivals, all_of_them=call.feed.interval_end, idleness=idleness
    )
    if not sources.has_rows:
        expected = []
    if not intervals or not (expected or sources.epochs or _rises(call, window)):
        is_open = window.until_ms != over_ms
        waiting = not_followed(call.feed, window.until_ms) if is_open else _waiting(call, arrivals_of.values())
        return NothingDue(waiting, inspected)
    if isinstance(sources.grid, Grid):
        inspected = {
            spec.topic: _with_later(
                call, spec, columns[spec.topic], inspected[spec.topic], window, arrivals_of.get(spec.topic)
            )
            for spec in call.feed.logs
        }
    slots = tuple(
        PendingLanding(number, *interval) for number, interval in enumerate(expected, start=call.progress.number + 1)
    )
    return Due(inspected, columns, window, tuple(intervals), slots, sources.epochs, window.until_ms != over_ms)


def without_landings(call: Call) -> Due:
    """Return the columns and source positions with which a new generation starts if nothing is due.

    Raises `SourceError` (66) if the generation keeps no landing, and as `find_due` does.
    """
    if not call.generation.kept:
        raise nothing_to_begin_with(call)
    _, window = _complete_intervals(call)
    inspected = {spec.topic: _look_at(call, spec, window) for spec in call.feed.logs}
    columns = _all_columns(call, {topic: _of_landed_files(look) for topic, look in inspected.items()})
    inspected = {
        spec.topic: _checked(call, spec, columns[spec.topic], inspected[spec.topic]) for spec in call.feed.logs
    }
    return Due(inspected, columns, window, (), ())


def nothing_to_begin_with(call: Call) -> SourceError:
    """Return the error for a new generation that would have no landings."""
    return SourceError(
        "feed-nothing-due",
        "feed {feed}: nothing in its sources is due, so no generation was started, and its landings "
        "stay as they are. Land it again when its sources have rows that are due",
        feed=call.feed.feed,
    )


def _of_landed_files(look: SourceLook) -> SourceLook:
    """Return the inspected source with at least one file to read: the new files, or the landed files if there are none."""
    # `_all_columns` reads the new files. If there are none, it reads the landed files, because they have the same columns.
    return look if look.fresh or look.rest else replace(look, rest=look.landed)


def _arrivals(
    call: Call,
    columns: Mapping[str, LogColumns],
    inspected: Mapping[str, SourceLook],
    window: ReadWindow,
    intervals: Intervals,
    arrivals_of: dict[str, Arrivals],
) -> frozenset[int | None]:
    """Return the starts of the intervals with due rows (epoch ms). Adds the arrivals of each log to ``arrivals_of``, by topic.

    Raises `DataError` (65) if no row of a first landing has an arrival.
    """
    for spec in call.feed.logs:
        arrivals = call.engine.intervals(spec, columns[spec.topic], inspected[spec.topic], window, intervals)
        arrivals_of[spec.topic] = arrivals
        # Without a valid arrival in any row, a first landing has no interval.
        if window.through_ms is None and arrivals.fault and not arrivals.waiting and arrivals.starts == {None}:
            column, fault = spec.arrived_at or spec.timestamp, fault_of(arrivals.fault)
            fix = f"{other_form(spec.source, column)}Fix `arrived_at: {column}`, `units:` or the source"
            if fault.kind == FaultKind.OTHER_UNIT:
                fix = spec.unit_fix(fault)
            elif fault.kind == FaultKind.UNREADABLE:
                fix = "Fix the file, or the options of the source"
            raise DataError(
                "log-without-valid-arrival",
                "feed {feed}: no row of the log {topic} has a valid arrival. Of the first row: {reason}. "
                "Nothing was landed. {fix}",
                feed=call.feed.feed,
                topic=spec.topic,
                reason=arrivals.fault,
                fix=fix,
            )
    return frozenset[int | None]().union(*(arrivals.starts for arrivals in arrivals_of.values()))


def _waiting(call: Call, arrivals: Collection[Arrivals]) -> ReasonMessage | None:
    """Return the reason why rows that were read wait for the end of their interval; None if none are known to wait."""
    nexts = [of_log.next_ms for of_log in arrivals if of_log.next_ms is not None]
    if not nexts or call.feed.every is None:
        return None
    rows, until_ms = sum(of_log.waiting for of_log in arrivals), call.request.until_ms
    # With `--until`, the message names no time, because only the caller knows when later intervals will be requested.
    if until_ms is not None:
        return waiting_read(call.feed, rows, "row", until_ms)
    return waiting_rows(call.feed, rows, min(nexts), call.request.now_ms)


def _position(look: SourceLook, epoch: int) -> Mapping[str, Any]:
    produced = next(produced for produced in look.epochs if produced.number == epoch)
    run = {"run": produced.run, "ledger": produced.ledger, "attempt": produced.attempt}
    return {"kind": JOB, "epoch": epoch, **run}


def _all_columns(call: Call, inspected: Mapping[str, SourceLook]) -> dict[str, LogColumns]:
    """Return the columns of each log. Problems of all logs are raised in one error, before Spark is started."""
    kept, growing = call.generation.columns, call.generation.growing
    new = [spec for spec in call.feed.logs if spec.topic not in kept or spec.topic in growing]
    wrong = [call.engine.wrong_columns(spec, inspected[spec.topic]) for spec in new]
    raise_all(call.feed.feed, [error for error in wrong if error is not None])
    columns = {**kept, **{spec.topic: call.engine.columns(spec, inspected[spec.topic]) for spec in new}}
    grew = {spec.topic: grown(spec, kept[spec.topic], columns[spec.topic]) for spec in new if spec.topic in growing}
    return {**columns, **grew}


def _landed(call: Call, spec: LogSpec) -> Mapping[str, Any] | None:
    """Return the position up to which a source is landed; None if the kept landings are from a source of another kind."""
    return position_of(call.progress.positions.get(spec.topic), spec.source.format)


def _checked(call: Call, spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceLook:
    """Return the inspected source. Its position then records the fields of all landed files.

    Raises `SourceError` (66) for wrong fields.
    """
    before = landed_fields(_landed(call, spec))
    is_landed = not look.fresh and not spec.is_output and not (look.rest and call.generation.is_new)
    fields_now = before
    if not is_landed:
        fields = call.engine.fields(spec, columns, look)
        if spec.source.format in TABLE_FORMATS and spec.topic in call.generation.columns:
            # A table has one schema for all rows.
            before = LandedFields(tuple(sorted(fields.known)))
        fields_now = check_fields(spec, columns, fields, before, landings=call.progress.number)
    if fields_now is None or spec.source.format in TABLE_FORMATS:
        return look
    return replace(look, position={**look.position, "fields": fields_now.as_json()})


def _with_later(
    call: Call, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, arrivals: Arrivals | None
) -> SourceLook:
    """Return the inspected source. Its position then records the files with later rows, which are not due in this call."""
    if spec.source.format in TABLE_FORMATS or window.until_ms is None:
        return look
    none_waits = not (look.fresh or look.rest) or (arrivals is not None and not arrivals.waiting)
    later = {} if none_waits else call.engine.later(spec, columns, look, window.until_ms)
    return with_later(look, _landed(call, spec), later)
