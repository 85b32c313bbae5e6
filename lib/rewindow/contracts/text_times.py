"""The form of times in text files, which ``timestampFormat`` states."""

from __future__ import annotations

from rewindow.contracts.ingest import SourceSpec

_TEXTS = ("csv", "json")
"""Formats in which a time is a text, in whatever form."""


def form_of_times(source: SourceSpec) -> str | None:
    """Return the form of times in text files, as the option ``timestampFormat`` states it; None for ISO 8601."""
    given = {name.lower(): form for name, form in source.options.items()}
    return given.get("timestampformat") if source.format in _TEXTS else None


def other_form(source: SourceSpec, column: str) -> str:
    """Return what to do, as the beginning of a message, if the times of a text file have another form; else ``""``."""
    if source.format not in _TEXTS:
        return ""
    if (form := form_of_times(source)) is not None:
        return f"Times of {column} have the form `timestampFormat: {form}`, or are like 2026-01-05T10:00:00Z. "
    option = '`options: {timestampFormat: "dd.MM.yyyy HH:mm"}`'
    return f"If {column} has times in another form than 2026-01-05T10:00:00Z, give it to the source, like {option}. "
