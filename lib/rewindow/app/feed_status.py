"""Whether a feed's sources have something new, without reading their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewindow.app.project import Project
from rewindow.config.feed_spec import TABLE_FORMATS, feed_spec
from rewindow.config.load import load_feed
from rewindow.contracts.ingest import FeedSpec, ReadWindow, SourceLook
from rewindow.control.ingest.generations import next_generation
from rewindow.control.ingest.intervals import Grid
from rewindow.control.ingest.progress import Progress, fold_progress
from rewindow.control.ingest.waiting import waiting_files
from rewindow.control.plan.branches import LedgerRow
from rewindow.errors import SourceError
from rewindow.report.text import counted


@dataclass(frozen=True, slots=True)
class FeedLook:
    """What a look at a feed's ledger and sources found."""

    progress: Progress
    is_due: bool
    is_landing: bool
    detail: str = ""


def look_at_feed(project: Project, name: str, rows: Sequence[LedgerRow], now_ms: int) -> FeedLook:
    """Look at the sources of a feed, given the rows of its landing ledger.

    With intervals of arrival, files that are landed in part may hold rows of later intervals: only `land` reads them.
    Raises `ConfigError` (78) for an invalid file, `SourceError` (66) if landed files are gone or the definition has changed.
    """
    config = load_feed(project.root, name)
    spec = feed_spec(config, project_root=str(project.root), warehouse=project.warehouse)
    progress = fold_progress(rows)
    is_landing = any(project.is_alive(attempt) for attempt in progress.unfinished)
    grid = Grid(*spec.every, zone=spec.zone) if spec.every else None
    window = ReadWindow(progress.through_ms, grid.start_of(now_ms)) if grid else ReadWindow()
    if progress.feed is not None:
        next_generation(spec, progress)
    try:
        looks = _looks(project, spec, progress, window)
    except SourceError as error:
        if progress.feed is not None:
            raise
        return FeedLook(progress, is_due=False, is_landing=is_landing, detail=str(error))
    is_complete = grid is None or progress.through_ms is None or progress.through_ms < (window.until_ms or 0)
    if not is_complete:
        return FeedLook(progress, is_due=False, is_landing=is_landing, detail=waiting_files(spec, looks, now_ms))
    # Of a job's output all files are named, and its new epochs tell.
    fresh = sum(len(looks[log.topic].fresh) for log in spec.logs if not log.is_output)
    is_due = bool(fresh or any(look.epochs for look in looks.values()) or (spec.interval_end and progress.feed))
    return FeedLook(progress, is_due, is_landing, _detail(fresh, looks))


def _looks(project: Project, spec: FeedSpec, progress: Progress, window: ReadWindow) -> dict[str, SourceLook]:
    from rewindow.engine.worker.source_files import look_at_files  # noqa: PLC0415 - loads pyarrow

    found = {}
    for log in spec.logs:
        position = progress.positions.get(log.topic)
        is_table = log.source.format in TABLE_FORMATS
        found[log.topic] = (
            project.feed_tables.look(log, position, window) if is_table else look_at_files(log.source, position)
        )
    return found


def _detail(fresh: int, looks: Mapping[str, SourceLook]) -> str:
    if fresh:
        return "1 new file" if fresh == 1 else f"{fresh:,} new files"
    epochs = {epoch.number for look in looks.values() for epoch in look.epochs}
    return f"{counted(len(epochs), 'new epoch')} of its job" if epochs else ""
