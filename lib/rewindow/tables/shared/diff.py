"""How two tables differ: the first row, or key by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.errors import UsageError
from rewindow.tables.shared.diff_rows import DiffRows, Row

PARTITION_ROWS = 100_000
"""About how many rows of each table are in memory at once, where a key has fewer."""


@dataclass(frozen=True, slots=True)
class TableDiff:
    """How many keys two tables have alike, otherwise, or one without the other; and rows of some that differ."""

    equal: int
    different: int
    only_first: int
    only_second: int
    samples: Sequence[tuple[Row, Sequence[Row], Sequence[Row]]] = field(default=())
    """For each: the key, the first table's rows of it, the second's."""

    @property
    def is_none(self) -> bool:
        """Whether the tables say the same."""
        return not (self.different or self.only_first or self.only_second)


def compare_pairs(pairs: Iterable[tuple[pa.Table, pa.Table]], keys: Sequence[str], *, samples: int = 5) -> TableDiff:
    """Compare tables that come in parts, all rows of a key in one part."""
    total = TableDiff(0, 0, 0, 0)
    for first, second in pairs:
        found = compare(first, second, keys, samples=samples)
        total = TableDiff(
            total.equal + found.equal,
            total.different + found.different,
            total.only_first + found.only_first,
            total.only_second + found.only_second,
            sorted([*total.samples, *found.samples], key=lambda sample: _order(sample[0].values()))[:samples],
        )
    return total


def compare(first: pa.Table, second: pa.Table, keys: Sequence[str], *, samples: int = 5) -> TableDiff:
    """Compare two tables key by key: the rows of a key in their order, all columns but `IGNORED`.

    Cells are equal as in the content hash: -0.0 is 0.0, and NaN is NaN. Raises `UsageError` (2) if they have other keys.
    """
    check_keys(first.schema, second.schema, keys)
    both = DiffRows(first, second, keys)
    different, only_first, only_second = both.different(), both.only(0), both.only(1)
    apart = np.flatnonzero(different | only_first | only_second)
    shown = nsmallest(samples, zip(both.keys_of(apart), apart.tolist(), strict=True), key=lambda pair: _order(pair[0]))
    return TableDiff(
        len(different) - len(apart),
        int(different.sum()),
        int(only_first.sum()),
        int(only_second.sum()),
        [(dict(zip(keys, key, strict=True)), both.rows_of(group, 0), both.rows_of(group, 1)) for key, group in shown],
    )


def check_keys(first: pa.Schema, second: pa.Schema, keys: Sequence[str]) -> None:
    """Raise `UsageError` (2) if two tables have not the same keys: then they have nothing in common to compare."""
    for name in keys:
        one, other = (schema.field(name).type if name in schema.names else "missing" for schema in (first, second))
        if one != other or one == "missing":
            message = f"their key column {name!r} is {one} here and {other} there: compare branches whose outputs have one key"
            raise UsageError(message)


def _order(key: Iterable[Any]) -> str:
    return repr(tuple(key))


def first_difference(before: pa.Table | None, now: pa.Table | None, *, ignored: Sequence[str] = ()) -> str | None:
    """Return in words the first row, in total order, that two sets of rows do not share; None if there is none.

    ``ignored`` columns do not count. Rows that cannot be read are none.
    """
    (names, gone), (others, new) = _counted(before, ignored), _counted(now, ignored)
    gone, new = gone - new, new - gone
    apart = sorted([*gone, *new], key=repr)
    if not apart:
        return None
    where = "before, not now" if apart[0] in gone else "now, not before"
    return f"{where}: {dict(zip(names or others, apart[0], strict=True))}"


def _counted(rows: pa.Table | None, ignored: Sequence[str]) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    if rows is None:
        return [], Counter()
    kept = rows.select([name for name in rows.column_names if name not in ignored])
    return kept.column_names, Counter(zip(*kept.to_pydict().values(), strict=True))
