"""The rows of a ledger. Its beginning is read only if somebody asks for it: a stored fold says what it gives (ADR-127)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

from rewindow.control.plan.branches import LedgerRow


@dataclass(frozen=True, slots=True, eq=False)
class StoredFold:
    """What folding the first ``rows`` rows of a ledger gives, as lines.

    ``token`` is that of the first row, ``covers`` are the files that these rows are in, ``digest`` is that of what is stored.
    ``removal`` says to a user how to remove it, as an imperative.
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
        """Bind to the rows after those of a stored fold, and to what reads those. ``keeps_until``: see `Ledger`."""
        self.later, self.fold, self.keeps_until = later, fold, keeps_until
        self._earlier = earlier

    def until(self, row: int) -> StoredRows:
        """Return the rows up to one that is not covered by the stored fold."""
        return StoredRows(self.later[: row - (self.fold.rows if self.fold else 0)], self.fold, self._earlier)

    def __len__(self) -> int:
        """Return the number of rows."""
        return (self.fold.rows if self.fold else 0) + len(self.later)

    @overload
    def __getitem__(self, index: int) -> LedgerRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[LedgerRow]: ...

    def __getitem__(self, index: int | slice) -> LedgerRow | list[LedgerRow]:
        """Return the row at an index, or some rows. Reads the beginning of the ledger if it is among them."""
        before, length = self.fold.rows if self.fold else 0, len(self)
        if isinstance(index, slice):
            start, stop, step = index.indices(length)
            if start >= before and step == 1:
                return self.later[start - before : max(start, stop) - before]
            return [*self][index]
        at = index + length if index < 0 else index
        if not 0 <= at < length:
            message = f"row {index} of {length}"
            raise IndexError(message)
        return self.later[at - before] if at >= before or self.fold is None else self._earlier(self.fold)[at]

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same rows. A list may be equal."""
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
    """Return the stored fold of a ledger, if it has one, and the rows after it."""
    return (rows.fold, rows.later) if isinstance(rows, StoredRows) else (None, rows)
