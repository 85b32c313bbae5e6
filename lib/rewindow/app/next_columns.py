"""Whether the next landing would refuse new files because of their columns, as far as headers and footers tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import FeedSpec, LogColumns, LogSpec, SourceLook
from rewindow.contracts.source_fields import SMALL_JSON_BYTES
from rewindow.contracts.text_options import JSON
from rewindow.control.ingest.fields import LandedFields, check_fields, landed_fields
from rewindow.control.ingest.problems import raise_all
from rewindow.control.ingest.progress import Progress
from rewindow.errors import naming
from rewindow.report.text import counted


def next_columns(
    feed: FeedSpec, columns: Mapping[str, LogColumns], looks: Mapping[str, SourceLook], progress: Progress
) -> list[str]:
    """Return what was not looked at, as sentences.

    Raises `SourceError` (66) for new files that `land` would refuse, `ConfigError` (78) for columns that a first landing lacks.
    """
    from rewindow.engine.worker.landing.named_columns import wrong_columns  # noqa: PLC0415 - loads pyarrow

    unknown: list[str] = []
    with naming(FEED=feed.feed):
        new = [spec for spec in feed.logs if spec.topic not in columns and not spec.is_output]
        found = [wrong_columns(spec, looks[spec.topic]) for spec in new]
        raise_all(feed.feed, [error for error in found if error is not None])
        for spec in feed.logs:
            if spec.topic in columns and not spec.is_output and looks[spec.topic].fresh:
                unknown += _compared(spec, columns[spec.topic], looks[spec.topic], progress)
    return unknown


def _compared(spec: LogSpec, columns: LogColumns, look: SourceLook, progress: Progress) -> Iterator[str]:
    """Compare the columns of new files with the landed ones, as `land` does. Yield what was not compared."""
    from rewindow.engine.worker.file_fields import stored_fields  # noqa: PLC0415 - loads pyarrow
    from rewindow.engine.worker.landing.text_source import TextFiles, text_fields  # noqa: PLC0415

    before = landed_fields(progress.positions.get(spec.topic))
    if spec.source.format != JSON:
        fields = stored_fields(spec, columns, look)
    elif sum(Path(piece.path).stat().st_size for piece in look.fresh) <= SMALL_JSON_BYTES:
        fields = text_fields(spec, columns, look, TextFiles())
    else:
        yield f"only `land` compares the fields of {counted(len(look.fresh), 'json file')}"
        return
    if spec.source.format in TABLE_FORMATS:
        before = LandedFields(tuple(sorted(fields.known)))  # a table has one schema for all rows
    check_fields(spec, columns, fields, before, landings=progress.number)
