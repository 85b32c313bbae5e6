"""Origins: a graph of the causes from which a replay made the entries of stores and the output rows.

An origin belongs to an entry of a store or to an output row. It has one cause: the record or punctuation that the task was
handling when it made the entry or row. The origin points to the origins of the entries that the task read for this cause. So
all records and punctuations that contributed to a row can be reached from the row's origin.

A task may read several entries for one cause. For example, a punctuation may visit all keys. The *near* origins of a row are
the origins of entries with the row's own key and window. If no entry of its key was read, they are the origins of all entries
that were read. The other origins are *far*. If a row was also made from entries of other keys, its far origins are needed.
Only a replay shows whether they are.

A table makes a row only from the newest record of its key. The table's node also reads the row that the record *replaced*,
and forwards it. A node below may need the replaced row, for example a filter that deletes a row. Only a replay shows whether
a node needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class Depth(IntEnum):
    """Which origins of an entry are followed. A larger depth follows more origins."""

    NEAR = 0
    """The near origins, without rows that a table replaced."""
    REPLACED = 1
    """The near origins and rows that a table replaced."""
    FAR = 2
    """The origins of all entries that were read."""


class Cause(NamedTuple):
    """The event that a task was handling: a record, a punctuation, or the end of an epoch.

    Topic, offset and timestamp are those of the record or, for a punctuation, of the record whose time fired it. ``node`` and
    ``due_ms`` are set only for a punctuation: the node of its schedule, and when it was due. At the end of an epoch, no
    record is being handled, so ``topic`` is None. ``order_ms`` is the record's order key (L1), and ``rank`` is the number of
    its topic in the task.
    """

    sub_topology: int
    partition: int
    epoch: int
    topic: str | None
    offset: int
    timestamp: int
    order_ms: int = -1
    rank: int = -1
    node: str | None = None
    due_ms: int = -1

    @property
    def is_record(self) -> bool:
        """Whether the task was handling a record, not a punctuation or the end of an epoch."""
        return self.topic is not None and self.node is None


class Origin:
    """The cause of an entry or a row, and the origins from which the entry or row was made."""

    __slots__ = ("_read", "_read_count", "cause", "is_sure", "near", "replaced", "source")

    def __init__(
        self,
        cause: Cause,
        near: Sequence[Origin],
        read: list[Origin],
        *,
        is_sure: bool = True,
        source: Origin | None = None,
        replaced: Sequence[Origin] = (),
    ) -> None:
        """``read`` lists the origins of all entries that were read for this cause. Items that are added later do not count.

        ``is_sure``: whether it is certain that only the near origins contributed. ``source`` is the origin of the record that
        the task was handling, if another sub-topology sent this record. ``replaced`` are the origins of the table's row that
        this row replaced.
        """
        self.cause, self.near, self.is_sure, self.source, self.replaced = cause, near, is_sure, source, replaced
        self._read, self._read_count = read, len(read)

    @property
    def far(self) -> Sequence[Origin]:
        """The origins of all entries that were read for the cause."""
        return self._read[: self._read_count]

    def above(self, depth: Depth, *, is_released: bool = False) -> Sequence[Origin]:
        """Return the origins from which the entry or row was made.

        ``is_released``: whether the record ``source`` only released the row, which had been waiting in a store. If so, the
        row was not made from this record.
        """
        source = () if self.source is None or is_released else (self.source,)
        if depth is Depth.FAR:
            return (*self.far, *source)
        return (*self.near, *(self.replaced if depth is Depth.REPLACED else ()), *source)


class Found(NamedTuple):
    """The causes of a row, in no particular order. ``is_sure``: whether each cause certainly contributed."""

    causes: dict[Cause, None]
    is_sure: bool


def causes_of(row: Origin, depth: Depth, *, is_released: bool = False) -> Found:
    """Return the causes of a row. They do not include the cause of the row's own origin."""
    causes: dict[Cause, None] = {}
    is_sure, waiting = row.is_sure, list(row.above(depth, is_released=is_released))
    visited = {id(row), *map(id, waiting)}
    while waiting:
        origin = waiting.pop()
        is_sure = is_sure and origin.is_sure
        causes[origin.cause] = None
        for above in origin.above(depth):
            if id(above) not in visited:
                visited.add(id(above))
                waiting.append(above)
    return Found(causes, is_sure)
