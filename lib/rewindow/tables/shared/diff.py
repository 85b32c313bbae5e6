"""Differences between two tables: the first row that only one of them has, or a comparison key by key.

`compare` sorts the rows of both tables and groups them by key.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.instants import instant
from rewindow.errors import UsageError
from rewindow.tables.shared.content_hash import canonical_values

_TIMES = frozenset({"window_start", "window_end", "_timestamp", "_buffer_time"})
"""Columns of epoch milliseconds."""

PARTITION_ROWS = 100_000
"""About this many rows of each table are in memory at once, or more if a single key has more."""
IGNORED = ("_run", "_offset")
"""Columns in which equal branches may differ: the run that made a row, and the offset of the row in its table."""
EPOCH = "_epoch"
"""The column with the landing that completed a row."""
Row = dict[str, Any]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
_ORDER = ("_side", "_partition", "_offset")


@dataclass(frozen=True, slots=True)
class TableDiff:
    """How many keys of two tables are equal, different, or only in one of them; and sample rows of keys that differ."""

    equal: int
    different: int
    only_first: int
    only_second: int
    samples: Sequence[tuple[Row, Sequence[Row], Sequence[Row]]] = field(default=())
    """For each sample key: the key, its rows in the first table, and its rows in the second table. Rows that both tables have
    are left out (`rows_apart`)."""
    only_epoch: int = 0
    """How many of the ``different`` keys have rows that differ only in `_epoch`, because another landing completed them."""

    @property
    def apart(self) -> int:
        """The number of keys that differ, or that only one table has."""
        return self.different + self.only_first + self.only_second

    @property
    def is_none(self) -> bool:
        """Whether the tables are equal."""
        return not self.apart


def compare_pairs(pairs: Iterable[tuple[pa.Table, pa.Table]], keys: Sequence[str], *, samples: int = 5) -> TableDiff:
    """Compare two tables part by part. A pair has a part of each table, and all rows of a key are in the same pair."""
    total = TableDiff(0, 0, 0, 0)
    for first, second in pairs:
        part = compare(first, second, keys, samples=samples)
        total = TableDiff(
            total.equal + part.equal,
            total.different + part.different,
            total.only_first + part.only_first,
            total.only_second + part.only_second,
            sorted([*total.samples, *part.samples], key=lambda sample: _order(sample[0].values()))[:samples],
            total.only_epoch + part.only_epoch,
        )
    return total


def compare(first: pa.Table, second: pa.Table, keys: Sequence[str], *, samples: int = 5) -> TableDiff:
    """Compare two tables key by key. The rows of a key are compared in order, in all columns except `IGNORED`.

    Values are equal as in the content hash, so -0.0 equals 0.0 and NaN equals NaN. Raises `UsageError` (2) if the key columns
    differ.
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
    """Return the rows of a key in each of two tables, in order. Rows that both tables have equally often are left out.

    If the tables have the same rows in different orders, the rows at positions that differ are returned.
    """
    pair = [[_comparable_row(row) for row in rows] for rows in (first, second)]
    counts, other_counts = map(Counter, pair)
    if counts == other_counts:
        moved = [index for index, (row, other) in enumerate(zip(*pair, strict=True)) if row != other]
        return [first[index] for index in moved], [second[index] for index in moved]
    ours, theirs = counts - other_counts, other_counts - counts
    return _counted_rows(first, pair[0], ours), _counted_rows(second, pair[1], theirs)


def _counted_rows(rows: Sequence[Row], comparable_rows: Sequence[Any], counts: Counter[Any]) -> list[Row]:
    """Return some of ``rows``, in order: of rows that are equal, only the first ``counts[row]``."""
    taken = []
    for row, same in zip(rows, comparable_rows, strict=True):
        if counts[same] > 0:
            counts[same] -= 1
            taken.append(row)
    return taken


def _comparable_row(row: Row) -> tuple[tuple[str, Any], ...]:
    """Return a row as a value that can be compared: NaN equals NaN, and the order of columns does not matter."""
    values = {name: repr(value) if isinstance(value, list | dict) else value for name, value in row.items()}
    return tuple((name, math.nan if (value := values[name]) != value else value) for name in sorted(values))


def check_keys(first: pa.Schema, second: pa.Schema, keys: Sequence[str]) -> None:
    """Raise `UsageError` (2) if a table lacks a key column, or if the types of a key column differ."""
    for name in keys:
        first_type, second_type = (
            schema.field(name).type if name in schema.names else "missing" for schema in (first, second)
        )
        if first_type != second_type or first_type == "missing":
            raise UsageError(
                "diff-key-types-differ",
                "the key column {column!r} is {type} in one and {other_type} in the other: compare branches with the same keys",
                column=name,
                type=first_type,
                other_type=second_type,
            )


def _order(key: Iterable[Any]) -> str:
    return repr(tuple(key))


def first_difference(before: pa.Table | None, now: pa.Table | None, *, ignored: Sequence[str] = ()) -> str | None:
    """Describe the first row, in total order, that is in only one of two sets of rows. Return None if the sets are equal.

    If ``before`` or ``now`` is None, this set has no rows. ``ignored``: the columns that are not compared.
    """
    (names, gone), (others, new) = _counted(before, ignored), _counted(now, ignored)
    gone, new = gone - new, new - gone
    apart = sorted([*gone, *new], key=repr)
    if not apart:
        return None
    row, columns = apart[0], names or others
    where, opposite, has = ("before, not now", new, "now has") if row in gone else ("now, not before", gone, "had")
    changed = [
        (position, candidate[position])
        for candidate in opposite
        if (position := _only_difference(row, candidate)) is not None
    ]
    description = f"{where}: {_shown(columns, row)}"
    if len(changed) == 1:
        ((position, value),) = changed
        description += f", which {has} {_shown([columns[position]], [value])}"
    return description


def _only_difference(row: Sequence[Any], other: Sequence[Any]) -> int | None:
    """Return the position of the value in which two rows differ; None if they differ in several values or in none."""
    # `is not` comes first because `!=` would say that NaN differs from itself. `_comparable` made every NaN the same object.
    pairs = enumerate(zip(row, other, strict=True))
    different = [index for index, (old, new) in pairs if old is not new and old != new]
    return different[0] if len(different) == 1 else None


def _shown(columns: Sequence[str], row: Sequence[Any]) -> str:
    """Return a row as text, with epoch milliseconds as dates and times."""
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
    """Return the values of a column, with one object for all NaNs, so that tuples which contain NaN can be equal."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [math.nan if value is not None and math.isnan(value) else value for value in values]


class DiffRows:
    """The rows of two tables in groups by key. A group has the first table's rows in order, then the second table's.

    ``side`` is 0 for the first table and 1 for the second.
    """

    def __init__(self, first: pa.Table, second: pa.Table, keys: Sequence[str]) -> None:
        """Sort both tables, without making Python objects of their rows."""
        self._tables, self._keys = (first, second), keys
        both = pa.concat_tables(
            table.select([*keys, *_ORDER[1:]]).append_column(
                "_side", pa.repeat(pa.scalar(side, pa.int8()), table.num_rows)
            )
            for side, table in enumerate(self._tables)
        )
        key_columns = [comparable(both[name]) for name in keys]
        names = [f"{number}" for number in range(len(keys))]
        sorting = pa.table([*key_columns, *(both[name] for name in _ORDER)], names=[*names, *_ORDER])
        order = pc.sort_indices(sorting, sort_keys=[(name, "ascending") for name in (*names, *_ORDER)])
        starts = np.zeros(both.num_rows, dtype=bool)
        starts[:1] = True
        for column in key_columns:
            ordered = column.take(order)
            starts[1:] |= unlike(ordered.slice(0, max(both.num_rows - 1, 0)), ordered.slice(1))
        self._both = both
        self._rows: Numbers = order.to_numpy()
        self._group: Numbers = np.cumsum(starts) - 1
        groups = int(starts.sum())
        is_second = self._rows >= first.num_rows
        self._sizes: list[Numbers] = [
            np.bincount(self._group[side], minlength=groups) for side in (~is_second, is_second)
        ]
        self._starts: Numbers = np.flatnonzero(starts)

    def only(self, side: int) -> Bools:
        """Return a mask of the groups in which only this side has rows."""
        is_only: Bools = self._sizes[1 - side] == 0
        return is_only

    def different(self) -> tuple[Bools, Bools]:
        """Return two masks of groups: those whose rows differ between the tables, and those whose rows differ only in `EPOCH`.

        A group that only one table has is in neither mask.
        """
        first_sizes, second_sizes = self._sizes
        differs: Bools = first_sizes != second_sizes
        in_epoch = np.zeros(len(first_sizes), dtype=bool)
        names = [self._values(side) for side in (0, 1)]
        if set(names[0]) != set(names[1]):
            differs[:] = True
        equal_sized = np.flatnonzero(~differs)
        firsts = self._positions(equal_sized)
        groups = self._group[firsts]
        seconds = firsts + first_sizes[groups]
        rows = self._rows[firsts], self._rows[seconds] - self._tables[0].num_rows
        for name in names[0] if equal_sized.size else ():
            values = [table[name].take(pa.array(taken)) for table, taken in zip(self._tables, rows, strict=True)]
            (in_epoch if name == EPOCH else differs)[groups[_differing(*values)]] = True
        in_epoch &= ~differs
        differs = (differs | in_epoch) & (first_sizes > 0) & (second_sizes > 0)
        return differs, differs & in_epoch

    def keys_of(self, groups: Numbers) -> Iterator[tuple[Any, ...]]:
        """Yield the key of each group."""
        if not self._keys:
            return iter([()] * len(groups))
        rows = pa.array(self._rows[self._starts[groups]])
        columns = [canonical_values(self._both[name].take(rows)).to_pylist() for name in self._keys]
        return zip(*columns, strict=True)

    def rows_of(self, group: int, side: int) -> list[Row]:
        """Return the rows of one side of a group, in order, without key columns and ignored columns."""
        rows = self._tables[side].select(self._values(side)).take(pa.array(self._table_rows(group, side), pa.int64()))
        return list(rows.to_pylist())

    def _values(self, side: int) -> list[str]:
        return [name for name in self._tables[side].column_names if name not in self._keys and name not in IGNORED]

    def _positions(self, groups: Numbers) -> Numbers:
        """Return where the rows of some groups are in the sorted order of both tables, only for rows of the first table."""
        sizes = self._sizes[0][groups]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        positions: Numbers = np.repeat(self._starts[groups], sizes) + within
        return positions

    def _table_rows(self, group: int, side: int) -> Numbers:
        start = self._starts[group] + side * self._sizes[0][group]
        rows: Numbers = self._rows[start : start + self._sizes[side][group]] - side * self._tables[0].num_rows
        return rows


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose values can be compared with `==`. Floats are replaced by their bits, so NaN equals NaN."""
    if not pa.types.is_floating(column.type):
        return column
    whole = canonical_values(column.cast(pa.float64()))
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in whole.chunks], pa.int64())


def unlike(column: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
    """Return a mask of the rows in which two columns have different values. Two nulls are equal."""
    differs = pc.fill_null(pc.not_equal(column, other), pa.scalar(value=False))
    nulls = pc.not_equal(pc.is_null(column), pc.is_null(other))
    return np.asarray(pc.or_(differs, nulls).to_numpy(), dtype=bool)


def _differing(column: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
    """Return a mask of the rows in which two columns of any types have different values. 1 equals 1.0, but not "1"."""
    kinds = column.type, other.type
    if kinds[0] != kinds[1] and all(map(_is_number, kinds)):
        column, other = column.cast(pa.float64(), safe=False), other.cast(pa.float64(), safe=False)
    elif kinds[0] != kinds[1] and not all(map(pa.types.is_decimal, kinds)):
        return np.asarray(pc.or_(pc.is_valid(column), pc.is_valid(other)).to_numpy(), dtype=bool)
    return unlike(comparable(column), comparable(other))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
