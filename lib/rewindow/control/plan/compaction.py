"""Which small files of a log become one, and which files nothing needs any more: decided from offsets. Pure.

Within one generation and partition an offset is there once, so what a file holds is said by its first and last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from rewindow.control.ingest.landings import LANDING, PLAN
from rewindow.control.ingest.progress import fold_progress
from rewindow.control.plan.branches import LedgerRow

SMALL_BYTES = 16 << 20
"""Larger files stay as they are."""

MERGED_BYTES = 64 << 20
"""What goes into one file at most: it is held in memory while it is written."""


class LogPart(NamedTuple):
    """A file of a log's generation and partition: offsets ``first`` to ``last``, both included."""

    path: str
    rows: int
    bytes: int
    first: int
    last: int

    @property
    def is_gapless(self) -> bool:
        """Whether it has each of its offsets once, as far as counts tell."""
        return self.rows == self.last - self.first + 1


def due_merges(parts: Iterable[LogPart], held: Collection[str]) -> list[list[LogPart]]:
    """Return which files of one generation and partition become one: neighbours in offset order that are small.

    What is ``held`` back by a watermark stays: the next landing opens those files by name.
    """
    groups: list[list[LogPart]] = []
    group: list[LogPart] = []
    for part in sorted(parts, key=lambda part: (part.first, part.path)):
        is_due = part.bytes <= SMALL_BYTES and part.is_gapless and part.path not in held
        goes_on = bool(group) and part.first == group[-1].last + 1
        if group and not (is_due and goes_on and sum(one.bytes for one in group) + part.bytes <= MERGED_BYTES):
            groups.append(group)
            group = []
        if is_due:
            group.append(part)
    return [one for one in (*groups, group) if len(one) > 1]


def is_covered(first: int, last: int, parts: Sequence[LogPart]) -> bool:
    """Return whether each offset from ``first`` to ``last`` is in some other file, as far as counts tell."""
    reach = first
    for part in sorted(parts, key=lambda part: part.first):
        if part.is_gapless and part.first <= reach <= part.last:
            reach = part.last + 1
    return reach > last


def dead_landings(rows: Sequence[LedgerRow]) -> frozenset[str]:
    """Return the attempts of `land` that can never land: a later row took the place of theirs, or they said so."""
    planned = {row.body["attempt"]["id"] for row in rows if row.kind == PLAN}
    landed = {row.body["attempt"] for row in rows if row.kind == LANDING and "attempt" in row.body}
    return frozenset(planned - landed - {attempt.id for attempt in fold_progress(rows).unfinished})


def held_paths(rows: Sequence[LedgerRow], topic: str) -> frozenset[str]:
    """Return the files of a log that the next landing may open by name."""
    held = fold_progress(rows).held
    return frozenset(file.path for files in held.values() for file in files if file.topic == topic)
