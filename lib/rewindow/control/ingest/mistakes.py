"""What is wrong with a changed definition of a feed, so that it could not be landed: a path without files, a misspelt name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import FeedSpec, LogSpec, SourceLook, SourceSpec
from rewindow.control.ingest.progress import Progress
from rewindow.control.ingest.source_origins import position_of
from rewindow.errors import LandedFileError, RewindowError

Look = Callable[[SourceSpec, Mapping[str, Any] | None], SourceLook]
"""Inspects a source of files, relative to the landed position."""
WrongColumns = Callable[[LogSpec, SourceLook], RewindowError | None]
"""Returns what is wrong with the columns that a log's configuration names, as far as headers and footers tell."""


def mistakes(feed: FeedSpec, progress: Progress, look: Look, wrong_columns: WrongColumns) -> Iterator[str]:
    """Yield what is wrong with each log of files, as far as it can be told without reading rows."""
    for spec in feed.logs:
        if spec.source.format in TABLE_FORMATS:
            continue
        landed = progress.declared.get("logs", {}).get(spec.topic, {}).get("source", {}).get("name")
        position = progress.positions.get(spec.topic) if landed == spec.source.name else None
        position = position_of(position, spec.source.format)  # it may have been the name of a table
        try:
            wrong = wrong_columns(spec, look(spec.source, position))
        except LandedFileError:  # a new generation could be landed
            continue
        except RewindowError as error:
            wrong = error
        if wrong is not None:
            yield str(wrong)
