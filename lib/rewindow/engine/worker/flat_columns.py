"""Which columns of a block have only nulls, or one value: a cheap sign of a column that a source stopped filling."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_LOOK = 1024
"""Rows that usually show that a column varies, so that the rest need not be looked at."""

_LONGEST = 60


class FlatColumns:
    """Follows the columns that have not varied so far. A column that varied costs nothing any more."""

    def __init__(self, names: Sequence[str]) -> None:
        self._values: dict[str, pa.Scalar | None] = dict.fromkeys(names)

    def add(self, rows: pa.RecordBatch) -> None:
        """Look at the next rows of a block, of which there is at least one."""
        for name, value in list(self._values.items()):
            column = rows.column(name)
            first = column[0] if value is None else value
            if _is_only(first, column.slice(0, _LOOK)) and _is_only(first, column):
                self._values[name] = first
            else:
                del self._values[name]

    def shown(self) -> dict[str, str | None]:
        """Return each column that did not vary with its value as text; None if it has only nulls."""
        values = {name: value.as_py() for name, value in self._values.items() if value is not None}
        return {name: None if value is None else str(value)[:_LONGEST] for name, value in values.items()}


def _is_only(value: pa.Scalar, column: pa.Array) -> bool:
    """Return whether a column has no other value. A null is a value of its own."""
    found = pc.unique(column)
    return len(found) == 1 and bool(found[0].equals(value))
