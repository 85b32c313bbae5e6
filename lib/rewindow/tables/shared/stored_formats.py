"""The formats that are stated in a warehouse's rows, and whether this version can read them. Nothing is changed.

Each row of a ledger or journal states its format. Of other tables, only files that a ledger names are read. The format of the
ledger applies to these files, too. A metrics table of format 1 is recognized by its columns. In a catalog, ledgers, journal
and metrics are rows of one table, and each row states its format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindow.control.plan.stored_rows import FORMAT

OLDEST = 1
"""The format of 0.1, whose rows do not state it."""


class Fit(StrEnum):
    """Whether this version can read a table, given the formats of its rows."""

    READ = "read as is"
    OLDER = "refused: written by an older version"
    NEWER = "refused: written by a newer version"
    ABSENT = "does not exist yet"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One of rewindow's own tables.

    ``rows``: maps each format to the number of rows that state it; None is the key of rows that state no format. ``refused``: the
    jobs or feeds with rows in a format that this version refuses.
    """

    table: str
    path: str
    fit: Fit
    rows: Mapping[int | None, int]
    refused: Sequence[str] = ()


def fit_of(formats: Collection[int]) -> Fit:
    """Return whether this version reads a table whose rows state these formats."""
    newer, older = any(stated > FORMAT for stated in formats), any(stated < FORMAT for stated in formats)
    return Fit.NEWER if newer else Fit.OLDER if older else Fit.READ
