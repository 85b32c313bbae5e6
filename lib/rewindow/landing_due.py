"""What of a feed's sources is due: looked at before anything is planned, so that a call with nothing to do leaves no row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rewindow.core.land import JOB, Intervals, LogColumns, LogSpec, ReadWindow, Slot, SourceLook
from rewindow.landing_intervals import Epochs, Grid, due_intervals
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
    epochs: Mapping[int, int] | None = None
    """Of a feed of another job's outputs: its new epochs and their watermarks. Then the intervals are epochs."""

    def positions(self, interval: Interval | None) -> dict[str, Mapping[str, Any]]:
        """Return where the sources are landed through, after the landing of an interval."""
        if self.epochs is None or interval is None:
            return {topic: look.position for topic, look in self.looks.items()}
        return {topic: _position(look, interval[0]) for topic, look in self.looks.items()}


def find_due(call: Call) -> Due | None:
    """Return what is due, or None if there is surely nothing.

    Raises `SourceError` (66) if a source is not what was landed, `ConfigError` (78) if it cannot be landed so.
    """
    feed, progress = call.feed, call.progress
    if all(spec.is_output for spec in feed.logs):
        return _find_due_epochs(call)
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
    if grid is None:
        return Due(looks, columns, window, (None,), (Slot(progress.number + 1),))
    arrivals = partial(_arrivals, call, columns, looks, window, grid)
    intervals, expected = due_intervals(grid, window, arrivals, all_of_them=feed.interval_end)
    return Due(looks, columns, window, tuple(intervals), _slots(call, expected)) if intervals else None


def _find_due_epochs(call: Call) -> Due | None:
    """Return the epochs that the producer has and the feed has not."""
    specs = call.feed.logs
    looks = {spec.topic: _look(call, spec, ReadWindow()) for spec in specs}
    epochs = {epoch.number: epoch.watermark_ms for look in looks.values() for epoch in look.epochs}
    if not epochs:
        return None
    window = ReadWindow(min(epochs), max(epochs) + 1)
    columns = {spec.topic: _columns(call, spec, looks[spec.topic]) for spec in specs}
    looks = {topic: replace(look, fresh=(), rest=look.fresh) for topic, look in looks.items()}
    arrivals = partial(_arrivals, call, columns, looks, window, Epochs())
    intervals, expected = due_intervals(Epochs(), window, arrivals, all_of_them=False)
    return Due(looks, columns, window, tuple(intervals), _slots(call, expected), epochs)


def _arrivals(
    call: Call,
    columns: Mapping[str, LogColumns],
    looks: Mapping[str, SourceLook],
    window: ReadWindow,
    intervals: Intervals,
) -> set[int | None]:
    engine = call.engine
    found = (
        engine.intervals(spec, columns[spec.topic], looks[spec.topic], window, intervals) for spec in call.feed.logs
    )
    return set().union(*found)


def _slots(call: Call, expected: Sequence[Interval]) -> tuple[Slot, ...]:
    first = call.progress.number + 1
    return tuple(Slot(number, *interval) for number, interval in enumerate(expected, start=first))


def _position(look: SourceLook, epoch: int) -> Mapping[str, Any]:
    run = next(produced.run for produced in look.epochs if produced.number == epoch)
    return {"kind": JOB, "epoch": epoch, "run": run}


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
