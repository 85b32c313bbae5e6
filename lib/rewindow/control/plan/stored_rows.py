"""The rows of a ledger, and the version of the format that every row of a ledger or journal states (R8).

The first rows of a ledger are read only on demand, because a stored fold has the state that results from them (ADR-127). A row
of another format raises an error before it is interpreted. `FORMAT` grows by one whenever the meaning of a stored row changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, overload

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import canonical_json
from rewindow.errors import CheckpointError

FORMAT = 2
"""The format that this version reads and writes. Version 0.1 wrote format 1 and did not state it."""
_KEY = "format"
_ADDED = {"journal": "sub_topology", "metrics": "branch"}
"""For each table whose columns changed since format 1, a column that format 1 did not have."""
_OWN_TABLE = re.compile(r"rewindow[/_](journal|metrics)$")


@dataclass(frozen=True, slots=True, eq=False)
class StoredFold:
    """The state that results from the first ``rows`` rows of a ledger, stored as lines of text (`stored_state`).

    ``token`` is the token of the first row. ``covers`` are the files with these rows. ``digest`` is the digest of the stored
    text. ``removal`` tells a user how to remove the stored fold, as an imperative.
    """

    rows: int
    token: str
    covers: frozenset[str]
    lines: Sequence[str]
    digest: str = ""
    removal: str = ""


class StoredRows(Sequence[LedgerRow]):
    """All rows of a ledger, in order."""

    def __init__(
        self,
        later: list[LedgerRow],
        fold: StoredFold | None = None,
        earlier: Callable[[StoredFold], Sequence[LedgerRow]] = lambda _fold: (),
        keeps_until: int = 0,
    ) -> None:
        """Bind to the rows after a stored fold, and to ``earlier``, which reads the rows that are in the fold.

        ``keeps_until``: the number of the last row that a new stored fold should include; 0 for no new fold.
        """
        self.later, self.fold, self.keeps_until = later, fold, keeps_until
        self._earlier = earlier

    def until(self, row: int) -> StoredRows:
        """Return the rows up to row number ``row``, which must be a row after the stored fold."""
        return StoredRows(self.later[: row - (self.fold.rows if self.fold else 0)], self.fold, self._earlier)

    def __len__(self) -> int:
        """Return the number of rows."""
        return (self.fold.rows if self.fold else 0) + len(self.later)

    @overload
    def __getitem__(self, index: int) -> LedgerRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[LedgerRow]: ...

    def __getitem__(self, index: int | slice) -> LedgerRow | list[LedgerRow]:
        """Return the row at an index, or some rows. The rows of the stored fold are read only if some of them are needed."""
        before, length = self.fold.rows if self.fold else 0, len(self)
        if isinstance(index, slice):
            start, stop, step = index.indices(length)
            if start >= before and step == 1:
                return self.later[start - before : max(start, stop) - before]
            return [*self][index]
        position = index + length if index < 0 else index
        if not 0 <= position < length:
            message = f"row {index} of {length}"
            raise IndexError(message)
        return (
            self.later[position - before]
            if position >= before or self.fold is None
            else self._earlier(self.fold)[position]
        )

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same rows. ``other`` may be a list."""
        if not isinstance(other, StoredRows | list):
            return NotImplemented
        return self is other or [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[LedgerRow]:
        """Yield all rows in order."""
        return chain(self._earlier(self.fold), self.later) if self.fold else iter(self.later)


def identity(rows: Sequence[LedgerRow]) -> str:
    """Return the token of a ledger's first row; ``""`` without rows."""
    stored, later = known_part(rows)
    return stored.token if stored else later[0].token if later else ""


def known_part(rows: Sequence[LedgerRow]) -> tuple[StoredFold | None, Sequence[LedgerRow]]:
    """Return the stored fold of a ledger, or None, and the rows after it."""
    return (rows.fold, rows.later) if isinstance(rows, StoredRows) else (None, rows)


def stored_json(data: Mapping[str, Any]) -> str:
    """Return the JSON text of a stored row, which states `FORMAT`."""
    return canonical_json({**data, _KEY: FORMAT})


def load_stored(text: str, table: str) -> dict[str, Any]:
    """Return the data of a stored row without its format. Raises `CheckpointError` (76) if the row has another format."""
    data: dict[str, Any] = json.loads(text)
    _check_format(data.pop(_KEY, 1), table)
    return data


def check_layout(table: str, columns: Collection[str]) -> None:
    """Raise `CheckpointError` (76) if a table is rewindow's journal or metrics and has the columns of format 1."""
    own = _OWN_TABLE.search(table)
    if own and _ADDED[own[1]] not in columns:
        _check_format(1, table)


def _check_format(stated: object, table: str) -> None:
    if stated == FORMAT:
        return
    if stated == 1:
        raise CheckpointError(
            "table-format-too-old",
            "{table} was written by rewindow 0.1 (format 1), but this version reads format {reads}: choose another "
            "warehouse and land again, or read it with rewindow 0.1",
            table=table,
            reads=FORMAT,
        )
    raise CheckpointError(
        "table-format-too-new",
        "{table} has rows of format {format}, but this version reads format {reads}: upgrade rewindow",
        table=table,
        format=stated,
        reads=FORMAT,
    )
