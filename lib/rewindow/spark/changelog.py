"""Changelog files on their way in: batch by batch, in the order of their runs, so that later rows of a key win."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from rewindow.core.schema import Shape
from rewindow.errors import StorageError
from rewindow.spark.checked import UNREADABLE, open_checked
from rewindow.spark.rows import decode


def read_changelog(
    paths: Sequence[str],
    key: Shape,
    value: Shape,
    *,
    wanted: Callable[[Any], bool] | None = None,
    chosen: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the ``(key, value)`` rows of changelog files, in the order of their runs.

    ``wanted``: see `changelog_batches`. ``chosen`` says which rows of a batch become values at all.
    """
    columns = [*key.names, *value.names, "_tombstone"]
    width = len(key.columns)
    for batch in changelog_batches(paths, columns, wanted=wanted):
        arrays = (batch if chosen is None else chosen(batch)).columns
        values = decode(value, arrays[width:-1])
        gone = arrays[-1].to_pylist()
        for row_key, row_value, is_gone in zip(decode(key, arrays[:width]), values, gone, strict=True):
            yield row_key, None if is_gone else row_value


def changelog_batches(
    paths: Iterable[str], columns: Sequence[str], *, wanted: Callable[[Any], bool] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of changelog files, in order. Row groups for whose metadata ``wanted`` is false are left out.

    Raises `StorageError` (74) for a file that cannot be read.
    """
    for path in paths:
        try:
            with open_checked(path) as parquet:
                known = parquet.metadata
                groups = [n for n in range(known.num_row_groups) if wanted is None or wanted(known.row_group(n))]
                if groups:
                    for batch in parquet.iter_batches(columns=list(columns), row_groups=groups):
                        yield batch.select(list(columns))
        except UNREADABLE as error:
            message = (
                f"cannot read the checkpoint file {path}: {error}. Put it back from a copy, or replay the job in a new "
                "lineage (`rewindow run JOB --lineage NAME`)"
            )
            raise StorageError(message) from error


def reaches(column: str, above: int) -> Callable[[Any], bool]:
    """Return whether a row group may have a larger value of a column than ``above``, as its statistics say."""

    def wanted(group: Any) -> bool:
        for number in range(group.num_columns):
            chunk = group.column(number)
            if chunk.path_in_schema == column:
                known = chunk.statistics
                return known is None or not known.has_min_max or known.max > above
        return True

    return wanted
