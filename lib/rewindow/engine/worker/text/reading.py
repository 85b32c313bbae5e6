"""The one pass over a text file: tokenize it into pages, and note what decides its columns.

JSON with ``lines: multiple`` has objects over several lines, or one list of objects. Here it is only divided, by counting
brackets outside of strings. Whether an object is valid JSON is for `json_records` to say. So a file is accepted only if the
text between its objects is right, which is checked here, and if each object is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindow.contracts.text_options import CSV, TextOptions
from rewindow.engine.worker.text.accepted_values import ALL_KINDS, kinds_of
from rewindow.engine.worker.text.blocks import (
    BLOCK_BYTES,
    LARGEST,
    BadTextError,
    Block,
    Part,
    first_lines,
    read_blocks,
    read_texts,
)
from rewindow.engine.worker.text.csv_records import csv_header, csv_rows, whole_records
from rewindow.engine.worker.text.json_records import escaped, json_records
from rewindow.engine.worker.text.json_types import JsonType, inferred, merge
from rewindow.engine.worker.text.pages import Page, Records, written

_LARGEST_OBJECT = 64 << 20
"""The most bytes of an object."""

_BLANKS = b" \t\r\n"
_QUOTE, _TAB, _LINE_FEED, _BLANK, _BACKSLASH, _LIST, _LIST_END = b'"\t\n \\[]'
_DEPTHS = np.zeros(256, np.int64)
_DEPTHS[list(b"{[")] = 1
_DEPTHS[list(b"}]")] = -1
_IS_MARK = bytes(sign in b'"{}[]\n' for sign in range(256))


@dataclass(frozen=True, slots=True)
class _JsonLines:
    """Some objects of a file, one per line."""

    data: bytes
    """As `json_records` takes it. It has exactly one record in each line."""
    lines: npt.NDArray[np.int64]
    """For each line of ``data``, the 0-based line in the file where the object begins."""


class UndividedError(ValueError):
    """A file whose objects cannot be told apart: what is wrong, and its 0-based line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def json_lines(chunks: Iterable[bytes]) -> Iterator[_JsonLines]:
    """Yield the objects of a file in its order, in blocks.

    ``chunks`` are the bytes of the file, divided anywhere, without a byte order mark; of some MB each, because a block has
    the objects that end in a chunk. They are UTF-8, which the caller checks in them or in the blocks. In memory are at most one
    object and two chunks. Line breaks between the tokens of an object become blanks, and those in its strings tabs, which
    `json_records` refuses there.

    Raises `UndividedError` for text outside of the objects, a comma too many or too few, two objects in a line without a list, an
    object or list without an end, and an object of more than `_LARGEST_OBJECT` bytes. The blocks before it are valid, but what
    follows is unknown, so the whole file should be refused.
    """
    division = _Division()
    parts: list[bytes] = []
    size, enough = 0, 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size < enough:
            continue
        lines, rest = division.divide(b"".join(parts))
        if lines is not None:
            yield lines
        parts, size = [rest], len(rest)
        if size > _LARGEST_OBJECT:
            raise UndividedError(division.begin_of(rest), f"an object of more than {_LARGEST_OBJECT >> 20} MB")
        # Without an object so far, wait until the text has doubled. Otherwise a large one would be searched with each chunk.
        enough = 0 if lines is not None else min(2 * size, _LARGEST_OBJECT + 1)
    lines, rest = division.divide(b"".join(parts))
    if lines is not None:
        yield lines
    division.finish(rest)


class _Division:
    """The state between two blocks: always outside of the objects."""

    def __init__(self) -> None:
        # `line` is where the rest of the text begins.
        self.line = 0
        self.list_line: int | None = None
        # `is_started`: anything but blanks was read. `is_closed`: the list has ended.
        self.is_started = False
        self.is_closed = False
        self.has_objects = False

    def divide(self, text: bytes) -> tuple[_JsonLines | None, bytes]:
        """Return the objects that end in a text, if any, and the rest of the text."""
        text = self._begin(text)
        if self.is_closed or not text:
            return None, text
        signs = np.frombuffer(text, np.uint8)
        positions, is_outside = _marks(text, signs)
        marks = signs[positions]
        is_break = marks == _LINE_FEED
        clean = signs.copy()
        clean[positions[is_break & is_outside]] = _BLANK
        clean[positions[is_break & ~is_outside]] = _TAB
        block = clean.tobytes()
        breaks = positions[is_break]
        steps = np.where(is_outside, _DEPTHS[marks], 0)
        depths = np.cumsum(steps)
        # A negative depth is the end of the list.
        below = np.flatnonzero(depths < 0)[:1]
        if len(below):
            steps[below[0] :] = 0
        starts = positions[(steps == 1) & (depths == 1)]
        ends = positions[(steps == -1) & (depths == 0)] + 1
        lines = self.line + np.searchsorted(breaks, starts)
        objects: list[bytes] = []
        position = 0
        # The last one may have no end yet.
        for start, end, line in zip(starts.tolist(), ends.tolist(), lines.tolist(), strict=False):
            self._check_gap(text[position:start], line)
            if signs[start] == _LIST:
                raise UndividedError(line, "a list where an object should be")
            objects.append(block[start:end])
            self.has_objects = True
            position = end
        if len(below):
            closing = int(positions[below[0]])
            line = self.line + int(np.searchsorted(breaks, closing))
            if self.list_line is None or signs[closing] != _LIST_END:
                raise UndividedError(line, "a bracket without its beginning")
            if gap := text[position:closing].strip(_BLANKS):
                raise UndividedError(line, _stray(gap))
            self.is_closed = True
            position = closing + 1
        self.line += int(np.searchsorted(breaks, position))
        records = _JsonLines(b"\n".join(objects), lines[: len(objects)]) if objects else None
        return records, text[position:]

    def _begin(self, text: bytes) -> bytes:
        """Leave out blanks, and the bracket that begins the list."""
        rest = text.lstrip(_BLANKS)
        if self.is_started or not rest:
            return text
        self.is_started = True
        if rest[0] != _LIST:
            return text
        self.line += text.count(b"\n", 0, len(text) - len(rest))
        self.list_line = self.line
        return rest[1:]

    def _check_gap(self, gap: bytes, line: int) -> None:
        """Refuse what does not belong between two objects, or before the first one."""
        separator = gap.strip(_BLANKS)
        if self.list_line is not None and self.has_objects:
            if separator != b",":
                raise UndividedError(line, _stray(separator) if separator else "no comma between two objects")
        elif separator:
            raise UndividedError(line, _stray(separator))
        elif self.has_objects and b"\n" not in gap:
            raise UndividedError(line, "two objects in a line")

    def begin_of(self, rest: bytes) -> int:
        """Return the line of the first sign of the rest."""
        return self.line + rest.count(b"\n", 0, len(rest) - len(rest.lstrip(_BLANKS)))

    def finish(self, rest: bytes) -> None:
        """Check that the file may end with the rest of its text."""
        text = rest.strip(_BLANKS)
        if self.list_line is not None and not self.is_closed:
            raise UndividedError(self.list_line, "a list without an end")
        if text:
            raise UndividedError(self.begin_of(rest), "an object without an end" if text[:1] == b"{" else _stray(text))


def _marks(text: bytes, signs: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the places of quotes, brackets and line breaks, and which of them are outside of strings."""
    is_mark = np.frombuffer(bytearray(text.translate(_IS_MARK)), np.bool_)
    if b"\\" in text:
        positions = escaped(np.flatnonzero(signs == _BACKSLASH))
        positions = positions[positions < len(signs)]
        is_mark[positions[signs[positions] == _QUOTE]] = False
    positions = np.flatnonzero(is_mark)
    return positions, np.cumsum(signs[positions] == _QUOTE) % 2 == 0


def _stray(text: bytes) -> str:
    return "a comma too many" if not text.strip(b"," + _BLANKS) else "text outside of the objects"


_Longs = npt.NDArray[np.int64]

# No column of a file has the character NUL in its name, so none is taken for one of these.
LINE, WRONG = "\0line", "\0wrong"
"""Columns of a page besides the texts: the line of each record in its part, from 0, and what is wrong with a record."""
_SHOWN_TEXT = 200


@dataclass(frozen=True, slots=True)
class TextRead:
    """How the text files of a source are read, and what is noted on the way."""

    format: str
    options: TextOptions
    names: Mapping[str, Sequence[str]]
    """Path -> the columns of a CSV file."""
    infers: bool = False
    """Whether to note the types that columns fit."""
    keeps_faults: bool = False
    """Whether a record that cannot be read becomes a row that says so; otherwise it ends the pass."""


@dataclass(frozen=True, slots=True)
class PartRead:
    """What a part of a file has: its columns, those with a value, the types that all values fit, its rows and lines.

    ``fault``: the line, from 0, and what is wrong with it, if the pass ended there.
    """

    part: Part
    names: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    kinds: Mapping[str, Any] | None = None
    rows: int = 0
    lines: int = 0
    pages: tuple[Page, ...] = ()
    fault: tuple[int, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what a worker sends, whose pages are in files."""
        kinds = {
            name: kind.as_json() if isinstance(kind, JsonType) else sorted(kind)
            for name, kind in (self.kinds or {}).items()
        }
        pages = [[page.rows, page.path, page.start, page.size] for page in self.pages]
        facts = {"part": self.part, "names": self.names, "filled": self.filled, "rows": self.rows, "lines": self.lines}
        return {**facts, "kinds": kinds, "pages": pages, "fault": self.fault}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PartRead:
        """Return what `as_json` has written."""
        kinds = {
            name: frozenset(kind) if isinstance(kind, list) else JsonType.from_json(kind)
            for name, kind in data["kinds"].items()
        }
        pages = tuple(Page(rows, None, path, start, size) for rows, path, start, size in data["pages"])
        fault = None if data["fault"] is None else (data["fault"][0], data["fault"][1])
        names, filled = tuple(data["names"]), tuple(data["filled"])
        return cls(Part(*data["part"]), names, filled, kinds, data["rows"], data["lines"], pages, fault)


class PartReader:
    """Reads one part: an iterator of batches, and what was noted once it is at its end."""

    def __init__(self, read: TextRead, part: Part) -> None:
        self._read, self._part = read, part
        self._names: dict[str, bool] = dict.fromkeys(read.names.get(part.path, ()), False)
        self._kinds: dict[str, Any] = {}
        self._rows, self._last = 0, Block(b"", 0)
        self._fault: tuple[int, str] | None = None

    def noted(self, pages: Sequence[Page]) -> PartRead:
        """Return what was noted, with the pages that the batches have become."""
        filled = tuple(name for name, is_filled in self._names.items() if is_filled)
        lines = self._last.line + self._last.data.count(b"\n")
        return PartRead(
            self._part, tuple(self._names), filled, self._kinds, self._rows, lines, tuple(pages), self._fault
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records of the part as columns of text. Raises `SourceError` (66) or `StorageError` (74) for the file."""
        try:
            for block, records in self._records():
                batch = self._batch(block, records)
                if batch.num_rows:
                    yield batch
                if self._fault is not None:
                    return
        except BadTextError as error:
            # The rows after it cannot be trusted, so `unreadable: skip` does not skip it.
            self._fault = error.line, error.reason

    def _records(self) -> Iterator[tuple[Block, Records]]:
        read, options = self._read, self._read.options
        if read.format != CSV and options.is_multiple:
            yield from self._objects()
            return
        blocks = read_blocks(self._part, options, size=BLOCK_BYTES)
        if read.format != CSV:
            for block in blocks:
                self._last = block
                yield block, json_records(block.data, constants=bool(options.constants))
            return
        names = read.names[self._part.path]
        for block in self._rows_of_csv(blocks):
            yield block, csv_rows(block.data, options, names)

    def _objects(self) -> Iterator[tuple[Block, Records]]:
        """Yield the objects of a JSON file in which they are not lines: a list of them may be one long line."""
        has_constants = bool(self._read.options.constants)
        try:
            for lines in json_lines(read_texts(self._part, self._read.options)):
                records = json_records(lines.data, constants=has_constants)
                yield Block(lines.data, 0), replace(records, lines=lines.lines[records.lines])
        except UndividedError as error:
            raise BadTextError(error.line, error.reason) from error

    def _rows_of_csv(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield whole records without the header."""
        is_first, rest = self._part.start == 0, Block(b"", 0)
        for block in blocks:
            data, line = rest.data + block.data, rest.line if rest.data else block.line
            self._last = block
            if is_first:
                header = csv_header(data, self._read.options)
                if header is None:
                    continue
                _, end = header
                data, line, is_first = data[end:], line + data.count(b"\n", 0, end), False
            end = whole_records(data, self._read.options) if self._read.options.is_multiple else len(data)
            if end:
                yield Block(data[:end], line)
            rest = Block(data[end:], line + data.count(b"\n", 0, end)) if end < len(data) else Block(b"", 0)
            if len(rest.data) > LARGEST:
                raise BadTextError(rest.line, "its quoted value has no end")
        if rest.data:
            yield rest

    def _batch(self, block: Block, records: Records) -> pa.RecordBatch:
        columns, count = dict(records.columns), len(records.lines)
        faults = records.faults
        if faults and not self._read.keeps_faults:
            row = min(faults)
            self._fault = block.line + int(records.lines[row]), faults[row]
            columns, count = {name: column.slice(0, row) for name, column in columns.items()}, row
        for name, column in columns.items():
            self._names[name] = self._names.get(name, False) or column.null_count < count
            if self._read.infers:
                self._note(name, column, records.lines + block.line)
        self._rows += count
        columns[LINE] = pa.array(records.lines[:count] + block.line)
        if faults and self._read.keeps_faults:
            columns[WRONG] = pa.array(self._shown(block, records, faults), pa.string())
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _note(self, name: str, column: pa.Array, lines: _Longs) -> None:
        if self._read.format == CSV:
            before = self._kinds.get(name, ALL_KINDS)
            self._kinds[name] = kinds_of(column, name, self._read.options, before)
            return
        types = inferred(column)
        _locate(types, self._part.start, lines)
        self._kinds[name] = merge(self._kinds[name], types) if name in self._kinds else types

    def _shown(self, block: Block, records: Records, faults: Mapping[int, str]) -> list[str | None]:
        """Return what is wrong with each row, with its text if that is one line."""
        lines = [] if self._read.options.is_multiple else block.data.split(b"\n")
        reasons: list[str | None] = [None] * len(records.lines)
        for row, reason in faults.items():
            text = lines[int(records.lines[row])].decode(errors="replace").rstrip("\r") if lines else ""
            reasons[row] = f"{reason}: {text[:_SHOWN_TEXT]}"
        return reasons


def _locate(types: JsonType, start: int, lines: _Longs) -> None:
    """Replace the rows of examples by the beginning of the part and the line in it."""
    types.kinds = {kind: (start, int(lines[row])) for kind, (_, row) in types.kinds.items()}
    for inner in (*types.fields.values(), *([types.item] if types.item else [])):
        _locate(inner, start, lines)


def read_into(read: TextRead, part: Part, folder: str) -> PartRead:
    """Read a part into a file of pages in a folder."""
    reader = PartReader(read, part)
    return reader.noted(written(reader.batches(), folder))


def header_of(path: str, options: TextOptions) -> tuple[str, ...]:
    """Return the columns of a CSV file by its first line; none if it has no line. Raises as `PartReader.batches`."""
    header = csv_header(first_lines(path, options), options)
    return () if header is None else header[0]
