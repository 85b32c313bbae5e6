"""Split JSON lines into columns of raw tokens.

`json_tokens` defines which lines are accepted, and reads lines one by one. This is slow, but most lines of a file look alike.
So a line that `json_tokens` has accepted becomes a template: its text without its values. Another line matches the template
under two conditions. It has exactly the template's text between its values. Each of its values is valid, and of the same kind
as the template's value at this place. The template comes from a valid object, so a line that matches is a valid object with
the same fields. Many lines are matched at once. `json_tokens` reads all lines that match no template, or that have objects or
lists as values.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.text.json_tokens import Member, TokenError, members
from rewindow.engine.worker.text.pages import Records

Positions = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_QUOTE, _BACKSLASH, _LINE_FEED, _RETURN, _N = b'"\\\n\rn'
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_SCALAR = {False: f"{_NUMBER}|true|false|null", True: f"{_NUMBER}|true|false|null|NaN|-?Infinity"}
_ESCAPES = np.isin(np.arange(256), list(b'"\\/bfnrtu'))
_HEX = np.isin(np.arange(256), list(b"0123456789abcdefABCDEF"))
# The bytes of a word. Literals are compared word by word.
_WORD = 8
_TOGETHER = 256
_WORTH = 64
"""Matching a template takes about as much time as reading this many lines one by one."""
_MOST_POOR = 8
"""If this many templates in a row each matched at most `_WORTH` lines, the remaining lines are read one by one."""


def json_records(data: bytes, *, wanted: Collection[str] | None = None, constants: bool = False) -> Records:
    """Tokenize JSON lines into columns: one for each top-level field, with the raw JSON tokens of its values.

    ``data`` are complete lines in valid UTF-8, without a byte order mark, of less than 2 GB. A line of only JSON blanks is no
    record. Any other line that is not exactly one object (RFC 8259) is a row with a fault. There is a column for each name
    that occurs, in the order of first occurrence. With ``wanted``, there are only columns of these names. ``null`` and a
    missing field become null; any other value is stored as its exact text. ``constants`` accepts ``NaN``, ``Infinity`` and
    ``-Infinity``.
    """
    block = _Block(data)
    block.read(constants=constants)
    rows = np.flatnonzero(~block.is_blank)
    row_of = np.cumsum(~block.is_blank) - 1
    columns = {
        name: block.column(block.columns[name], rows)
        for name in sorted(block.columns, key=lambda name: block.columns[name].rank)
        if wanted is None or name in wanted
    }
    faults = {int(row_of[line]): reason for line, reason in sorted(block.faults.items())}
    return Records(columns, rows, faults)


def gather(data: bytes | pa.Buffer, starts: Positions, ends: Positions, is_valid: _Mask | None = None) -> pa.Array:
    """Return spans of a text as an array of strings, with null where ``is_valid`` is false.

    The spans are ascending and do not overlap.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.string())
    # The offsets describe an array of the spans and of the gaps between them. Taking every other item copies all spans in one
    # pass.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1]
    pieces = pa.StringArray.from_buffers(2 * count, pa.py_buffer(offsets), pa.py_buffer(data))
    mask = None if is_valid is None else ~is_valid
    return pieces.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=mask))


def escaped(backslashes: Positions) -> Positions:
    """Return the positions of escaped characters, given those of backslashes.

    In a series of backslashes, the first, third, fifth and so on escape the character after them.
    """
    numbers = np.arange(len(backslashes))
    is_start = np.diff(backslashes, prepend=-2) > 1
    run = np.maximum.accumulate(np.where(is_start, numbers, 0))
    positions: Positions = backslashes[(numbers - run) % 2 == 0] + 1
    return positions


def _are_scalars(data: bytes, starts: Positions, ends: Positions, *, constants: bool) -> _Mask:
    """Return a mask of the spans that are numbers or literals.

    Each span is followed by the same byte, which occurs in no number or literal.
    """
    count = len(starts)
    # Starting a match takes most of its time. So many tokens are matched at once, each with the byte after it.
    texts = gather(data, starts, ends + 1)
    separator = data[ends[0] : ends[0] + 1]
    offsets = np.frombuffer(texts.buffers()[1], np.int32, count + 1)
    heads = np.append(offsets[:-1:_TOGETHER], offsets[-1])
    groups = pa.StringArray.from_buffers(len(heads) - 1, pa.py_buffer(heads), texts.buffers()[2])
    scalar = _SCALAR[constants]
    pattern = f"^(?:(?:{scalar})[{separator.decode()}])*$"
    # If there are as many separators as tokens, no separator is within a token.
    is_each_one = texts.buffers()[2].to_pybytes().count(separator) == count
    if is_each_one and pc.all(pc.match_substring_regex(groups, pattern)).as_py():
        return np.ones(count, np.bool_)
    is_scalar: _Mask = pc.match_substring_regex(gather(data, starts, ends), f"^(?:{scalar})$").to_numpy(
        zero_copy_only=False
    )
    return is_scalar


@dataclass(slots=True)
class _Column:
    """The positions of a field's values. Each list has one array per template that has the field."""

    rank: tuple[int, int]
    """The line in which the field first occurs, and the field's number in that line."""
    lines: list[Positions] = field(default_factory=list)
    starts: list[Positions] = field(default_factory=list)
    ends: list[Positions] = field(default_factory=list)
    # Triples (line, start, end), for lines that were read one by one.
    single: list[tuple[int, int, int]] = field(default_factory=list)


class _Template:
    """An accepted line without its values: the literal texts before, between and after them."""

    def __init__(self, line: bytes, fields: list[Member]) -> None:
        self.names = [name for name, _, _ in fields]
        self.are_strings = [line[start] == _QUOTE for _, start, _ in fields]
        # The quotes of a string belong to the literals around it.
        spans = [(start + quote, end - quote) for (_, start, end), quote in zip(fields, self.are_strings, strict=True)]
        bounds = [0, *(bound for span in spans for bound in span), len(line)]
        self.literals = [line[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
        self.quotes = [literal.count(b'"') for literal in self.literals]


class _Block:
    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        # Whole words of eight bytes are compared, so the last word needs more bytes after the data.
        self.data = data + bytes(_WORD)
        self.padded = np.frombuffer(self.data, np.uint8)
        self.bytes = self.padded[: self.size]
        self.words = np.ndarray((self.size + 1,), "<u8", self.data, strides=(1,))
        marks = np.flatnonzero((self.bytes == _QUOTE) | (self.bytes < 32))
        signs = self.bytes[marks]
        is_end = signs == _LINE_FEED
        self.line_ends = marks[is_end]
        if self.size and self.bytes[-1] != _LINE_FEED:
            self.line_ends = np.append(self.line_ends, self.size)
        self.line_starts = np.empty_like(self.line_ends)
        self.line_starts[:1] = 0
        self.line_starts[1:] = self.line_ends[:-1] + 1
        self.is_irregular = np.zeros(len(self.line_ends), np.bool_)
        is_mark = is_end | (signs == _QUOTE)
        if not is_mark.all():
            self._judge_controls(marks[~is_mark])
        if b"\\" in data:
            is_escaped = np.zeros(self.size + 1, np.bool_)
            is_escaped[self._escaped()] = True
            is_mark &= is_end | ~is_escaped[marks]
        if not is_mark.all():
            marks, is_end = marks[is_mark], is_end[is_mark]
        # `marks` has the positions of line feeds, and of quotes that begin or end a string. For each line, `firsts` has the
        # index in `marks` of the line's first quote, and `counts` has the number of its quotes.
        self.marks = marks
        last = np.flatnonzero(is_end)
        if len(last) < len(self.line_ends):
            last = np.append(last, len(marks))
        self.firsts = np.empty_like(last)
        self.firsts[:1] = 0
        self.firsts[1:] = last[:-1] + 1
        self.counts = last - self.firsts
        self.is_blank = self.line_starts == self.line_ends
        self.columns: dict[str, _Column] = {}
        self.faults: dict[int, str] = {}

    def _line_of(self, positions: Positions) -> Positions:
        return np.searchsorted(self.line_ends, positions)

    def _judge_controls(self, controls: Positions) -> None:
        """Treat a carriage return before a line feed as part of the line's end.

        Mark lines with other control characters as irregular.
        """
        is_return = (self.bytes[controls] == _RETURN) & (self.padded[controls + 1] == _LINE_FEED)
        self.line_ends[self._line_of(controls[is_return])] -= 1
        self.is_irregular[self._line_of(controls[~is_return])] = True

    def _escaped(self) -> Positions:
        """Return the positions of escaped characters. Mark lines with invalid escapes or escaped surrogates as irregular."""
        slashes = np.flatnonzero(self.bytes == _BACKSLASH)
        positions = escaped(slashes)
        signs = self.padded[positions]
        is_bad = ~_ESCAPES[signs]
        points = positions[signs == ord("u")]
        digits = [self.padded[points + offset] for offset in range(1, 5)]
        is_odd = ~np.logical_and.reduce([_HEX[digit] for digit in digits])
        is_odd |= (digits[0] | 32 == ord("d")) & (digits[1] >= ord("8"))
        for wrong in (positions[is_bad], points[is_odd]):
            self.is_irregular[self._line_of(wrong - 1)] = True
        return positions

    def read(self, *, constants: bool) -> None:
        """Find the fields of all lines."""
        is_left = ~(self.is_blank | self.is_irregular | (self.counts == 0))
        left = np.flatnonzero(is_left)
        singles = [np.flatnonzero(~is_left & ~self.is_blank)]
        poor = 0
        while len(left) > _WORTH and poor < _MOST_POOR:
            counts = self.counts[left]
            pick = int(np.argmax(counts == np.bincount(counts).argmax()))
            template = self._template(int(left[pick]), constants=constants)
            if template is None:
                singles.append(left[pick : pick + 1])
                left = np.delete(left, pick)
                poor += 1
                continue
            is_like, positions = self._match(template, left)
            # These lines include the line from which the template was made.
            lines = left[is_like]
            left = left[~is_like]
            poor = poor + 1 if len(lines) <= _WORTH else 0
            singles.append(self._read_alike(template, lines, positions, constants=constants))
        for line in np.sort(np.concatenate([*singles, left])):
            self._read_single(int(line), constants=constants)

    def _column(self, name: str, line: int, ordinal: int) -> _Column:
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = _Column((line, ordinal))
        elif (line, ordinal) < column.rank:
            column.rank = (line, ordinal)
        return column

    def _fields(self, line: int, *, constants: bool) -> list[Member]:
        """Return the fields of a line, with positions relative to its start. Raises `TokenError`."""
        return _members(self.data[self.line_starts[line] : self.line_ends[line]], constants=constants)

    def _template(self, line: int, *, constants: bool) -> _Template | None:
        """Return the template of a line; None if the line is not accepted, or cannot be a template."""
        try:
            fields = self._fields(line, constants=constants)
        except TokenError:
            return None
        template = _Template(self.data[self.line_starts[line] : self.line_ends[line]], fields)
        # Only the grammar finds the end of an object or a list. A name with an escape may contain an escaped quote. `marks`
        # does not have it, so quotes could not be counted.
        is_nested = any(self.data[self.line_starts[line] + field.start] in b"{[" for field in fields)
        return None if is_nested or any(b"\\" in literal for literal in template.literals) else template

    def _read_single(self, line: int, *, constants: bool) -> None:
        """Read a line with `json_tokens`."""
        start = int(self.line_starts[line])
        if not self.data[start : self.line_ends[line]].strip(b" \t\r"):
            self.is_blank[line] = True
            return
        try:
            fields = self._fields(line, constants=constants)
        except TokenError as error:
            self.faults[line] = str(error)
            return
        for ordinal, (name, begin, end) in enumerate(fields):
            self._column(name, line, ordinal).single.append((line, begin + start, end + start))

    def _match(self, template: _Template, lines: Positions) -> tuple[_Mask, list[Positions]]:
        """Return a mask of the lines that have a template's literals in order, and each literal's positions in these lines.

        Between the literals, these lines have no quotes.
        """
        is_like = self.counts[lines] == sum(template.quotes)
        chosen = np.flatnonzero(is_like)
        lines = lines[chosen]
        positions = self._positions_of(template, lines)
        # First leave out lines in which literals would overlap, or would extend beyond the end of the line. In these, the
        # comparison of literals below would read beyond the data.
        is_fit = np.ones(len(lines), np.bool_)
        end = self.line_starts[lines]
        for index, (position, literal) in enumerate(zip(positions, template.literals, strict=True)):
            is_fit &= position >= end if index else position == end
            end = position + len(literal)
        is_fit &= end == self.line_ends[lines]
        for index, literal in enumerate(template.literals):
            if not is_fit.all():
                chosen, positions, is_fit = chosen[is_fit], [position[is_fit] for position in positions], is_fit[is_fit]
            is_fit = self._is_at(positions[index], literal)
        is_like[:] = False
        is_like[chosen[is_fit]] = True
        return is_like, positions if is_fit.all() else [position[is_fit] for position in positions]

    def _positions_of(self, template: _Template, lines: Positions) -> list[Positions]:
        """Return the positions at which a template's literals would be in some lines.

        A literal is found by its first quote. The quotes of the literals before it tell the number of this quote in the line.
        """
        positions: list[Positions] = []
        before = 0
        for literal, quotes in zip(template.literals, template.quotes, strict=True):
            # Only the last literal, the end of the object, has no quote.
            if quotes:
                positions.append(self.marks[self.firsts[lines] + before] - literal.index(b'"'))
            else:
                positions.append(self.line_ends[lines] - len(literal))
            before += quotes
        return positions

    def _is_at(self, positions: Positions, literal: bytes) -> _Mask:
        if len(literal) < _WORD:
            expected = np.uint64(int.from_bytes(literal, "little"))
            is_short: _Mask = (self.words[positions] & np.uint64((1 << 8 * len(literal)) - 1)) == expected
            return is_short
        offsets = {*range(0, len(literal) - _WORD, _WORD), len(literal) - _WORD}
        is_equal = np.ones(len(positions), np.bool_)
        for offset in sorted(offsets):
            word = np.uint64(int.from_bytes(literal[offset : offset + _WORD], "little"))
            is_equal &= self.words[positions + offset] == word
        return is_equal

    def _read_alike(
        self, template: _Template, lines: Positions, positions: list[Positions], *, constants: bool
    ) -> Positions:
        """Read lines that have a template's literals at ``positions``. Return the lines with a value of another kind.

        For each literal, ``positions`` has an array with its position in each line.
        """
        starts = [position + len(literal) for position, literal in zip(positions, template.literals, strict=True)][:-1]
        ends = positions[1:]
        is_fit = np.ones(len(lines), np.bool_)
        for index, is_string in enumerate(template.are_strings):
            # Strings need no further check: lines with characters that may be invalid are irregular, and not read here.
            if is_string:
                starts[index] -= 1
                ends[index] = ends[index] + 1
            else:
                is_fit &= _are_scalars(self.data, starts[index], ends[index], constants=constants)
        others = lines[~is_fit]
        if len(others):
            lines, starts, ends = lines[is_fit], [start[is_fit] for start in starts], [end[is_fit] for end in ends]
        if len(lines):
            for ordinal, name in enumerate(template.names):
                column = self._column(name, int(lines[0]), ordinal)
                column.lines.append(lines)
                column.starts.append(starts[ordinal])
                column.ends.append(ends[ordinal])
        return others

    def column(self, column: _Column, rows: Positions) -> pa.Array:
        """Return the values of a field as an array of tokens. ``rows``: the lines that are records."""
        if not column.single and [len(lines) for lines in column.lines] == [len(rows)]:
            starts, ends = column.starts[0], column.ends[0]
        else:
            # A missing value is an empty span at the beginning of its line, because spans must ascend.
            starts, ends = self.line_starts.copy(), self.line_starts.copy()
            for lines, some_starts, some_ends in zip(column.lines, column.starts, column.ends, strict=True):
                starts[lines], ends[lines] = some_starts, some_ends
            if column.single:
                lines, some_starts, some_ends = np.array(column.single, np.int64).T
                starts[lines], ends[lines] = some_starts, some_ends
            starts, ends = starts[rows], ends[rows]
        # A token that begins with n is the literal null.
        is_valid = (ends > starts) & (self.padded[starts] != _N)
        return gather(self.data, starts, ends, None if is_valid.all() else is_valid)


def _members(line: bytes, *, constants: bool) -> list[Member]:
    """Return the fields of an object. Their positions count bytes."""
    text = line.decode()
    fields = members(text, constants=constants)
    if len(text) == len(line):
        return fields
    located: list[Member] = []
    position, offset = 0, 0
    for name, start, end in fields:
        offset += len(text[position:start].encode())
        size = len(text[start:end].encode())
        located.append(Member(name, offset, offset + size))
        position, offset = end, offset + size
    return located
