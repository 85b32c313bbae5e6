"""Sort rows by many columns: nulls first, texts by their UTF-8 bytes, NaN last, as Spark sorts.

Rows mostly arrive in order, and few agree in the first columns. So each further column is looked at only for the rows
that the columns before it leave equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]

_LEAST = np.iinfo(np.int64).min
_SMALL = np.iinfo(np.int16).max


def order_of(columns: Sequence[pa.Array]) -> Longs | None:
    """Return the row numbers in the order of the columns; None if the rows are in order. Equal rows keep their order."""
    rows = len(columns[0])
    order: Longs | None = None
    equal = np.arange(rows)
    """The positions whose rows all columns so far leave equal to a neighbour, in order; `groups` numbers the equal ones."""
    groups = np.zeros(rows, dtype=np.int64)
    for column in columns:
        if len(equal) < 2:
            break
        found = equal if order is None else order[equal]
        ranks = _ranks(column if len(found) == rows and order is None else column.take(pa.array(found)))
        positions = _positions_of(groups, ranks)
        if positions is not None:
            order = np.arange(rows) if order is None else order
            order[equal] = found[positions]
            ranks = ranks[positions]
        is_same = (ranks[1:] == ranks[:-1]) & (groups[1:] == groups[:-1])
        is_tied = np.concatenate((is_same, [False])) | np.concatenate(([False], is_same))
        is_one_group = groups[0] == groups[-1]
        numbers = ranks if is_one_group else np.cumsum(np.concatenate(([True], ~is_same)))
        equal, groups = equal[is_tied], numbers[is_tied]
    return order


def sort_key(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a value that compares as the row does in `order_of`: of Python values, one for each column."""
    return tuple((0,) if value is None else (2,) if _is_nan(value) else (1, value) for value in row)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


def _positions_of(groups: Longs, ranks: Longs) -> Longs | None:
    """Return how to sort the ranks within their groups, which are ascending; None if they are sorted."""
    if bool(((ranks[1:] >= ranks[:-1]) | (groups[1:] > groups[:-1])).all()):
        return None
    if groups[0] != groups[-1]:
        return np.lexsort((ranks, groups))
    if ranks.min() >= 0 and ranks.max() <= _SMALL:
        return np.argsort(ranks.astype(np.int16), kind="stable")  # a radix sort
    return np.argsort(ranks, kind="stable")


def _ranks(column: pa.Array) -> Longs:
    """Return integers that sort as the values do. A null gets the smallest."""
    if column.null_count == len(column):
        return np.zeros(len(column), dtype=np.int64)
    ranks = _value_ranks(column)
    if not column.null_count:
        return ranks
    nulls = np.asarray(column.is_null())
    if (ranks[~nulls] == _LEAST).any():
        ranks = np.unique(ranks, return_inverse=True)[1].astype(np.int64)
    ranks = ranks.copy()
    ranks[nulls] = _LEAST
    return ranks


def _value_ranks(column: pa.Array) -> Longs:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        filled = column.fill_null(False if pa.types.is_boolean(kind) else 0) if column.null_count else column
        return np.asarray(filled.cast(pa.int64()))
    if pa.types.is_floating(kind):
        floats = np.asarray(column.fill_null(0.0) if column.null_count else column).astype(np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        bits = floats.view(np.int64)
        return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    coded = column.dictionary_encode() if not pa.types.is_dictionary(kind) else column
    ranks = np.empty(len(coded.dictionary), dtype=np.int64)
    ranks[np.asarray(pc.sort_indices(coded.dictionary))] = np.arange(len(ranks))
    found: Longs = ranks[np.asarray(coded.indices.fill_null(0) if coded.null_count else coded.indices)]
    return found
