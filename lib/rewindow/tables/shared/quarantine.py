"""The selection of quarantine rows that a command reads, and the protocol by which an adapter returns rows.

The quarantine also has rows of landings that a later generation of the feed has replaced. An adapter leaves these rows out.
No column marks them, but the landing ledger states which rows each landing sent to the quarantine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from rewindow.control.ingest.protocols import LostRows

IN_ORDER = ("_run", "landing", "name", "topic", "partition", "offset", "timestamp")
"""The columns by which rows are sorted for people: first the rows of runs, run by run, then the rows of landings."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A selection of quarantine rows: the rows that meet every given condition. Without conditions, all rows.

    A row meets a condition in these cases. ``name``: the row belongs to this job or feed. ``is_landing``: a landing rejected
    the record. ``runs``, ``nodes``: one of these dropped the record. ``times``: the record's timestamp is between these two,
    inclusive. ``texts``: the record's JSON contains all of these texts.
    """

    name: str | None = None
    is_landing: bool = False
    runs: Collection[int] | None = None
    nodes: Collection[str] | None = None
    times: tuple[int, int] | None = None
    texts: Sequence[str] = ()


class Quarantine(Protocol):
    """The quarantine of a warehouse, without the rows of replaced landings."""

    @property
    def lost(self) -> Sequence[LostRows]:
        """The rows that the last `batches` or `first` left out, because the files of chosen rows are gone or damaged."""
        ...

    @property
    def replaced_rows(self) -> int:
        """The number of rows of replaced landings."""
        ...

    def batches(self, chosen: Chosen) -> Iterator[pa.Table]:
        """Yield the chosen rows in the order in which they are stored. Rows whose file is lost are left out; see `lost`."""
        ...

    def first(self, chosen: Chosen, limit: int, *, last: bool) -> tuple[int, pa.Table]:
        """Return the number of chosen rows, and the first (``last``: the last) ``limit`` of them in the order `IN_ORDER`."""
        ...
