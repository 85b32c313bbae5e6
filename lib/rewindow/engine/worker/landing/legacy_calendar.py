"""Leave Parquet values to Spark that it wrote in the calendar of its versions before 3.0: Arrow takes them for other days.

That calendar is Julian before 1582-10-15, so day numbers before then mean other dates. Its timestamps before 1900 also have other
offsets of the zone, because Java's old classes knew no local mean time. The footer says which calendar a file has. Later
values are the same in both, so files without earlier ones are read by Arrow as any other.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pyarrow.parquet as pq

from rewindow.engine.worker.landing.source_types import UnsuitableError

_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"
_GREGORIAN_DAY = -141_427
"""1582-10-15 in days since 1970."""
_STANDARD_TIME_S = -2_208_988_800
"""1900-01-01 in seconds since 1970. Spark converts earlier timestamps."""
_PER_SECOND = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


def check_calendar(path: str, footer: pq.FileMetaData, columns: Collection[str]) -> None:
    """Raise `UnsuitableError` for a file with values in these columns that its calendar makes other days."""
    if not _is_legacy(footer):
        return
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        least = _least(column) if column.path in columns else None
        if least is not None and any(
            _may_be_earlier(footer, group, index, least) for group in range(footer.num_row_groups)
        ):
            raise UnsuitableError(f"{path} has early dates in {column.path}, in the calendar of Spark before 3.0")


def _is_legacy(footer: pq.FileMetaData) -> bool:
    """Return whether a file is in the old calendar, by Spark's own rule: its version, or a key of the legacy mode."""
    stated = footer.metadata or {}
    version = [int(part) for part in stated.get(_VERSION, b"").decode().split(".")[:1] if part.isdigit()]
    return _LEGACY in stated or any(major < 3 for major in version)


def _least(column: Any) -> int | None:
    """Return the first value of a column, as the file stores it, that both calendars write alike; None for other types."""
    kind = json.loads(column.logical_type.to_json())
    if kind["Type"] == "Date":
        return _GREGORIAN_DAY
    if kind["Type"] == "Timestamp" and kind["isAdjustedToUTC"]:  # Spark never converts local times
        return _STANDARD_TIME_S * _PER_SECOND[kind["timeUnit"]]
    return None


def _may_be_earlier(footer: pq.FileMetaData, group: int, index: int, least: int) -> bool:
    statistics = footer.row_group(group).column(index).statistics
    if statistics is None or not statistics.has_min_max:
        return statistics is None or statistics.null_count != footer.row_group(group).num_rows
    return int(statistics.min_raw) < least
