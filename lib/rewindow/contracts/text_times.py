"""The form of times in text files, for messages."""

from __future__ import annotations

from rewindow.contracts.ingest import SourceSpec
from rewindow.contracts.text_options import TEXT_FORMATS, text_options


def other_form(source: SourceSpec, column: str) -> str:
    """Return what to do, as the beginning of a message, if the times of a text file have another form; else ``""``."""
    if source.format not in TEXT_FORMATS:
        return ""
    options = text_options(source.format, source.options)
    pattern = options.by_column.get(column) or options.time
    if pattern is not None:
        return f"Times of {column} have the form {pattern.pattern!r} of `time_format`. "
    option = '`options: {time_format: "dd.MM.yyyy HH:mm"}`'
    return f"If {column} has times in another form than 2026-01-05T10:00:00Z, give it to the source, like {option}. "
