"""Read rows of a catalog's tables in the order in which people see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention


def first_of(frame: DataFrame, names: Sequence[str], limit: int, *, last: bool) -> pa.Table:
    """Return the ``limit`` rows that come first in the order of some columns or, with ``last``, last in the same order."""
    order = [expression for name in names for expression in _ordered(frame, name, last=last)]
    rows = frame.orderBy(*order).limit(limit).toArrow()
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64())) if last else rows


def _ordered(frame: DataFrame, name: str, *, last: bool) -> Iterator[Column]:
    """Yield the order of a column as Arrow has it: values, then NaN, then null, in both directions."""
    column = F.col(f"`{name}`")
    if dict(frame.dtypes)[name] in {"double", "float"}:
        yield F.coalesce(F.isnan(column), F.lit(False)).asc()
    yield column.desc_nulls_last() if last else column.asc_nulls_last()
