"""The rows of the quarantine that a command asks for, and how an adapter returns them.

Rows of landings that a later generation of their feed replaced stay in the table, and no column tells them apart: the landing
ledger names what each landing put there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

IN_ORDER = ("_run", "landing", "name", "topic", "partition", "offset", "timestamp")
"""The order of rows for people: those of jobs in the order of their runs, then those of landings."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which rows of the quarantine: all, or those that fulfil each condition that is given.

    ``name``: of a job or feed. ``is_landing``: rejected by a landing. ``runs``, ``nodes``: dropped by one of these.
    ``times``: the first and the last timestamp. ``texts``: the JSON of the record contains each.
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
    def replaced_rows(self) -> int:
        """The number of rows of replaced landings."""
        ...

    def batches(self, chosen: Chosen) -> Iterator[pa.Table]:
        """Yield the rows, in the order in which they are stored. Raises `StorageError` (74) for lost rows."""
        ...

    def first(self, chosen: Chosen, limit: int, *, last: bool) -> tuple[int, pa.Table]:
        """Return the number of rows, and the ``limit`` first ones `IN_ORDER`, or the last ones of it."""
        ...
