"""Sources that a catalog governs, as `land` looks at them. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

NEW_ROWS, OLD_ROWS = "new rows", "old rows"
"""The paths of a governed table's pieces: what was never landed, and what was looked at before."""


@dataclass(frozen=True, slots=True)
class Governed:
    """A table of a catalog as a source: only Spark may open it, so its rows are told apart and not its files.

    New are rows of versions above ``after`` (None: nobody asks, what is due is told by other columns). ``arrivals``: the
    versions and when they were committed (epoch ms), where that is the arrival of their rows.
    """

    table: str
    after: int | None = None
    arrivals: tuple[tuple[int, int], ...] = ()
