"""Find csv lines with a value in quotes that does not end in its line.

Without ``multiLine``, Spark ends it there, and takes the next line for a row of its own: a value would be cut short, and its rest
could be a record that nobody wrote.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogSpec, SourceLook, SourceSpec
from rewindow.engine.spark.source_texts import TEXT, first_fault
from rewindow.engine.spark.stated_encoding import FIX, NOT_UTF_8, stated_utf_8
from rewindow.engine.worker.csv_files import doubled_quotes, is_multi_line, lower_options, separator_of
from rewindow.errors import DataError

_OPEN: Final = "a value in quotes does not end in its line"
_CLOSE: Final = (
    "If it goes on in the next line, add `options: {multiLine: true}` to the source. If quotes mean nothing in its files, add "
    "`options: {quote: ''}`. Otherwise fix the file"
)


def check_closed_quotes(spark: SparkSession, spec: LogSpec, look: SourceLook) -> None:
    """Raise `DataError` (65) for the first such line in the files to land, or one that is no UTF-8, as its source says."""
    options = lower_options(spec.source)
    faults = dict(stated_utf_8(spec.source))
    if options.get("quote", '"') and not is_multi_line(options):
        quoted, begun = _patterns(spec.source)
        text = F.col(TEXT)
        is_open = F.regexp_replace(text, quoted, "$1").rlike(begun)
        if comment := options.get("comment"):
            is_open &= ~text.startswith(comment)
        faults[_OPEN] = is_open
    found = first_fault(spark, spec.source, look.fresh or look.rest, faults)
    if found is not None:
        fault, where, line = found
        message = (
            f"log {spec.topic}: {where}: {fault}: {line}. Nothing was landed. {FIX if fault == NOT_UTF_8 else _CLOSE}"
        )
        raise DataError(message)


def _patterns(source: SourceSpec) -> tuple[str, str]:
    """Return the pattern of a value in quotes with what is before it, and that of a value that begins with a quote."""
    options = lower_options(source)
    quote, separator = options.get("quote", '"'), separator_of(options)
    escape = options.get("escape") or doubled_quotes(options).get("escape", quote)
    q, e = re.escape(quote), re.escape(escape)
    blanks = r"\s*" if options.get("ignoreleadingwhitespace", "false").lower() == "true" else ""
    begin = f"(^\ufeff?|{re.escape(separator)}){blanks}"
    # No part may give back what it took: a quote that another one escapes ends nothing, and long values need no stack.
    inside = f"[^{q}]*+(?:{q}{q}[^{q}]*+)*+" if escape == quote else f"[^{q}{e}]*+(?:{e}.[^{q}{e}]*+)*+"
    return f"{begin}{q}{inside}{q}(?!{q})", f"{begin}{q}"
