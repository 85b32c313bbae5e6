"""The sessions of each key, sorted by their ends."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

Entry = tuple[int, int, int]
"""End and start of a session (epoch ms), and its slot."""


class SessionsByEnd:
    """Sorted lists of sessions by key number.

    Sessions that are open do not overlap, so they are sorted by their starts, too. Closed ones have earlier ends.
    """

    def __init__(self) -> None:
        """Start without sessions."""
        self._of_key: dict[int, list[Entry]] = {}

    def of(self, key: int) -> list[Entry]:
        """Return the sessions of a key, to change them."""
        return self._of_key.setdefault(key, [])

    def add(self, key: int, entry: Entry, expired_ms: int) -> None:
        """Add a session, and forget those that ended before ``expired_ms``."""
        mine = self.of(key)
        del mine[: bisect_left(mine, (expired_ms,))]
        insort(mine, entry)

    def keep(self, kept: Sequence[bool], moved: Sequence[int]) -> None:
        """Forget the sessions of some slots, and give the others new slots."""
        left = ((key, list(_kept(mine, kept, moved))) for key, mine in self._of_key.items())
        self._of_key = {key: mine for key, mine in left if mine}


def touching(mine: Sequence[Entry], time_ms: int, gap_ms: int, open_from_ms: int) -> slice:
    """Return the span of the open sessions of a key that a record at ``time_ms`` touches: they become one."""
    first = bisect_left(mine, (max(time_ms - gap_ms, open_from_ms),))
    end = first
    while end < len(mine) and mine[end][1] <= time_ms + gap_ms:
        end += 1
    return slice(first, end)


def _kept(mine: Sequence[Entry], kept: Sequence[bool], moved: Sequence[int]) -> Iterator[Entry]:
    return ((end, start, moved[slot]) for end, start, slot in mine if kept[slot])
