"""Tokenize blocks of CSV: refuse lines that Arrow would wrongly accept, then let Arrow split the lines into columns of text.

Arrow's tokenizer is the fastest one with three properties (ADR-144). It distinguishes an empty value from a quoted empty
value. It reads bytes in memory. It gives the numbers of lines with too many or too few values. But it accepts three mistakes:
a quote within a value, text after a closing quote, and a carriage return alone as the end of a line. A single regular
expression for a record finds them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rewindow.contracts.text_options import TextOptions
from rewindow.engine.worker.text.file_text import BadTextError
from rewindow.engine.worker.text.json_records import gather
from rewindow.engine.worker.text.pages import Records

Longs = npt.NDArray[np.int64]
_LF, _CR = 10, 13


def csv_header(data: bytes, options: TextOptions) -> tuple[tuple[str, ...], int] | None:
    """Return the names of a file's columns, and the number of bytes before the rows; None for a file without a line.

    The names are those of the header. As in Spark, a column whose name is missing or occurs twice gets a name that contains
    its position (from 0). If there is no header, all columns get such names.
    """
    start = 0
    for _ in range(options.skip_rows):
        end = data.find(b"\n", start) + 1
        if not end:
            return None
        start = end
    while data[start : start + 1] in {b"\n", b"\r"}:
        start += 1
    if start >= len(data):
        return None
    end = _first_end(data[start:], options) + start
    row = csv_rows(data[start:end], options, None)
    if row.faults:
        raise BadTextError(data.count(b"\n", 0, start), row.faults[0])
    values = [column[0].as_py() or "" for column in row.columns.values()]
    if not options.header:
        return tuple(f"_c{number}" for number in range(len(values))), start
    counts = Counter(name.lower() for name in values)
    empty = {"", options.null}
    names = tuple(
        f"_c{number}" if name in empty else f"{name}{number}" if counts[name.lower()] > 1 else name
        for number, name in enumerate(values)
    )
    if len({name.lower() for name in names}) < len(names):
        raise BadTextError(data.count(b"\n", 0, start), "its header has the name of a column that is numbered")
    return names, end


def whole_records(data: bytes, options: TextOptions) -> int:
    """Return the number of bytes up to the end of the last whole record in a text; 0 if no record ends in it.

    A line break does not always end a record, because values may contain line breaks.
    """
    ends = _ends(data, options)
    return int(ends[-1]) if len(ends) else 0


def csv_rows(data: bytes, options: TextOptions, names: Sequence[str] | None) -> Records:
    """Tokenize whole lines of CSV into columns with the given names. Without names, their numbers are the names.

    ``data`` is UTF-8 without a header and without a byte order mark. Empty lines are not records. A record has a fault if it
    has another number of values than there are columns, a quote that does not enclose a whole value, or a carriage return
    alone.
    """
    quote = options.quote.encode()
    starts, faults, kept = None, dict[int, str](), data
    if options.escape or (quote and quote in data) or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        ends = _ends(data, options)
        if not len(ends) or ends[-1] < len(data):
            ends = np.append(ends, len(data))
        begins = np.concatenate(([0], ends[:-1]))
        is_filled = _are_filled(data, begins)
        starts, ends = begins[is_filled], ends[is_filled]
        faults = _faults(data, starts, ends, options)
        if faults:
            kept = b"".join(data[starts[row] : ends[row]] for row in range(len(starts)) if row not in faults)
    table, miscounted = _parsed(kept, options, names)
    rows = table.num_rows + len(miscounted) + len(faults)
    lines = _lines(data, rows, starts)
    good = np.setdiff1d(np.arange(rows), np.fromiter(faults, np.int64, len(faults)), assume_unique=True)
    for number, values in miscounted:
        faults[int(good[number])] = f"it has {values} values, but there are {table.num_columns} columns"
    columns = dict(zip(table.column_names, (column.combine_chunks() for column in table.columns), strict=True))
    return Records(_spread(columns, rows, faults), lines, dict(sorted(faults.items())))


def _first_end(data: bytes, options: TextOptions) -> int:
    """Return the number of bytes up to and including the end of the first record."""
    quote = options.quote.encode()
    if options.is_multiple and quote and quote in data:
        ends = _ends(data, options)
        return int(ends[0]) if len(ends) else len(data)
    return data.find(b"\n") + 1 or len(data)


def _parsed(data: bytes, options: TextOptions, names: Sequence[str] | None) -> tuple[pa.Table, list[tuple[int, int]]]:
    """Return the records that have a value for each column, and pairs (record, number of values) for the other records."""
    miscounted: list[tuple[int, int]] = []

    def skip(row: pa_csv.InvalidRow) -> str:
        miscounted.append((row.number - 1, row.actual_columns))
        return "skip"

    if names is None and not data:
        # The only record has a fault and was left out of `data`.
        names = ["0"]
    if names is None:
        head = data[: _first_end(data, options)]
        names = [str(number) for number in range(_count(head, options))]
    unique = [str(number) for number in range(len(names))]
    if not data.strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.string()) for name in names}), []
    table = pa_csv.read_csv(
        # A block may begin with the bytes of a byte order mark. Arrow would remove them, unless an empty line comes before
        # them.
        pa.BufferReader(b"\n" + data if data.startswith(b"\xef\xbb\xbf") else data),
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=len(data) + 2, column_names=unique),
        parse_options=_parse_options(options, skip),
        convert_options=pa_csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(unique, pa.string()),
            null_values=list({"", options.null}),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table.rename_columns(list(names)), miscounted


def _parse_options(options: TextOptions, skip: Callable[[pa_csv.InvalidRow], str] | None = None) -> pa_csv.ParseOptions:
    return pa_csv.ParseOptions(
        delimiter=options.delimiter,
        quote_char=options.quote or False,
        double_quote=not options.escape,
        escape_char=options.escape or False,
        newlines_in_values=options.is_multiple,
        invalid_row_handler=skip,
    )


def _count(line: bytes, options: TextOptions) -> int:
    """Return how many values a line has."""
    table = pa_csv.read_csv(
        # Arrow reads a line only if it has an end. Two ends are added, because an escape at the end of the line makes the first
        # one part of the value.
        pa.BufferReader(line + b"\n\n"),
        read_options=pa_csv.ReadOptions(use_threads=False, autogenerate_column_names=True, block_size=len(line) + 3),
        parse_options=_parse_options(options),
    )
    return int(table.num_columns)


def _are_filled(data: bytes, starts: Longs) -> npt.NDArray[np.bool_]:
    """Return a mask of the lines that are not empty, given where they start."""
    bytes_ = np.frombuffer(data + b"\n\n", np.uint8)
    first_bytes = bytes_[starts]
    is_filled: npt.NDArray[np.bool_] = (first_bytes != _LF) & ((first_bytes != _CR) | (bytes_[starts + 1] != _LF))
    return is_filled


def _lines(data: bytes, rows: int, starts: Longs | None) -> Longs:
    """Return the number of each record's line, from 0. Without ``starts``, each line that is not empty is a record."""
    if starts is None and rows == data.count(b"\n") + (not data.endswith(b"\n")):
        return np.arange(rows)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LF)
    if starts is None:
        begins = np.concatenate(([0], ends + 1))
        begins = begins[begins < len(data)]
        starts = begins[_are_filled(data, begins)]
    return np.searchsorted(ends, starts)


def _spread(columns: Mapping[str, pa.Array], rows: int, faults: Mapping[int, str]) -> dict[str, pa.Array]:
    """Extend the columns of the records without faults to all records. A record with a fault gets nulls."""
    if not faults:
        return dict(columns)
    is_bad = np.zeros(rows, np.bool_)
    is_bad[list(faults)] = True
    positions = pa.array(np.cumsum(~is_bad) - 1, mask=is_bad)
    return {name: pc.take(column, positions) for name, column in columns.items()}


def _ends(data: bytes, options: TextOptions) -> Longs:
    """Return the ends of the records in a text: the positions after their line breaks.

    A last record without one is left out.
    """
    signs = np.frombuffer(data, np.uint8)
    if options.escape:
        signs = _neutral(signs, ord(options.escape))
    ends = np.flatnonzero(signs == _LF)
    if options.is_multiple and options.quote:
        # A line break between an opening quote and its closing quote belongs to a value.
        ends = ends[np.searchsorted(np.flatnonzero(signs == ord(options.quote)), ends) % 2 == 0]
    return ends + 1


def _faults(data: bytes, starts: Longs, ends: Longs, options: TextOptions) -> dict[int, str]:
    """Return what is wrong with each wrong record, by the record's number."""
    if not len(starts):
        return {}
    value = _value(options, greedy="")
    delimiter = re.escape(options.delimiter)
    records = gather(data, starts, ends)
    fits = pc.match_substring_regex(records, rf"(?s)\A(?:{value})(?:{delimiter}(?:{value}))*(?:\r?\n)?\z")
    wrong = np.flatnonzero(~np.asarray(fits)).tolist()
    return {row: _reason(records[row].as_py(), options) for row in wrong}


def _value(options: TextOptions, *, greedy: str) -> str:
    """Return the regular expression of a value. For Python, ``greedy`` is ``+``, so that a doubled quote is not split."""
    quote, delimiter, escape = (re.escape(sign) for sign in (options.quote, options.delimiter, options.escape))
    unquoted = rf"[^{quote}{delimiter}{escape}\r\n]"
    if escape:
        # At the end of the file, an escape has no character to escape.
        unquoted = rf"(?:{unquoted}|{escape}(?:.|$))"
    if not quote:
        return f"{unquoted}*"
    ends = "" if options.is_multiple else r"\r\n"
    inner = rf"[^{quote}{escape}{ends}]|" + (f"{escape}." if escape else quote * 2)
    return f"{quote}(?:{inner})*{greedy}{quote}|{unquoted}*"


def _reason(record: str, options: TextOptions) -> str:
    """Return what is wrong with a record that `_faults` refuses, found at the place where no value can continue."""
    value = re.compile(_value(options, greedy="+"), re.DOTALL)
    match = value.match(record)
    while match and record.startswith(options.delimiter, match.end()):
        match = value.match(record, match.end() + 1)
    start, end = match.span() if match else (0, 0)
    if "\r" in record[end:].removesuffix("\r\n"):
        return "it has a carriage return without a line feed"
    if not record.startswith(options.quote, end):
        return "it has text behind a quoted value"
    if start < end:
        return "it has a quote within a value"
    if options.is_multiple:
        return "its quoted value has no end"
    return "its quoted value does not end in its line, which needs `lines: multiple`"


def _neutral(data: npt.NDArray[np.uint8], escape: int) -> npt.NDArray[np.uint8]:
    """Return a text in which a letter replaces each escape and each escaped character."""
    neutral = data.copy()
    position = -1
    for index in np.flatnonzero(data == escape).tolist():
        # An escape that is itself escaped does not escape the character after it.
        if index > position:
            neutral[index : index + 2] = ord("x")
            position = index + 1
    return neutral
