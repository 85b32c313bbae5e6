"""What of a feed's sources is due: looked at before anything is planned, so that a call with nothing to do leaves no row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewindow.core.land import LogColumns, LogSpec, ReadWindow, Slot, SourceLook
from rewindow.landing_intervals import Grid, due_intervals
from rewindow.landing_seams import Call
from rewindow.landing_spec import TABLE_FORMATS

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be landed: the looks and columns by topic, the window of arrival, and the intervals to go through.

    Without ``every`` the one interval is None. ``slots``: which landings are expected, under these numbers; what comes
    of the rows decides (`plan.decide_landings`).
    """

    looks: Mapping[str, SourceLook]
    columns: Mapping[str, LogColumns]
    window: ReadWindow
    intervals: tuple[Interval | None, ...]
    slots: tuple[Slot, ...]


def find_due(call: Call) -> Due | None:
    """Return what is due, or None if there is surely nothing.

    Raises `SourceError` (66) if a source is not what was landed, `ConfigError` (78) if it cannot be landed so.
    """
    feed, progress = call.feed, call.progress
    grid = Grid(*feed.every, zone=feed.zone) if feed.every else None
    window = ReadWindow()
    if grid is not None:
        asked = call.request.now_ms if call.request.until_ms is None else call.request.until_ms
        window = ReadWindow(progress.through_ms, grid.start_of(asked))
        if progress.through_ms is not None and progress.through_ms >= grid.start_of(asked):
            return None
    looks = {spec.topic: _look(call, spec, window) for spec in feed.logs}
    has_rows = any(look.fresh or (grid and look.rest) for look in looks.values())
    if not has_rows and not feed.interval_end and not _declares_more(call):
        return None
    columns = {spec.topic: _columns(call, spec, looks[spec.topic]) for spec in feed.logs}
    first = progress.number + 1
    if grid is None:
        return Due(looks, columns, window, (None,), (Slot(first),))

    def arrivals() -> set[int | None]:
        found = (
            call.engine.intervals(spec, columns[spec.topic], looks[spec.topic], window, grid) for spec in feed.logs
        )
        return set().union(*found)

    intervals, expected = due_intervals(grid, window, arrivals, all_of_them=feed.interval_end)
    slots = tuple(Slot(number, *interval) for number, interval in enumerate(expected, start=first))
    return Due(looks, columns, window, tuple(intervals), slots) if intervals else None


def _look(call: Call, spec: LogSpec, window: ReadWindow) -> SourceLook:
    """Look at a source. Where landings are kept, what it holds now is taken for known: only later arrivals are due."""
    generation = call.generation
    is_rebased = generation.is_new and window.until_ms is not None and spec.topic in generation.columns
    position = None if is_rebased else call.progress.positions.get(spec.topic)
    if spec.source.format in TABLE_FORMATS:
        look = call.tables.look(spec, position, window)
    else:
        look = call.engine.look(spec.source, position)
    return replace(look, fresh=(), rest=(*look.rest, *look.fresh)) if is_rebased else look


def _columns(call: Call, spec: LogSpec, look: SourceLook) -> LogColumns:
    known = call.generation.columns.get(spec.topic)
    return known if known is not None else call.engine.columns(spec, look)


def _declares_more(call: Call) -> bool:
    declared = call.request.watermark_ms
    return declared is not None and declared > call.progress.watermark_ms
