"""Find quotes within CSV values that a backslash escapes, as Spark writes them, where they are read as doubled (RFC 4180)."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pyarrow as pa

from rewindow.contracts.ingest import SourceSpec
from rewindow.engine.worker.csv_files import encoding_of, lower_options, separator_of


def escaped_quote(path: Path, source: SourceSpec) -> str | None:
    """Return the first line of a file with such a quote, and what to do; None without one, or if the source states an escape.

    A backslash before the quote that ends a value is part of the value, as in a Windows folder.
    """
    options = lower_options(source)
    quote = re.escape(options.get("quote", '"'))
    if source.format != "csv" or not quote or "escape" in options:
        return None
    separator = re.escape(separator_of(options))
    inside = re.compile(rf"(?:^|{separator}){quote}[^{quote}]*\\{quote}(?!\s*(?:{separator}|$|{quote}))")
    with pa.input_stream(str(path)) as raw, io.TextIOWrapper(raw, encoding_of(source)) as text:
        line = next((number for number, one in enumerate(text, start=1) if inside.search(one)), None)
    if line is None:
        return None
    return (
        f"line {line}: a backslash is before a quote within a value. If it escapes the quote in all files, add "
        '`options: {escape: "\\\\"}` to the source, otherwise double the quote (`""`)'
    )
