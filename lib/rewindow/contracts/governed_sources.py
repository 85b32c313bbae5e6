"""Sources that a catalog governs, as `land` finds them."""

from __future__ import annotations

from dataclasses import dataclass

NEW_ROWS, OLD_ROWS = "new rows", "old rows"
"""The paths of a governed table's pieces: rows never landed, and rows that an earlier landing has seen."""


@dataclass(frozen=True, slots=True)
class Governed:
    """A catalog's table as a source. Only Spark may open it, so landings distinguish its rows, not its files.

    Rows of versions above ``after`` are new (None: other columns decide what is due). ``arrivals``: versions with their
    commit times (epoch ms), if those are the arrival times of their rows.
    """

    table: str
    after: int | None = None
    arrivals: tuple[tuple[int, int], ...] = ()
