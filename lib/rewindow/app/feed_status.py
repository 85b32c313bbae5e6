"""Find out whether a feed's sources have new rows, and whether `land` would refuse them.

Of rows, only arrival times are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rewindow.app.feed_landing import extractor_versions, naming_kept
from rewindow.app.open_project import OpenProject
from rewindow.config.feed import TABLE_FORMATS, feed_spec
from rewindow.config.load import load_feed
from rewindow.contracts.ingest import FeedSpec, LogColumns, LogSpec, ReadWindow, SourceLook
from rewindow.contracts.source_fields import SMALL_JSON_BYTES
from rewindow.contracts.text_options import JSON, TEXT_FORMATS
from rewindow.control.health.feed_health import FeedHealth
from rewindow.control.health.phrases import counted
from rewindow.control.health.waiting_sources import LATER_ROWS, UNKNOWN_ROWS, new_in_sources, waiting_sources
from rewindow.control.ingest.discover import epoch_times
from rewindow.control.ingest.feed_progress import Progress, fold_progress, with_landed_grid
from rewindow.control.ingest.generations import mistakes, next_generation
from rewindow.control.ingest.intervals import Grid, grid_of, later_rows, without_finished
from rewindow.control.ingest.landed_fields import LandedFields, check_fields, landed_fields, raise_all
from rewindow.control.ingest.landing_report import changed_extractors
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import ConfigError, DataError, ReasonMessage, SourceError, naming


def look_at_feed(project: OpenProject, name: str, rows: Sequence[LedgerRow], now_ms: int) -> FeedHealth:
    """Return the status of a feed from its sources and the rows of its landing ledger.

    Raises `ConfigError` (78) for an invalid file, `CheckpointError` (76) if the ledger was deleted, `SourceError` (66) if landed
    files are gone, the definition has changed, or new files have other columns.
    """
    config = load_feed(project.root, name)
    spec = feed_spec(config, project_root=str(project.root), warehouse=project.warehouse)
    progress = fold_progress(rows)
    spec = with_landed_grid(spec, progress)
    if progress.feed is None:
        project.feed_tables.check_claims(name, [log.topic for log in spec.logs])
    is_landing = any(project.is_alive(attempt) for attempt in progress.unfinished)
    health = partial(FeedHealth, progress, is_landing=is_landing, spec=spec, every=str(config.landing.every or ""))
    grid = grid_of(spec) if spec.every else None
    window = ReadWindow(progress.through_ms, grid.start_of(now_ms)) if grid else ReadWindow()
    # `next_generation` raises the error if the definition has changed.
    columns = (
        next_generation(spec, progress, mistakes=_mistakes(spec, progress)).columns if progress.feed is not None else {}
    )
    try:
        with naming_kept(project.tables, config):
            looks = _looks(project, spec, progress, window)
    except SourceError as error:
        if progress.feed is not None:
            raise
        return health(is_due=False, details=[ReasonMessage.of(error)])
    unchecked = next_columns(spec, columns, looks, progress)
    rowless = [name for look in looks.values() for name in look.empty[:1]]
    looks, without_rows = _with_rows(spec, looks)
    empty = [ReasonMessage("file-without-rows", "{file} has no rows", file=name) for name in (*rowless, *without_rows)]
    files = None
    if grid is not None:
        # The arrival times in the files are read, unless only Spark can read them.
        files = _Files(spec, columns, looks, progress, window, grid, project.target.most_landed_here)
        if spec.interval_end and progress.through_ms is not None:
            health = partial(health, behind=[*files.behind(progress.through_ms)])
    is_complete = grid is None or progress.through_ms is None or progress.through_ms < (window.until_ms or 0)
    if not is_complete:
        waiting = waiting_sources(spec, looks, progress.positions, now_ms)
        return health(is_due=False, details=[waiting] if waiting else ())
    # For a job's output, `fresh` contains all files, so only new epochs show whether something is due. `land` skips an epoch
    # that has no rows and does not advance the watermark.
    fresh = sum(len(looks[log.topic].fresh) for log in spec.logs if not log.is_output)
    times = epoch_times(looks.values())
    epochs = {
        epoch.number
        for look in looks.values()
        for epoch in look.epochs
        if epoch.may_have_rows or times[epoch.number].complete_ms > progress.watermark_ms
    }
    is_due = bool(fresh or epochs or (spec.interval_end and progress.feed))
    changed = changed_extractors(progress.feed, extractor_versions(config, project.root))
    details = [*new_in_sources(fresh, epochs), *unchecked, *changed]
    if files is not None:
        # New files may have only rows of the current interval. Landed files may have rows of later intervals. The last landing
        # recorded which landed files have such rows (ADR-122). An older version recorded nothing, so after its landings, the
        # arrival times in landed files are read, too.
        if fresh and not epochs and not spec.interval_end and progress.feed is not None:
            is_due = files.new_ones_may_be_due()
        if not is_due:
            is_due, detail = files.landed_ones_are_due()
            detail = detail or waiting_sources(spec, looks, progress.positions, now_ms)
            details = [detail] if detail else []
    return health(is_due=is_due, details=[*details, *empty])


def _with_rows(spec: FeedSpec, looks: Mapping[str, SourceLook]) -> tuple[dict[str, SourceLook], list[str]]:
    """Remove a log's new Parquet files from ``looks`` if none of them has rows, because `land` would land nothing.

    Also return the first file of each such log.
    """
    from rewindow.engine.worker.file_fields import has_rows  # noqa: PLC0415 - loads pyarrow

    with_rows, names = dict(looks), []
    for log in spec.logs:
        if log.source.format != "parquet":  # files of other formats are found only if they have rows
            continue
        fresh = looks[log.topic].fresh
        if fresh and not any(has_rows(log.source, piece.path) for piece in fresh):
            with_rows[log.topic] = replace(looks[log.topic], fresh=())
            names.append(fresh[0].name)
    return with_rows, names


def _mistakes(spec: FeedSpec, progress: Progress) -> Iterator[str]:
    from rewindow.engine.worker.landing.arrow_landing import wrong_columns  # noqa: PLC0415 - loads pyarrow
    from rewindow.engine.worker.source_files import look_at_files  # noqa: PLC0415

    yield from mistakes(spec, progress, partial(look_at_files, to_land=False), wrong_columns)


def _looks(project: OpenProject, spec: FeedSpec, progress: Progress, window: ReadWindow) -> dict[str, SourceLook]:
    from rewindow.engine.worker.source_files import look_at_files  # noqa: PLC0415 - loads pyarrow

    looks = {}
    for log in spec.logs:
        position = progress.positions.get(log.topic)
        is_table = log.source.format in TABLE_FORMATS
        looks[log.topic] = (
            project.feed_tables.look(log, position, window)
            if is_table
            else look_at_files(log.source, position, to_land=False)
        )
    return looks


@dataclass(frozen=True, slots=True)
class _Files:
    """Checks whether the files of a feed have rows of a complete interval of arrival.

    Sources with more than ``most_rows`` rows are not read. For these, only `land` can find out.
    """

    spec: FeedSpec
    columns: Mapping[str, LogColumns]
    looks: Mapping[str, SourceLook]
    progress: Progress
    window: ReadWindow
    grid: Grid
    most_rows: int

    @property
    def until_ms(self) -> int:
        return self.window.until_ms or 0

    def new_ones_may_be_due(self) -> bool:
        """Return whether new files may have rows of a complete interval.

        If this process cannot read the files, return true.
        """
        for log in (spec for spec in self.spec.logs if self.looks[spec.topic].fresh):
            if log.source.format in TABLE_FORMATS:
                return True
            look = without_finished(self.looks[log.topic], self.progress.positions.get(log.topic), self.until_ms)
            try:
                if self._hold_due_rows(log, look) is not False:
                    return True
            except SourceError:  # `land` reports the error of the files
                return True
        return False

    def behind(self, through_ms: int) -> Iterator[str]:
        """Yield the logs whose new files certainly have rows that arrived before the landed intervals end (``through_ms``)."""
        for log in (spec for spec in self.spec.logs if self.looks[spec.topic].fresh):
            # Rows of a table arrive with the table's commits, so none of them arrives in an interval that is already landed.
            if log.source.format not in TABLE_FORMATS:
                with suppress(SourceError):  # `land` reports the error of the files
                    if self._hold_due_rows(log, replace(self.looks[log.topic], rest=()), through_ms):
                        yield log.topic

    def landed_ones_are_due(self) -> tuple[bool, ReasonMessage | None]:
        """Return whether landed files have rows of a complete interval.

        Also return a message if they do, or if it is unknown.
        """
        unknown = None
        for log in self.spec.logs:
            if log.source.format in TABLE_FORMATS or log.topic not in self.progress.positions:
                continue
            later = later_rows(self.progress.positions[log.topic])
            if later is not None:
                is_due: bool | None = any(first < self.until_ms for first in later.values())
            else:
                is_due = self._hold_due_rows(log, self.looks[log.topic])
            if is_due:
                return True, LATER_ROWS
            unknown = UNKNOWN_ROWS if is_due is None else unknown
        return False, unknown

    def _hold_due_rows(self, log: LogSpec, look: SourceLook, until_ms: int | None = None) -> bool | None:
        """Return whether files have rows of an interval that is complete by ``until_ms``; None if only `land` can find out."""
        from rewindow.engine.worker.landing.arrow_landing import open_due  # noqa: PLC0415 - loads pyarrow
        from rewindow.engine.worker.landing.source_types import UnsuitableError  # noqa: PLC0415
        from rewindow.engine.worker.landing.text_source import TextFiles, about_rows  # noqa: PLC0415

        columns = self.columns[log.topic]
        try:
            if log.source.format in TEXT_FORMATS and about_rows((*look.rest, *look.fresh)) > self.most_rows:
                return None
            source = open_due(log, columns, look, self.window, TextFiles(), 1)
            return (
                None
                if source.rows > self.most_rows
                else bool(source.arrivals(self.grid, until_ms or self.until_ms).starts)
            )
        except (UnsuitableError, DataError, ConfigError):  # `land` reports rows that cannot be read
            return None


def next_columns(
    feed: FeedSpec, columns: Mapping[str, LogColumns], looks: Mapping[str, SourceLook], progress: Progress
) -> list[ReasonMessage]:
    """Check the columns of new files. Return messages about columns that were not compared.

    Raises `SourceError` (66) for new files that `land` would refuse, `ConfigError` (78) if a first landing would lack columns.
    """
    from rewindow.engine.worker.landing.arrow_landing import wrong_columns  # noqa: PLC0415 - only sources without Spark need it

    unknown: list[ReasonMessage] = []
    with naming(FEED=feed.feed):
        new = [spec for spec in feed.logs if spec.topic not in columns and not spec.is_output]
        errors = [wrong_columns(spec, looks[spec.topic]) for spec in new]
        raise_all(feed.feed, [error for error in errors if error is not None])
        for spec in feed.logs:
            if spec.topic in columns and not spec.is_output and looks[spec.topic].fresh:
                unknown += _compared(spec, columns[spec.topic], looks[spec.topic], progress)
    return unknown


def _compared(spec: LogSpec, columns: LogColumns, look: SourceLook, progress: Progress) -> Iterator[ReasonMessage]:
    """Compare the columns of new files with the landed columns, as `land` does. Yield what was not compared."""
    from rewindow.engine.worker.file_fields import stored_fields  # noqa: PLC0415 - loads pyarrow
    from rewindow.engine.worker.landing.text_source import TextFiles, text_fields  # noqa: PLC0415

    before = landed_fields(progress.positions.get(spec.topic))
    if spec.source.format != JSON:
        fields = stored_fields(spec, columns, look)
    elif sum(Path(piece.path).stat().st_size for piece in look.fresh) <= SMALL_JSON_BYTES:
        fields = text_fields(spec, columns, look, TextFiles())
    else:
        files = counted(len(look.fresh), "json file")
        yield ReasonMessage("fields-not-compared", "only `land` compares the fields of {files}", files=files)
        return
    if spec.source.format in TABLE_FORMATS:
        before = LandedFields(tuple(sorted(fields.known)))  # a table has one schema for all rows
    check_fields(spec, columns, fields, before, landings=progress.number)
