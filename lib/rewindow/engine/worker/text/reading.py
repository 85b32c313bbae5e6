"""The single pass over a text file: tokenize the file into pages, and note the names and types of its columns.

JSON with ``lines: multiple`` has objects over several lines, or one list of objects. This module divides the text into objects by
counting brackets outside of strings, and checks the text between the objects. `json_records` checks whether each object is
valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindow.contracts.text_options import CSV, TextOptions
from rewindow.engine.worker.text.accepted_values import ALL_KINDS, kinds_of
from rewindow.engine.worker.text.csv_records import csv_header, csv_rows, whole_records
from rewindow.engine.worker.text.file_text import (
    BLOCK_BYTES,
    LARGEST,
    BadTextError,
    Block,
    Part,
    first_lines,
    read_blocks,
    read_texts,
)
from rewindow.engine.worker.text.json_records import json_records
from rewindow.engine.worker.text.json_types import JsonType, inferred, merge
from rewindow.engine.worker.text.pages import Page, Records, written
from rewindow.storage.progress import counted

_BLANKS = b" \t\r\n"
_LIST, _LIST_END = b"[]"
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
"""Matches a bracket or a whole string. A string without a closing quote ends with the text."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Some objects of a file, one per line."""

    data: bytes
    """The objects as input of `json_records`, exactly one in each line."""
    lines: npt.NDArray[np.int64]
    """For each line of ``data``, the line in the file, from 0, in which the object begins."""


def json_lines(chunks: Iterable[bytes]) -> Iterator[JsonLines]:
    """Yield the objects of a file in order, in blocks.

    ``chunks`` are the bytes of the file, without a byte order mark. A chunk may end anywhere. It should have some MB, because
    a block has the objects that end in one chunk. The caller checks that the chunks or the blocks are UTF-8. At most one
    object and two chunks are in memory. In the blocks, blanks replace the line breaks of an object, so that it is one line.
    JSON allows no line break in a string. If a string contains one, tabs replace the line breaks of its object instead, so
    that `json_records` refuses the object.

    Raises `BadTextError` for text outside of the objects, a comma too many or too few, two objects in a line without a list,
    an object or list without an end, and an object of more than `LARGEST` bytes. Blocks that were yielded before the error
    are correct. But the caller should refuse the whole file, because no text after the mistake can be trusted.
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
        if size > LARGEST:
            raise BadTextError(division.begin_of(rest), f"an object of more than {LARGEST >> 20} MB")
        # If no object ends in the text, wait until the text has doubled. Otherwise each chunk would cause a new search through
        # the text of a large object.
        enough = 0 if lines is not None else min(2 * size, LARGEST + 1)
    lines, rest = division.divide(b"".join(parts))
    if lines is not None:
        yield lines
    division.finish(rest)


class _Division:
    """The state of the division of a file into objects, between two pieces of its text.

    It always stops outside of the objects.
    """

    def __init__(self) -> None:
        # `line` is the number, from 0, of the line in which the rest of the text begins.
        self.line = 0
        self.list_line: int | None = None
        # `is_started`: whether a character other than a blank was read. `is_closed`: whether the list has ended.
        self.is_started = False
        self.is_closed = False
        self.has_objects = False

    def divide(self, text: bytes) -> tuple[JsonLines | None, bytes]:
        """Return the objects that end in a text (None if there are none), and the rest of the text."""
        text = self._begin(text)
        if self.is_closed or not text:
            return None, text
        objects: list[bytes] = []
        lines: list[int] = []
        blank, depth, start, position = b" ", 0, 0, 0
        for mark in _MARK.finditer(text):
            sign = text[mark.start()]
            if sign in b"{[":
                if depth == 0:
                    start = mark.start()
                    lines.append(self.line + text.count(b"\n", position, start))
                    self._check_gap(text[position:start], lines[-1])
                    if sign == _LIST:
                        raise BadTextError(lines[-1], "a list where an object should be")
                    blank = b" "
                depth += 1
            elif sign in b"}]":
                depth -= 1
                if depth > 0:
                    continue
                gap, position = text[position : mark.start()], mark.end()
                if depth == 0:
                    objects.append(text[start:position].replace(b"\n", blank))
                    self.has_objects = True
                self.line += gap.count(b"\n")
                if depth < 0:
                    if self.list_line is None or sign != _LIST_END:
                        raise BadTextError(self.line, "a bracket without its beginning")
                    if gap.strip(_BLANKS):
                        raise BadTextError(self.line, _stray(gap))
                    self.is_closed = True
                    break
            elif b"\n" in mark[0]:
                # `json_records` refuses a tab in a string, as it would refuse the line break.
                blank = b"\t"
        return JsonLines(b"\n".join(objects), np.array(lines[: len(objects)])) if objects else None, text[position:]

    def _begin(self, text: bytes) -> bytes:
        """If a text begins with blanks and the opening bracket of the file's list, return it without them.

        Otherwise return it unchanged.
        """
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
        """Raise `BadTextError` if a text may not be between two objects, or before the first object."""
        separator = gap.strip(_BLANKS)
        if self.list_line is not None and self.has_objects:
            if separator != b",":
                raise BadTextError(line, _stray(separator) if separator else "no comma between two objects")
        elif separator:
            raise BadTextError(line, _stray(separator))
        elif self.has_objects and b"\n" not in gap:
            raise BadTextError(line, "two objects in a line")

    def begin_of(self, rest: bytes) -> int:
        """Return the line (from 0) of the first character in the rest that is not a blank."""
        return self.line + rest.count(b"\n", 0, len(rest) - len(rest.lstrip(_BLANKS)))

    def finish(self, rest: bytes) -> None:
        """Raise `BadTextError` if the file may not end with this rest of its text."""
        text = rest.strip(_BLANKS)
        if self.list_line is not None and not self.is_closed:
            raise BadTextError(self.list_line, "a list without an end")
        if text:
            raise BadTextError(self.begin_of(rest), "an object without an end" if text[:1] == b"{" else _stray(text))


def _stray(text: bytes) -> str:
    return "a comma too many" if not text.strip(b"," + _BLANKS) else "text outside of the objects"


_Longs = npt.NDArray[np.int64]

# These names contain the character NUL. No column of a file has such a name, so they differ from all columns of files.
LINE, WRONG = "\0line", "\0wrong"
"""The columns of a page besides the texts: the line of each record in its part, from 0, and the fault of a record."""
_SHOWN_TEXT = 200


@dataclass(frozen=True, slots=True)
class TextRead:
    """How the text files of a source are read, and what is noted while they are read."""

    format: str
    options: TextOptions
    names: Mapping[str, Sequence[str]]
    """Maps the path of a CSV file to the names of its columns."""
    infers: bool = False
    """Whether to note which types each column fits."""
    keeps_faults: bool = False
    """Whether a record that cannot be read becomes a row with a fault. Otherwise reading ends at such a record."""


class Fault(NamedTuple):
    """Why reading ended: the line (from 0), its fault, and whether only this record is wrong, so that it can be left out."""

    line: int
    reason: str
    is_of_record: bool


@dataclass(frozen=True, slots=True)
class PartRead:
    """What was noted about a part of a file, and its pages.

    ``names`` are the columns, ``filled`` the columns with a value, ``kinds`` the types that all values of a column fit.
    ``rows`` and ``lines`` are the numbers of rows and lines. ``fault`` is None if reading reached the end.
    """

    part: Part
    names: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    kinds: Mapping[str, Any] | None = None
    rows: int = 0
    lines: int = 0
    pages: tuple[Page, ...] = ()
    fault: Fault | None = None

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary, for workers. The pages must be in files."""
        kinds = {
            name: kind.as_json() if isinstance(kind, JsonType) else sorted(kind)
            for name, kind in (self.kinds or {}).items()
        }
        pages = [[page.rows, page.path, page.start, page.size] for page in self.pages]
        facts = {"part": self.part, "names": self.names, "filled": self.filled, "rows": self.rows, "lines": self.lines}
        return {**facts, "kinds": kinds, "pages": pages, "fault": self.fault}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PartRead:
        """Return the value that `as_json` has serialized."""
        kinds = {
            name: frozenset(kind) if isinstance(kind, list) else JsonType.from_json(kind)
            for name, kind in data["kinds"].items()
        }
        pages = tuple(Page(rows, None, path, start, size) for rows, path, start, size in data["pages"])
        fault = None if data["fault"] is None else Fault(*data["fault"])
        names, filled = tuple(data["names"]), tuple(data["filled"])
        return cls(Part(*data["part"]), names, filled, kinds, data["rows"], data["lines"], pages, fault)


class PartReader:
    """A reader of one part of a file. Callers iterate over `batches` to the end, then call `noted`."""

    def __init__(self, read: TextRead, part: Part) -> None:
        self._read, self._part = read, part
        self._names: dict[str, bool] = dict.fromkeys(read.names.get(part.path, ()), False)
        self._kinds: dict[str, Any] = {}
        self._rows, self._last = 0, Block(b"", 0)
        self._fault: Fault | None = None

    def noted(self, pages: Sequence[Page]) -> PartRead:
        """Return what was noted about the part. ``pages``: the pages to which the batches were written."""
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
            # Reading ends here even with `unreadable: skip`, because the rows after such a line cannot be trusted.
            self._fault = Fault(error.line, error.reason, is_of_record=False)

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
        """Yield the objects of a JSON file with ``lines: multiple``. Its list of objects may be one long line."""
        has_constants = bool(self._read.options.constants)
        for lines in json_lines(read_texts(self._part, self._read.options)):
            records = json_records(lines.data, constants=has_constants)
            yield Block(lines.data, 0), replace(records, lines=lines.lines[records.lines])

    def _rows_of_csv(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield blocks of whole CSV records, without the header."""
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
            self._fault = Fault(block.line + int(records.lines[row]), faults[row], is_of_record=True)
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
        """Return, for each row, its fault or None. If each record is one line, a fault quotes the record's text."""
        lines = [] if self._read.options.is_multiple else block.data.split(b"\n")
        reasons: list[str | None] = [None] * len(records.lines)
        for row, reason in faults.items():
            text = lines[int(records.lines[row])].decode(errors="replace").rstrip("\r") if lines else ""
            reasons[row] = f"{reason}: {text[:_SHOWN_TEXT]}"
        return reasons


def _locate(types: JsonType, start: int, lines: _Longs) -> None:
    """Replace the examples ``(source, row)`` by pairs (start of the part, line in the part)."""
    types.kinds = {kind: (start, int(lines[row])) for kind, (_, row) in types.kinds.items()}
    for inner in (*types.fields.values(), *([types.item] if types.item else [])):
        _locate(inner, start, lines)


def read_into(read: TextRead, part: Part, folder: str) -> PartRead:
    """Read a part into a file of pages in a folder."""
    reader = PartReader(read, part)
    return reader.noted(written(counted(reader.batches()), folder))


def header_of(path: str, options: TextOptions) -> tuple[str, ...]:
    """Return the columns of a CSV file, from its first line; an empty tuple if the file has no line.

    Raises `BadTextError`, and the errors of `PartReader.batches`.
    """
    header = csv_header(first_lines(path, options), options)
    return () if header is None else header[0]
