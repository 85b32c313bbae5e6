"""CSV files as Python reads them: their headers, by which columns are found, and their lines.

With a header, a column is where the header of its file says, whatever its position in other files. Names are those that
Spark gives: a column without a name, or with that of another one, gets the number of its position.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewindow.contracts.ingest import LogSpec, SourceSpec
from rewindow.contracts.source_fields import role_of, written
from rewindow.errors import SourceError


def lower_options(source: SourceSpec) -> dict[str, str]:
    """Return a source's options with their names in lower case, as Spark compares them."""
    return {name.lower(): value for name, value in source.options.items()}


def stated_encoding(options: Mapping[str, str]) -> str | None:
    """Return the encoding of text files that options state; None if they do not. Their names are in lower case."""
    return options.get("encoding", options.get("charset"))


def encoding_of(source: SourceSpec) -> str:
    """Return the encoding of text files, as Python calls it."""
    encoding = stated_encoding(lower_options(source))
    return "utf-8-sig" if encoding is None or encoding.lower() in {"utf-8", "utf8"} else encoding


def is_multi_line(options: Mapping[str, str]) -> bool:
    """Return whether a text file is parsed as a whole, and not line by line. The names of ``options`` are in lower case."""
    return options.get("multiline", "false").lower() == "true"


def has_header(source: SourceSpec) -> bool:
    """Return whether the files of a source are CSV files whose first line names the columns."""
    return source.format == "csv" and lower_options(source).get("header", "true").lower() == "true"


def infers_types(source: SourceSpec) -> bool:
    """Return whether the types of CSV columns are inferred, as they are by default. Otherwise all columns are texts."""
    return lower_options(source).get("inferschema", "true").lower() == "true"


def doubled_quotes(options: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's option for quotes within values that are doubled (RFC 4180), unless the options state another escape.

    By default Spark takes the backslash as the escape, and doubled quotes as they stand.
    """
    quote = options.get("quote", '"')
    return {"escape": quote} if quote and "escape" not in options else {}


def separator_of(options: Mapping[str, str]) -> str:
    """Return what separates values. As in Spark, a backslash and a t are a tab. The names of ``options`` are in lower case."""
    return options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")


def csv_dialect(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `csv.reader` for Spark's options."""
    quote, escape = options.get("quote", '"'), options.get("escape")
    quoted = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return {
        "delimiter": separator_of(options),
        "escapechar": None if escape == quote else escape,
        **quoted,
    }


def csv_columns(source: SourceSpec, path: str) -> tuple[str, ...] | None:
    """Return the columns that a file's header names; None if it has none, or Python cannot read it."""
    if not has_header(source):
        return None
    try:
        with (
            pa.input_stream(path) as raw,
            io.TextIOWrapper(raw, encoding_of(source), errors="surrogateescape", newline="") as text,
        ):
            _, row = next(csv_lines(text, lower_options(source)), (0, []))
        "".join(row).encode()  # what comes later in the file does not matter here
    except (OSError, ValueError, LookupError, TypeError, csv.Error, pa.ArrowException):
        return None
    return csv_names(row, lower_options(source)) if row else None


def csv_lines(text: io.TextIOBase, options: Mapping[str, str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line and the values of each row, the header included. Empty lines and comments are no rows.

    Raises `csv.Error` if Python cannot read the file, as with a separator of several characters.
    """
    comment, before = options.get("comment"), 0
    try:
        reader = csv.reader(text, **csv_dialect(options))
    except TypeError as error:
        raise csv.Error(str(error)) from error
    for row in reader:
        line, before = before + 1, reader.line_num
        is_empty = not row or (len(row) == 1 and not row[0].strip())
        if not is_empty and not (comment and row[0].startswith(comment)):
            yield line, row


def csv_names(row: Sequence[str], options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of columns by the values of a header, as Spark names them."""
    counts = Counter(name.lower() for name in row)
    empty = {"", options.get("nullvalue", "")}
    return tuple(
        f"_c{at}" if name in empty else f"{name}{at}" if counts[name.lower()] > 1 else name
        for at, name in enumerate(row)
    )


def named_twice(columns: Sequence[str]) -> frozenset[str]:
    """Return the names, in lower case, that a header has more than once, by the numbers that `csv_names` gave them."""
    names = [name.lower().removesuffix(str(at)) for at, name in enumerate(columns) if name.endswith(str(at))]
    return frozenset(name for name, count in Counter(names).items() if count > 1)


def positions(header: Sequence[str], names: Collection[str]) -> dict[str, int]:
    """Return where a file has the columns of these names, as far as it has them. Case does not count, blanks do."""
    at = {name.lower(): position for position, name in reversed([*enumerate(header)])}
    return {name: at[name.lower()] for name in names if name.lower() in at}


def check_has(spec: LogSpec, path: str, header: Sequence[str], needed: Collection[str]) -> None:
    """Raise `SourceError` (66) for a file without a column that is needed and not ``optional``: it would be null."""
    present = {*positions(header, needed), *positions(spec.optional, needed)}
    missing = [name for name in sorted(needed) if name not in present]
    if missing:
        names = ", ".join(missing)
        role = role_of(spec, missing)
        ways = f"or set `optional: [{names}]` to land null where it is missing"
        message = (
            f"log {spec.topic}: {Path(path).name} has no column {names}. It has {', '.join(map(written, header))}. "
            + (f"{role}. Fix the file, or remove it" if role else f"Fix the file, {ways}")
        )
        raise SourceError(message)
