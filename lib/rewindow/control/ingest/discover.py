"""Find what of a feed's sources is due. This happens before planning, so that a call with no work writes no ledger row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rewindow.config.feed_spec import TABLE_FORMATS
from rewindow.contracts.ingest import (
    JOB,
    Arrivals,
    FeedSpec,
    Intervals,
    LogColumns,
    LogSpec,
    PendingLanding,
    ReadWindow,
    SourceLook,
)
from rewindow.contracts.text_times import other_form
from rewindow.control.ingest.fields import LandedFields, check_fields, landed_fields
from rewindow.control.ingest.grown_columns import grown
from rewindow.control.ingest.intervals import Epochs, Grid, Idleness, due_intervals
from rewindow.control.ingest.later_rows import later_rows, with_later, without_finished
from rewindow.control.ingest.problems import raise_all
from rewindow.control.ingest.protocols import Call
from rewindow.control.ingest.waiting import waiting_files, waiting_later, waiting_rows
from rewindow.control.ingest.watermarks import WatermarkPolicy, decide_watermark
from rewindow.errors import DataError

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Due:
    """What to land: looks and columns by topic, the window of arrival, and the intervals to go through.

    Without ``every`` there is one interval, None. ``slots`` are the expected landings with their numbers; the rows decide
    which landings there really are (`control.ingest.decide`).
    """

    looks: Mapping[str, SourceLook]
    columns: Mapping[str, LogColumns]
    window: ReadWindow
    intervals: tuple[Interval | None, ...]
    slots: tuple[PendingLanding, ...]
    epochs: Mapping[int, int] | None = None
    """For a feed of another job's outputs: new epoch -> watermark. The intervals are then epochs."""

    def positions(self, interval: Interval | None) -> dict[str, Mapping[str, Any]]:
        """Return the sources' positions after the landing of an interval."""
        if self.epochs is None or interval is None:
            return {topic: look.position for topic, look in self.looks.items()}
        return {topic: _position(look, interval[0]) for topic, look in self.looks.items()}


@dataclass(frozen=True, slots=True)
class Sources:
    """The inspected sources: their looks by topic, and the window of arrival.

    Without ``has_rows`` no rows can be due, and only the watermark rises.
    """

    looks: Mapping[str, SourceLook]
    window: ReadWindow
    grid: Grid | Epochs | None = None
    epochs: Mapping[int, int] | None = None
    has_rows: bool = True


@dataclass(frozen=True, slots=True)
class NothingDue:
    """Certainly nothing is due. ``waiting``: what waits for the end of its interval, as a sentence."""

    waiting: str = ""
    looks: Mapping[str, SourceLook] = field(default_factory=dict)


def find_due(call: Call) -> Due | NothingDue:
    """Return what is due.

    Raises `SourceError` (66) if a source changed since it was landed, `ConfigError` (78) if it cannot be landed as
    configured.
    """
    sources = inspect_sources(call)
    if isinstance(sources, NothingDue):
        return sources
    looks, window = sources.looks, sources.window
    columns = _all_columns(call, looks)
    looks = {spec.topic: _checked(call, spec, columns[spec.topic], looks[spec.topic]) for spec in call.feed.logs}
    if sources.grid is None:
        slot = PendingLanding(call.progress.number + 1)
        return Due(looks, columns, window, (None,), (slot,) if sources.has_rows else ())
    seen: dict[str, Arrivals] = {}
    arrivals = partial(_arrivals, call, columns, looks, window, sources.grid, seen) if sources.has_rows else frozenset
    idleness = Idleness(call.feed.max_task_idle_ms, tuple(one.landed_ms for one in call.progress.deliveries.values()))
    intervals, expected = due_intervals(
        sources.grid, window, arrivals, all_of_them=call.feed.interval_end, idleness=idleness
    )
    if not sources.has_rows:
        expected = []
    if not intervals or not (expected or sources.epochs or _rises(call, window)):
        return NothingDue(_waiting(call, seen.values()), looks)
    if isinstance(sources.grid, Grid):
        looks = {
            spec.topic: _with_later(call, spec, columns[spec.topic], looks[spec.topic], window, seen.get(spec.topic))
            for spec in call.feed.logs
        }
    slots = tuple(
        PendingLanding(number, *interval) for number, interval in enumerate(expected, start=call.progress.number + 1)
    )
    return Due(looks, columns, window, tuple(intervals), slots, sources.epochs)


def inspect_sources(call: Call) -> Sources | NothingDue:
    """Inspect all sources of a feed without reading rows. Raises as `find_due` does."""
    feed, through = call.feed, call.progress.through_ms
    if all(spec.is_output for spec in feed.logs):
        return _inspect_epochs(call)
    grid = Grid(*feed.every, zone=feed.zone) if feed.every else None
    window = ReadWindow()
    if grid is not None:
        until = grid.start_of(call.request.now_ms if call.request.until_ms is None else call.request.until_ms)
        window = ReadWindow(through, until)
        if through is not None and through >= until:
            return _nothing_due(call)
    looks = {spec.topic: _look(call, spec, window) for spec in feed.logs}
    has_rows = any(look.fresh or (grid and look.rest) for look in looks.values())
    if not has_rows and not _rises(call, window):
        return _nothing_due(call, looks)
    return Sources(looks, window, grid, has_rows=has_rows)


def _inspect_epochs(call: Call) -> Sources | NothingDue:
    """Return the producer's epochs that are not landed yet."""
    looks = {spec.topic: _look(call, spec, ReadWindow()) for spec in call.feed.logs}
    epochs = {epoch.number: epoch.watermark_ms for look in looks.values() for epoch in look.epochs}
    if not epochs:
        return NothingDue()
    looks = {topic: replace(look, fresh=(), rest=look.fresh) for topic, look in looks.items()}
    return Sources(looks, ReadWindow(min(epochs), max(epochs) + 1), Epochs(), epochs)


def _arrivals(
    call: Call,
    columns: Mapping[str, LogColumns],
    looks: Mapping[str, SourceLook],
    window: ReadWindow,
    intervals: Intervals,
    seen: dict[str, Arrivals],
) -> frozenset[int | None]:
    """Return the intervals with due rows; add what each log says to ``seen``, by topic.

    Raises `DataError` (65) if no row has an arrival: without one, a first landing has no interval.
    """
    for spec in call.feed.logs:
        found = call.engine.intervals(spec, columns[spec.topic], looks[spec.topic], window, intervals)
        seen[spec.topic] = found
        if window.through_ms is None and found.fault and not found.waiting and found.starts == {None}:
            column = spec.arrived_at or spec.timestamp
            fix = f"{other_form(spec.source, column)}Fix `arrived_at: {column}`, `units:` or the source"
            message = (
                f"feed {call.feed.feed}: no row of the log {spec.topic} has a valid arrival, the first because: "
                f"{found.fault}. Nothing was landed. "
                + ("Fix the file, or the options of the source" if found.is_unreadable else fix)
            )
            raise DataError(message)
    return frozenset[int | None]().union(*(found.starts for found in seen.values()))


def _waiting(call: Call, seen: Collection[Arrivals]) -> str:
    """Return what is known to wait, as a sentence. With ``--until``, only the caller knows what it waits for."""
    nexts = [found.next_ms for found in seen if found.next_ms is not None]
    if not nexts or call.feed.every is None or call.request.until_ms is not None:
        return ""
    return waiting_rows(call.feed, sum(found.waiting for found in seen), min(nexts), call.request.now_ms)


def _nothing_due(call: Call, looks: Mapping[str, SourceLook] | None = None) -> NothingDue:
    """Return what waits. If there were no ``looks`` yet, only files are looked at: a look at a table could start Spark."""
    feed, through = call.feed, call.progress.through_ms
    if feed.every is None or through is None or call.request.until_ms is not None:
        return NothingDue("", looks or {})
    logs = [spec for spec in feed.logs if spec.source.format not in TABLE_FORMATS]
    looks = looks or {spec.topic: _look(call, spec, ReadWindow(through, through)) for spec in logs}
    later = [later_rows(call.progress.positions.get(spec.topic)) or {} for spec in logs]
    first_ms = min((first for files in later for first in files.values()), default=None)
    now_ms = call.request.now_ms
    return NothingDue(waiting_files(feed, looks, now_ms) or waiting_later(feed, first_ms, now_ms), looks)


def _position(look: SourceLook, epoch: int) -> Mapping[str, Any]:
    produced = next(produced for produced in look.epochs if produced.number == epoch)
    return {"kind": JOB, "epoch": epoch, "run": produced.run, "ledger": produced.ledger}


def _look(call: Call, spec: LogSpec, window: ReadWindow) -> SourceLook:
    """Inspect a source. If a new generation keeps landings, only rows that arrive later are due."""
    generation = call.generation
    is_rebased = generation.is_new and window.until_ms is not None and spec.topic in generation.columns
    position = None if is_rebased else call.progress.positions.get(spec.topic)
    if spec.source.format in TABLE_FORMATS:
        look = call.tables.look(spec, position, window)
    else:
        look = call.engine.look(spec.source, position)
        if window.until_ms is not None:
            look = without_finished(look, position, window.until_ms)
    return replace(look, fresh=(), rest=(*look.rest, *look.fresh)) if is_rebased else look


def _all_columns(call: Call, looks: Mapping[str, SourceLook]) -> dict[str, LogColumns]:
    """Return the columns of each log. What is wrong with any of them is said at once, and before Spark is started."""
    known, growing = call.generation.columns, call.generation.growing
    new = [spec for spec in call.feed.logs if spec.topic not in known or spec.topic in growing]
    wrong = [call.engine.wrong_columns(spec, looks[spec.topic]) for spec in new]
    raise_all(call.feed.feed, [error for error in wrong if error is not None])
    found = {**known, **{spec.topic: call.engine.columns(spec, looks[spec.topic]) for spec in new}}
    grew = {spec.topic: grown(spec, known[spec.topic], found[spec.topic]) for spec in new if spec.topic in growing}
    return {**found, **grew}


def _checked(call: Call, spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceLook:
    """Return a look whose position records the fields of all landed files. Raises `SourceError` (66) for other fields."""
    before = landed_fields(call.progress.positions.get(spec.topic))
    is_landed = not look.fresh and not spec.is_output and not (look.rest and call.generation.is_new)
    found = before
    if not is_landed:
        fields = call.engine.fields(spec, columns, look)
        if spec.source.format in TABLE_FORMATS and spec.topic in call.generation.columns:
            before = LandedFields(tuple(sorted(fields.known)))  # a table has one schema for all rows
        found = check_fields(spec, columns, fields, before, landings=call.progress.number)
    if found is None or spec.source.format in TABLE_FORMATS:
        return look
    return replace(look, position={**look.position, "fields": found.as_json()})


def _with_later(
    call: Call, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, seen: Arrivals | None
) -> SourceLook:
    """Return a look whose position records which files will still hold rows after this call."""
    if spec.source.format in TABLE_FORMATS or window.until_ms is None:
        return look
    none_waits = not (look.fresh or look.rest) or (seen is not None and not seen.waiting)
    found = {} if none_waits else call.engine.later(spec, columns, look, window.until_ms)
    return with_later(look, call.progress.positions.get(spec.topic), found)


def _rises(call: Call, window: ReadWindow) -> bool:
    """Return whether the watermark rises without rows: it is declared, or an idle partition times out (D16).

    Landing time only ends waiting and never starts it, so the last due interval decides.
    """
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


def watermark_policy(feed: FeedSpec) -> WatermarkPolicy:
    """Return the watermark policy of a feed."""
    return WatermarkPolicy(feed.max_task_idle_ms, feed.lag_ms, feed.interval_end)
