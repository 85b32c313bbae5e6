"""Decide which small files to merge, and which files of a log are superseded. Pure.

Within one generation and partition each offset occurs once, so a file's first and last offset identify its records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

SMALL_BYTES = 16 << 20
"""Larger files are not merged."""

MERGED_BYTES = 64 << 20
"""Maximum size of a merged file, which is held in memory while it is written."""


class LogPart(NamedTuple):
    """A file of one generation and partition of a log, with offsets ``first`` to ``last``, both inclusive."""

    path: str
    rows: int
    bytes: int
    first: int
    last: int

    @property
    def is_gapless(self) -> bool:
        """Whether the row count matches the offset range."""
        return self.rows == self.last - self.first + 1


def due_merges(parts: Iterable[LogPart], held: Collection[str]) -> list[list[LogPart]]:
    """Return the groups of files of one generation and partition to merge: small neighbours in offset order.

    ``held`` files are left alone, because the next landing opens them by name.
    """
    groups: list[list[LogPart]] = []
    group: list[LogPart] = []
    for part in sorted(parts, key=lambda part: (part.first, part.path)):
        is_due = part.bytes <= SMALL_BYTES and part.is_gapless and part.path not in held
        is_next = bool(group) and part.first == group[-1].last + 1
        if group and not (is_due and is_next and sum(small.bytes for small in group) + part.bytes <= MERGED_BYTES):
            groups.append(group)
            group = []
        if is_due:
            group.append(part)
    return [files for files in (*groups, group) if len(files) > 1]


class Sized(Protocol):
    """A file."""

    @property
    def bytes(self) -> int:
        """Its size."""
        ...


SizedFile = TypeVar("SizedFile", bound=Sized)


def due_neighbours(files: Iterable[SizedFile], least: int) -> list[list[SizedFile]]:
    """Return the groups of at least ``least`` neighbouring files to merge, none larger than `MERGED_BYTES`."""
    groups: list[list[SizedFile]] = [[]]
    size = 0
    for file in files:
        if size + file.bytes > MERGED_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.bytes
    return [group for group in groups if len(group) >= max(least, 2)]


def is_covered(first: int, last: int, parts: Sequence[LogPart]) -> bool:
    """Return whether ``parts`` without gaps contain each offset from ``first`` to ``last``."""
    next_offset = first
    for part in sorted(parts, key=lambda part: part.first):
        if part.is_gapless and part.first <= next_offset <= part.last:
            next_offset = part.last + 1
    return next_offset > last
