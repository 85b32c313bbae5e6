"""The actions of a Delta commit, as merges and retractions build them: statistics, partition values, removed files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction, RemoveAction

Actions = Sequence[AddAction | RemoveAction]


def file_stats(rows: pa.Table, bounded: Iterable[str]) -> dict[str, Any]:
    """Return Delta's statistics of a file: counts for all columns, and bounds for the named ones that have values."""
    bounds = {name: pc.min_max(rows[name]).as_py() for name in bounded}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: bound["min"] for name, bound in bounds.items() if bound["min"] is not None},
        "maxValues": {name: bound["max"] for name, bound in bounds.items() if bound["max"] is not None},
        "nullCount": {name: column.null_count for name, column in zip(rows.column_names, rows.columns, strict=True)},
    }


def removal(path: str, values: Mapping[str, Any], *, data_change: bool) -> RemoveAction:
    """Return the action that removes a file of the partition with these values."""
    return RemoveAction(path, data_change, time.time_ns() // 1_000_000, None, partition_values(values))


def partition_values(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Return partition values as Delta's log has them."""
    return {name: None if value is None else str(value) for name, value in values.items()}
