"""Divide a JSON file with ``lines: multiple`` into objects, one per line, as `json_records` takes them.

The file has objects over several lines, or one list of objects. This module only divides: it counts brackets outside of
strings. Whether an object is valid JSON is for `json_records` to say. So a file is accepted only if the text between its
objects is right, which is checked here, and if each object is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rewindow.engine.worker.text.json_records import escaped

LARGEST = 64 << 20
"""The most bytes of an object."""

_BLANKS = b" \t\r\n"
_QUOTE, _TAB, _LINE_FEED, _BLANK, _BACKSLASH, _LIST, _LIST_END = b'"\t\n \\[]'
_DEPTHS = np.zeros(256, np.int64)
_DEPTHS[list(b"{[")] = 1
_DEPTHS[list(b"}]")] = -1
_IS_MARK = bytes(sign in b'"{}[]\n' for sign in range(256))


@dataclass(frozen=True, slots=True)
class JsonLines:
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


def json_lines(chunks: Iterable[bytes]) -> Iterator[JsonLines]:
    """Yield the objects of a file in its order, in blocks.

    ``chunks`` are the bytes of the file, divided anywhere, without a byte order mark; of some MB each, because a block has
    the objects that end in a chunk. They are UTF-8, which the caller checks in them or in the blocks. In memory are at most one
    object and two chunks. Line breaks between the tokens of an object become blanks, and those in its strings tabs, which
    `json_records` refuses there.

    Raises `UndividedError` for text outside of the objects, a comma too many or too few, two objects in a line without a list, an
    object or list without an end, and an object of more than `LARGEST` bytes. The blocks before it are valid, but what
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
        if size > LARGEST:
            raise UndividedError(division.begin_of(rest), f"an object of more than {LARGEST >> 20} MB")
        # Without an object so far, wait until the text has doubled. Otherwise a large one would be searched with each chunk.
        enough = 0 if lines is not None else min(2 * size, LARGEST + 1)
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

    def divide(self, text: bytes) -> tuple[JsonLines | None, bytes]:
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
        records = JsonLines(b"\n".join(objects), lines[: len(objects)]) if objects else None
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
