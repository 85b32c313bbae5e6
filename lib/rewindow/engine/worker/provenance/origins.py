"""Origins: what a store's entry or an output row was made from, as a graph that points back to their causes in a replay.

An origin has one cause, the record or punctuation that was being handled, and is made from the origins of the entries that
were read for it before. So the transitive closure of a row's origin has every record and punctuation that contributed to it.

Several entries may be read for one cause, as by a punctuation that visits all keys. The *near* origins are those of the
row's own key and window; if none of its key was read, those of everything. The others are *far*. A row that is made from
entries of other keys as well needs them, and only a replay tells.

The row of a table is made from its newest record alone. The table's node reads the row that it *replaced*, too, and sends it
on. Whether something below needs that one, such as a filter that deletes a row, only a replay tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class Depth(IntEnum):
    """Which origins of an entry are followed, the fewest first."""

    NEAR = 0
    """Those of its key and window, without the rows that a table replaced."""
    REPLACED = 1
    """And these rows."""
    FAR = 2
    """All that was read."""


class Cause(NamedTuple):
    """What a task was handling: a record, a punctuation, or the end of an epoch.

    A punctuation has the node of its schedule, the time when it was due, and the record whose time fired it. ``topic`` is
    None if no record is being handled, because the epoch ends. ``order_ms`` and ``rank``, the number of its topic in the
    task, are the record's order key (L1).
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
        """Whether a record was being handled, and no punctuation."""
        return self.topic is not None and self.node is None


class Origin:
    """The cause of an entry or a row, and the origins that it was made from."""

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
        """``read`` lists everything read for this cause; it may grow, and only what it has now counts.

        ``is_sure``: whether nothing but the near origins contributed. ``source`` is the origin of the record that was
        handled, if another sub-topology sent it. ``replaced`` are the origins of a table's row that this one replaced.
        """
        self.cause, self.near, self.is_sure, self.source, self.replaced = cause, near, is_sure, source, replaced
        self._read, self._read_count = read, len(read)

    @property
    def far(self) -> Sequence[Origin]:
        """The origins of all that was read."""
        return self._read[: self._read_count]

    def above(self, depth: Depth, *, is_released: bool = False) -> Sequence[Origin]:
        """Return what it was made from. A released row is not made from the record that let it go."""
        source = () if self.source is None or is_released else (self.source,)
        if depth is Depth.FAR:
            return (*self.far, *source)
        return (*self.near, *(self.replaced if depth is Depth.REPLACED else ()), *source)


class Found(NamedTuple):
    """The causes behind a row, in no particular order. ``is_sure``: whether each of them contributed."""

    causes: dict[Cause, None]
    is_sure: bool


def causes_of(row: Origin, depth: Depth, *, is_released: bool = False) -> Found:
    """Return the causes behind a row, without its own."""
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
