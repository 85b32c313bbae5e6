"""Read rows of a catalog's tables for people: the first or last rows, the rows of a key, and a value similar to a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention


def first_of(frame: DataFrame, names: Sequence[str], limit: int, *, last: bool) -> pa.Table:
    """Return the first ``limit`` rows (with ``last``, the last ones) in the order of the columns ``names``."""
    order = [expression for name in names for expression in _ordered(frame, name, last=last)]
    rows = frame.orderBy(*order).limit(limit).toArrow()
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64())) if last else rows


def _ordered(frame: DataFrame, name: str, *, last: bool) -> Iterator[Column]:
    """Yield Spark's sort expressions for a column in Arrow's order: values, then NaN, then null, ascending and descending."""
    column = F.col(f"`{name}`")
    if dict(frame.dtypes)[name] in {"double", "float"}:
        yield F.coalesce(F.isnan(column), F.lit(False)).asc()
    yield column.desc_nulls_last() if last else column.asc_nulls_last()


def rows_of_key(frame: DataFrame, key: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return the rows whose key columns have one of the given values, in the order in which they were written."""
    for name, values in key.items():
        column = F.col(f"`{name}`")
        same = column.isin([value for value in values if value is not None])
        frame = frame.where(same | column.isNull() if None in values else same)
    return frame.orderBy("_epoch", "_partition", "_offset").toArrow()


def similar_value(frame: DataFrame, name: str, text: str) -> str | None:
    """Return a value of a column that differs from ``text`` only in case or surrounding blanks; None if there is none."""
    column = F.col(f"`{name}`")
    is_similar = (F.lower(F.trim(column)) == text.strip().lower()) & (column != text)
    values = frame.where(is_similar).select(column).limit(1).collect()
    return str(values[0][0]) if values else None
