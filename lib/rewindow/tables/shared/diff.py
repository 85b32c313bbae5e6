"""How two tables differ: the first row, or key by key."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.contracts.instants import instant
from rewindow.errors import UsageError
from rewindow.tables.shared.diff_rows import DiffRows, Row

_TIMES = frozenset({"window_start", "window_end", "_timestamp", "_buffer_time"})
"""Columns of epoch milliseconds."""

PARTITION_ROWS = 100_000
"""About how many rows of each table are in memory at once, unless one key has more."""


@dataclass(frozen=True, slots=True)
class TableDiff:
    """How many keys are equal, different, or only in one of two tables; and sample rows of keys that differ."""

    equal: int
    different: int
    only_first: int
    only_second: int
    samples: Sequence[tuple[Row, Sequence[Row], Sequence[Row]]] = field(default=())
    """Of each sample key: the key, the first table's rows, the second's rows, as in `rows_apart`."""
    only_epoch: int = 0
    """Of the different keys: how many have the same rows of another landing, that is, differ in `_epoch` alone."""

    @property
    def apart(self) -> int:
        """The number of keys that differ, or that only one table has."""
        return self.different + self.only_first + self.only_second

    @property
    def is_none(self) -> bool:
        """Whether the tables are equal."""
        return not self.apart


def compare_pairs(pairs: Iterable[tuple[pa.Table, pa.Table]], keys: Sequence[str], *, samples: int = 5) -> TableDiff:
    """Compare two tables part by part; all rows of a key are in one part."""
    total = TableDiff(0, 0, 0, 0)
    for first, second in pairs:
        found = compare(first, second, keys, samples=samples)
        total = TableDiff(
            total.equal + found.equal,
            total.different + found.different,
            total.only_first + found.only_first,
            total.only_second + found.only_second,
            sorted([*total.samples, *found.samples], key=lambda sample: _order(sample[0].values()))[:samples],
            total.only_epoch + found.only_epoch,
        )
    return total


def compare(first: pa.Table, second: pa.Table, keys: Sequence[str], *, samples: int = 5) -> TableDiff:
    """Compare two tables key by key: the rows of a key in order, all columns but `IGNORED`.

    Values are equal as in the content hash: -0.0 equals 0.0, NaN equals NaN. Raises `UsageError` (2) for different keys.
    """
    check_keys(first.schema, second.schema, keys)
    both = DiffRows(first, second, keys)
    different, only_epoch = both.different()
    only_first, only_second = both.only(0), both.only(1)
    apart = np.flatnonzero(different | only_first | only_second)
    shown = nsmallest(samples, zip(both.keys_of(apart), apart.tolist(), strict=True), key=lambda pair: _order(pair[0]))
    return TableDiff(
        len(different) - len(apart),
        int(different.sum()),
        int(only_first.sum()),
        int(only_second.sum()),
        [
            (dict(zip(keys, key, strict=True)), *rows_apart(both.rows_of(group, 0), both.rows_of(group, 1)))
            for key, group in shown
        ],
        int(only_epoch.sum()),
    )


def rows_apart(first: Sequence[Row], second: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of a key without those that are equal: of equally many, in the same place, else at both ends."""
    if len(first) == len(second):
        pairs = [(one, other) for one, other in zip(first, second, strict=True) if not _are_equal(one, other)]
        return [one for one, _ in pairs], [other for _, other in pairs]
    shortest = min(len(first), len(second))
    begin = next((at for at in range(shortest) if not _are_equal(first[at], second[at])), shortest)
    least = shortest - begin
    end = next((at for at in range(least) if not _are_equal(first[-1 - at], second[-1 - at])), least)
    return list(first[begin : len(first) - end]), list(second[begin : len(second) - end])


def _are_equal(one: Row, other: Row) -> bool:
    return one.keys() == other.keys() and all(
        value == other[name] or (value != value and other[name] != other[name])  # noqa: PLR0124 - NaN equals NaN here
        for name, value in one.items()
    )


def check_keys(first: pa.Schema, second: pa.Schema, keys: Sequence[str]) -> None:
    """Raise `UsageError` (2) unless two tables have the same key columns."""
    for name in keys:
        one, other = (schema.field(name).type if name in schema.names else "missing" for schema in (first, second))
        if one != other or one == "missing":
            message = (
                f"the key column {name!r} is {one} in one and {other} in the other: compare branches with the same keys"
            )
            raise UsageError(message)


def _order(key: Iterable[Any]) -> str:
    return repr(tuple(key))


def first_difference(before: pa.Table | None, now: pa.Table | None, *, ignored: Sequence[str] = ()) -> str | None:
    """Describe the first row, in total order, that only one of two sets of rows has; None if they are equal.

    ``ignored`` columns do not count. None stands for no rows.
    """
    (names, gone), (others, new) = _counted(before, ignored), _counted(now, ignored)
    gone, new = gone - new, new - gone
    apart = sorted([*gone, *new], key=repr)
    if not apart:
        return None
    row, columns = apart[0], names or others
    where, opposite, has = ("before, not now", new, "now has") if row in gone else ("now, not before", gone, "had")
    changed = [(at, one[at]) for one in opposite if (at := _only_difference(row, one)) is not None]
    told = f"{where}: {_shown(columns, row)}"
    if len(changed) == 1:
        ((at, value),) = changed
        told += f", which {has} {_shown([columns[at]], [value])}"
    return told


def _only_difference(row: Sequence[Any], other: Sequence[Any]) -> int | None:
    """Return the position of the only value in which two rows differ; None if they differ in more."""
    pairs = enumerate(zip(row, other, strict=True))
    different = [at for at, (one, two) in pairs if one is not two and one != two]  # NaN is one object
    return different[0] if len(different) == 1 else None


def _shown(columns: Sequence[str], row: Sequence[Any]) -> str:
    """Return a row as text, with times as people read them."""
    pairs = zip(columns, row, strict=True)
    texts = (
        f"{name!r}: {instant(value, str(value)) if name in _TIMES and isinstance(value, int) else repr(value)}"
        for name, value in pairs
    )
    return "{" + ", ".join(texts) + "}"


def _counted(rows: pa.Table | None, ignored: Sequence[str]) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    if rows is None:
        return [], Counter()
    kept = rows.select([name for name in rows.column_names if name not in ignored])
    return kept.column_names, Counter(zip(*map(_comparable, kept.columns), strict=True))


def _comparable(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column with one object for every NaN, which then equals itself."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [math.nan if value is not None and math.isnan(value) else value for value in values]
