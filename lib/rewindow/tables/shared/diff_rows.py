"""The rows of two tables in one order, grouped by key: which keys both have, and for which the rows differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.tables.shared.content_hash import canonical_values

IGNORED = ("_run", "_offset")
"""Columns in which equal branches may differ: the run that made a row, and its number in its own table."""

EPOCH = "_epoch"
"""The column of the landing that completed a row."""

Row = dict[str, Any]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_ORDER = ("_side", "_partition", "_offset")


class DiffRows:
    """Two tables with the same keys. A group has the rows of a key: the first table's in order, then the second's."""

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
        """Return for each group whether only that side has its key."""
        is_only: Bools = self._sizes[1 - side] == 0
        return is_only

    def different(self) -> tuple[Bools, Bools]:
        """Return for each group whether both sides have its key, with different rows; and whether in `EPOCH` alone."""
        one, other = self._sizes
        differs: Bools = one != other
        in_epoch = np.zeros(len(one), dtype=bool)
        names = [self._values(side) for side in (0, 1)]
        if set(names[0]) != set(names[1]):
            differs[:] = True
        alike = np.flatnonzero(~differs)
        firsts = self._positions(alike)
        groups = self._group[firsts]
        seconds = firsts + one[groups]
        rows = self._rows[firsts], self._rows[seconds] - self._tables[0].num_rows
        for name in names[0] if alike.size else ():
            values = [table[name].take(pa.array(taken)) for table, taken in zip(self._tables, rows, strict=True)]
            (in_epoch if name == EPOCH else differs)[groups[_differing(*values)]] = True
        in_epoch &= ~differs
        differs = (differs | in_epoch) & (one > 0) & (other > 0)
        return differs, differs & in_epoch

    def keys_of(self, groups: Numbers) -> Iterator[tuple[Any, ...]]:
        """Yield the key of each group."""
        if not self._keys:
            return iter([()] * len(groups))
        rows = pa.array(self._rows[self._starts[groups]])
        columns = [canonical_values(self._both[name].take(rows)).to_pylist() for name in self._keys]
        return zip(*columns, strict=True)

    def rows_of(self, group: int, side: int) -> list[Row]:
        """Return a side's rows of a group, in order, without key and ignored columns."""
        rows = self._tables[side].select(self._values(side)).take(pa.array(self._table_rows(group, side), pa.int64()))
        return list(rows.to_pylist())

    def _values(self, side: int) -> list[str]:
        return [name for name in self._tables[side].column_names if name not in self._keys and name not in IGNORED]

    def _positions(self, groups: Numbers) -> Numbers:
        """Return the positions, in the common order, of the first side's rows of these groups."""
        sizes = self._sizes[0][groups]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        positions: Numbers = np.repeat(self._starts[groups], sizes) + within
        return positions

    def _table_rows(self, group: int, side: int) -> Numbers:
        start = self._starts[group] + side * self._sizes[0][group]
        rows: Numbers = self._rows[start : start + self._sizes[side][group]] - side * self._tables[0].num_rows
        return rows


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with values that are equal if and only if they are the same: floats by their bits."""
    if not pa.types.is_floating(column.type):
        return column
    whole = canonical_values(column.cast(pa.float64()))
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in whole.chunks], pa.int64())


def unlike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
    """Return for each row whether two columns differ there; nulls are equal."""
    differs = pc.fill_null(pc.not_equal(one, other), pa.scalar(value=False))
    nulls = pc.not_equal(pc.is_null(one), pc.is_null(other))
    return np.asarray(pc.or_(differs, nulls).to_numpy(), dtype=bool)


def _differing(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
    """Return `unlike` for columns of any types: 1 equals 1.0, but not "1"."""
    kinds = one.type, other.type
    if kinds[0] != kinds[1] and all(map(_is_number, kinds)):
        one, other = one.cast(pa.float64(), safe=False), other.cast(pa.float64(), safe=False)
    elif kinds[0] != kinds[1] and not all(map(pa.types.is_decimal, kinds)):
        return np.asarray(pc.or_(pc.is_valid(one), pc.is_valid(other)).to_numpy(), dtype=bool)
    return unlike(comparable(one), comparable(other))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
