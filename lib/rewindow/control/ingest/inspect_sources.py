"""Inspect a feed's sources without reading rows: what is new in them, and which intervals of arrival are complete.

A log may get another source while landings are kept. With `every`, time tells what is new: what arrives after the last kept
interval. Without it, only the landed position does. It holds for landed files that are in another folder now, and for a table
that was moved. In any other source all rows would be new, also those that the kept landings have (ADR-142).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import JOB, EpochTimes, FeedSpec, LogSpec, ReadWindow, SourceLook
from rewindow.control.health.feed_health import waiting_refused, waiting_sources, waiting_unread
from rewindow.control.ingest.generations import FILES, is_same_origin, kind_of, position_of
from rewindow.control.ingest.intervals import Epochs, Grid, grid_of, without_finished
from rewindow.control.ingest.protocols import Call
from rewindow.control.ingest.watermarks import WatermarkPolicy, decide_watermark
from rewindow.errors import ConfigError, LandedFileError, ReasonMessage, StorageError


@dataclass(frozen=True, slots=True)
class NothingDue:
    """Certainly nothing is due. ``waiting``: what waits for the end of its interval."""

    waiting: ReasonMessage | None = None
    inspected: Mapping[str, SourceLook] = field(default_factory=dict)


def inspect_sources(call: Call) -> _Sources | NothingDue:
    """Inspect all sources of a feed without reading rows. Raises as `find_due` does."""
    if all(spec.is_output for spec in call.feed.logs):
        return _inspect_epochs(call)
    grid, window = complete_intervals(call)
    if window.until_ms is not None and window.through_ms is not None and window.through_ms >= window.until_ms:
        return _nothing_due(call)
    inspected = {spec.topic: look_at(call, spec, window) for spec in call.feed.logs}
    has_rows = any(look.fresh or (grid and look.rest) for look in inspected.values())
    if not has_rows and not rises(call, window):
        return _nothing_due(call, inspected)
    return _Sources(inspected, window, grid, has_rows=has_rows)


def epoch_times(inspected: Iterable[SourceLook]) -> dict[int, EpochTimes]:
    """Return the times of a producer's new epochs. An epoch is as late as the output that is held back longest."""
    times: dict[int, EpochTimes] = {}
    for look in inspected:
        for epoch in look.epochs:
            before = times.get(epoch.number, epoch.times)
            times[epoch.number] = EpochTimes(epoch.watermark_ms, max(before.held_ms, epoch.held_ms))
    return times


def complete_intervals(call: Call) -> tuple[Grid | None, ReadWindow]:
    """Return the intervals of arrival of a feed, and those that are complete; None without intervals."""
    feed = call.feed
    if not feed.every:
        return None, ReadWindow()
    grid = grid_of(feed)
    until = grid.start_of(call.request.now_ms if call.request.until_ms is None else call.request.until_ms)
    return grid, ReadWindow(call.progress.through_ms, until)


def look_at(call: Call, spec: LogSpec, window: ReadWindow) -> SourceLook:
    """Inspect a source. If a new generation keeps landings, only rows that arrive later are due.

    Raises `ConfigError` (78) if it cannot be known which of them are new: see `_check_goes_on`.
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


def rises(call: Call, window: ReadWindow) -> bool:
    """Return whether the watermark rises without rows: it is declared, or an idle partition times out (D16)."""
    # Landing time only ends waiting and never starts it, so the last due interval decides.
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


@dataclass(frozen=True, slots=True)
class _Sources:
    """The inspected sources by topic, and the window of arrival.

    Without ``has_rows`` no rows can be due, and only the watermark rises.
    """

    inspected: Mapping[str, SourceLook]
    window: ReadWindow
    grid: Grid | Epochs | None = None
    epochs: Mapping[int, EpochTimes] | None = None
    has_rows: bool = True


def _inspect_epochs(call: Call) -> _Sources | NothingDue:
    """Return the producer's epochs that are not landed yet."""
    inspected = {spec.topic: look_at(call, spec, ReadWindow()) for spec in call.feed.logs}
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
    """Return what waits; without ``inspected``, only what waits in files."""
    feed, through, until_ms = call.feed, call.progress.through_ms, call.request.until_ms
    if feed.every is None or through is None:
        return NothingDue(None, inspected or {})
    # To inspect a table could start Spark.
    logs = [spec for spec in feed.logs if spec.source.format not in TABLE_FORMATS]
    # Landed files that are gone or have changed are refused, even if all intervals that were asked for are landed.
    try:
        inspected = inspected or {spec.topic: look_at(call, spec, ReadWindow(through, through)) for spec in logs}
    except StorageError as error:
        # A new file may not be complete yet, and its rows are not due.
        if until_ms is None:
            raise
        return NothingDue(waiting_refused(feed, until_ms, error))
    if until_ms is not None:
        return NothingDue(waiting_unread(feed, inspected, until_ms), inspected)
    return NothingDue(waiting_sources(feed, inspected, call.progress.positions, call.request.now_ms), inspected)


def _check_goes_on(call: Call, spec: LogSpec, position: Mapping[str, Any], window: ReadWindow) -> None:
    """Raise `ConfigError` (78) if a log of a new generation has another source, in which its landed position means nothing."""
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
