"""Rows of tables and stores as people read them: times as timestamps in UTC, runs by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.app.times import time_columns
from rewindow.contracts.instants import END_OF_TIME_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN = "_run"
INTERNAL = ("_epoch", "_partition", "_offset")
"""Columns of output tables that say where a row comes from, which only rewindow needs."""
_TIME = pa.timestamp("ms", tz="UTC")


def readable(rows: pa.Table, keys: Sequence[str], runs: Mapping[int, str] | None = None) -> pa.Table:
    """Return rows with the times of rewindow's own columns as timestamps, and ``_run`` as the name of the run in ``runs``.

    ``keys`` are the key columns, which tell the bounds of windows from fields of the same names. A time that is unknown, or the
    end of time, is null.
    """
    times, shown = time_columns(keys), {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if name in times and pa.types.is_int64(column.type):
            is_known = pc.and_(pc.greater_equal(column, 0), pc.less(column, END_OF_TIME_MS))
            shown[name] = pc.if_else(is_known, column, pa.scalar(None, pa.int64())).cast(_TIME)
        elif name == RUN and runs is not None:
            at = pc.index_in(column, pa.array(list(runs), pa.int64()))
            shown[name] = pa.array(list(runs.values()), pa.string()).take(at.combine_chunks())
        else:
            shown[name] = column
    return pa.table(shown)


def to_pandas(rows: pa.Table) -> Any:
    """Return rows as a pandas data frame. Whole numbers stay whole and exact, also beside nulls."""
    import pandas as pd  # noqa: PLC0415 - a second, which only this takes

    exact = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return rows.to_pandas(types_mapper=exact.get)


def readable_frame(
    session: SparkSession, frame: DataFrame, keys: Sequence[str], runs: Mapping[int, str], columns: Sequence[str]
) -> DataFrame:
    """Return the rows of some runs as `readable` shows them: ``columns`` of a Spark data frame with a ``_run``."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own convention; Spark only where it is needed

    names = session.createDataFrame([(run, name) for run, name in runs.items()], "`_id` long, `_name` string")
    joined = frame.join(F.broadcast(names), F.col(RUN) == F.col("_id"))
    times, shown = time_columns(keys), []
    for name in columns:
        column = F.col(f"`{name}`")
        if name in times and dict(frame.dtypes)[name] == "bigint":
            is_known = (column >= 0) & (column < END_OF_TIME_MS)
            column = F.timestamp_millis(F.when(is_known, column))
        shown.append((F.col("_name") if name == RUN else column).alias(name))
    return joined.select(*shown)


def for_spark(rows: pa.Table) -> pa.Table:
    """Return rows with times in microseconds, the only unit that Spark has."""
    fields = [
        field.with_type(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
