"""Tokenize blocks of CSV: refuse lines that Arrow would wrongly accept, then let Arrow split the lines into columns of text.

Arrow's tokenizer is used because it is the fastest one with three properties (ADR-144): it distinguishes an empty value from a
quoted empty value, takes bytes in memory, and gives the numbers of lines with too many or too few values. But it accepts three
mistakes, which `_Structure` finds: a quote within a value, text after a closing quote, and a carriage return alone as the end of
a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rewindow.contracts.text_options import TextOptions
from rewindow.engine.worker.text.blocks import BadTextError
from rewindow.engine.worker.text.pages import Records

Longs = npt.NDArray[np.int64]
_LF, _CR = 10, 13


def csv_header(data: bytes, options: TextOptions) -> tuple[tuple[str, ...], int] | None:
    """Return the names of a file's columns, and the number of bytes before the rows; None for a file without a line.

    The names are those of the header. As in Spark, a column without a name, or with the name of another column, gets a name with
    the number of its position, from 0. If there is no header, all columns get such names.
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
    """Return the number of bytes up to the end of a text's last whole record; 0 if no record ends.

    Values may have line breaks.
    """
    ends = _Structure(data, options).ends
    return int(ends[-1]) + 1 if len(ends) else 0


def csv_rows(data: bytes, options: TextOptions, names: Sequence[str] | None) -> Records:
    """Tokenize whole lines of CSV into columns with the given names; without names, columns are named by their numbers.

    ``data`` is UTF-8 without a header and without a byte order mark. Empty lines are not records. A record has a fault if it has
    another number of values than there are columns, a quote that does not enclose a whole value, or a carriage return alone.
    """
    quote = options.quote.encode()
    faults: dict[int, str] = {}
    starts: Longs | None = None
    kept = data
    has_carriages = b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
    if options.escape or (quote and quote in data) or has_carriages:
        structure = _Structure(data, options)
        wrong = structure.wrong()
        if wrong or options.is_multiple:
            starts = structure.starts()
            faults = {int(np.searchsorted(starts, begin)): reason for begin, reason in wrong.items()}
            kept = _without(data, starts, structure.ends, sorted(faults))
    table, miscounted = _parsed(kept, options, names)
    rows = table.num_rows + len(miscounted) + len(faults)
    lines = _lines(data, rows, starts)
    good = np.setdiff1d(np.arange(rows), np.fromiter(faults, np.int64, len(faults)), assume_unique=True)
    for number, values in miscounted:
        faults[int(good[number])] = f"it has {values} values, but there are {table.num_columns} columns"
    columns = dict(zip(table.column_names, (column.combine_chunks() for column in table.columns), strict=True))
    return Records(_spread(columns, rows, faults), lines, dict(sorted(faults.items())))


def _first_end(data: bytes, options: TextOptions) -> int:
    """Return the number of bytes through the end of the first record."""
    quote = options.quote.encode()
    if options.is_multiple and quote and quote in data:
        ends = _Structure(data, options).ends
        return int(ends[0]) + 1 if len(ends) else len(data)
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
        # A block may begin with the bytes of a byte order mark. Arrow would remove them, unless an empty line precedes them.
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
        # Arrow only reads a line that has an end. Two ends are added, because the line may end with an escape, which makes the
        # first end a part of the value.
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
    """Return the line of each record, from 0. Without ``starts``, each line that is not empty is a record."""
    if starts is None and rows == data.count(b"\n") + (not data.endswith(b"\n")):
        return np.arange(rows)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LF)
    if starts is None:
        begins = np.concatenate(([0], ends + 1))
        begins = begins[begins < len(data)]
        starts = begins[_are_filled(data, begins)]
    return np.searchsorted(ends, starts)


def _without(data: bytes, starts: Longs, ends: Longs, rows: Sequence[int]) -> bytes:
    """Return a text without the records ``rows``."""
    parts, position = [], 0
    for row in rows:
        after = ends[np.searchsorted(ends, starts[row]) :]
        parts.append(data[position : starts[row]])
        position = int(after[0]) + 1 if len(after) else len(data)
    return b"".join((*parts, data[position:]))


def _spread(columns: Mapping[str, pa.Array], rows: int, faults: Mapping[int, str]) -> dict[str, pa.Array]:
    """Extend the columns of the records without faults to all records. A record with a fault gets nulls."""
    if not faults:
        return dict(columns)
    is_bad = np.zeros(rows, np.bool_)
    is_bad[list(faults)] = True
    positions = pa.array(np.cumsum(~is_bad) - 1, mask=is_bad)
    return {name: pc.take(column, positions) for name, column in columns.items()}


class _Structure:
    """The positions of the quotes and line breaks of a text. Escaped characters do not count."""

    def __init__(self, data: bytes, options: TextOptions) -> None:
        self._options = options
        self._bytes = np.frombuffer(data, np.uint8)
        if options.escape:
            self._bytes = _neutral(self._bytes, ord(options.escape))
        quote = ord(options.quote) if options.quote else -1
        self._quotes: Longs = np.flatnonzero(self._bytes == quote) if quote >= 0 else np.zeros(0, np.int64)
        self._line_ends: Longs = np.flatnonzero(self._bytes == _LF)
        self.ends = self._line_ends
        """The positions of the line breaks that end records."""
        if options.is_multiple and len(self._quotes):
            before = np.searchsorted(self._quotes, self._line_ends)
            self.ends = self._line_ends[before % 2 == 0]

    def starts(self) -> Longs:
        """Return where each record begins."""
        starts = np.concatenate(([0], self.ends + 1))
        starts = starts[starts < len(self._bytes)]
        return starts[_are_filled(self._bytes.tobytes(), starts)]

    def wrong(self) -> dict[int, str]:
        """Return a mapping from the position at which a wrong record begins to what is wrong with it."""
        reasons = dict[int, str]()
        size = len(self._bytes)
        padded = np.concatenate((self._bytes, [_LF, _LF])).astype(np.uint8)
        carriages = np.flatnonzero(self._bytes == _CR)
        alone = carriages[(padded[carriages + 1] != _LF) | (carriages + 1 == size)]
        quotes = self._quotes
        starts = np.concatenate(([0], self.ends + 1))
        record = np.searchsorted(self.ends, quotes)
        first_quotes = np.searchsorted(quotes, starts)
        number = np.arange(len(quotes)) - first_quotes[record]
        opens = number % 2 == 0
        delimiter = ord(self._options.delimiter)
        before = np.where(quotes > 0, padded[quotes - 1], _LF)
        after = padded[quotes + 1]
        quote = padded[quotes] if len(quotes) else np.zeros(0, np.uint8)
        is_doubled = (before == quote) if not self._options.escape else np.zeros(len(quotes), np.bool_)
        begins = (before == delimiter) | (before == _LF) | (quotes == starts[record]) | ((number > 0) & is_doubled)
        is_next = (after == quote) if not self._options.escape else np.zeros(len(quotes), np.bool_)
        at_end = (after == delimiter) | (after == _LF) | ((after == _CR) & (padded[quotes + 2] == _LF))
        closes = at_end | is_next | (quotes + 1 >= size)
        for index in np.flatnonzero(opens & ~begins).tolist():
            reasons.setdefault(int(starts[record[index]]), "it has a quote within a value")
        for index in np.flatnonzero(~opens & ~closes).tolist():
            reasons.setdefault(int(starts[record[index]]), "it has text behind a quoted value")
        counts = np.diff(np.concatenate((first_quotes, [len(quotes)])))
        for index in np.flatnonzero(counts % 2).tolist():
            goes_on = (
                "its quoted value has no end"
                if self._options.is_multiple
                else ("its quoted value does not end in its line, which needs `lines: multiple`")
            )
            reasons.setdefault(int(starts[index]), goes_on)
        for position in alone.tolist():
            inside = np.searchsorted(quotes, position) - first_quotes[np.searchsorted(self.ends, position)]
            if not (self._options.is_multiple and inside % 2):
                begin = int(starts[np.searchsorted(self.ends, position)])
                reasons.setdefault(begin, "it has a carriage return without a line feed")
        return reasons


def _neutral(data: npt.NDArray[np.uint8], escape: int) -> npt.NDArray[np.uint8]:
    """Return a text in which all escapes, and the characters that they escape, are replaced by a letter."""
    neutral = data.copy()
    position = -1
    for index in np.flatnonzero(data == escape).tolist():
        # An escape that is itself escaped does not escape the character after it.
        if index > position:
            neutral[index : index + 2] = ord("x")
            position = index + 1
    return neutral
