"""The formats that a warehouse's stored rows state, and whether this version reads them. Nothing is changed.

Ledgers and the journal state the format of each row. All other tables are read only as far as a ledger names their files, so its
format is theirs; a metrics table of format 1 is recognized by its columns. In a catalog, ledgers, journal and metrics are rows of
one table, each of which states its format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindow.control.plan.stored_rows import FORMAT

OLDEST = 1
"""The format of 0.1, whose rows do not state it."""


class Fit(StrEnum):
    """What this version makes of a table's format."""

    READ = "read as is"
    OLDER = "refused: written by an older version"
    NEWER = "refused: written by a newer version"
    ABSENT = "does not exist yet"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of rewindow's own: the number of its rows by format, and the jobs or feeds that have rows in other formats.

    Rows that state no format have None: their table is recognized by its columns.
    """

    table: str
    path: str
    fit: Fit
    rows: Mapping[int | None, int]
    refused: Sequence[str] = ()


def fit_of(formats: Collection[int]) -> Fit:
    """Return what this version makes of a table whose rows state some formats."""
    newer, older = any(stated > FORMAT for stated in formats), any(stated < FORMAT for stated in formats)
    return Fit.NEWER if newer else Fit.OLDER if older else Fit.READ
