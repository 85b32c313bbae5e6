"""The exact answer, computed by polars from the raw files alone, an hour at a time, and compared with the job's a day at a time.

The order of records is the documented one: partition (CRC-32 of the key), arrival, then the other columns. A partition's
clock is its largest timestamp so far. A window takes the records that come before the clock reaches its end plus grace.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

import polars as pl
from deltalake import DeltaTable

from tests.bench.billion.records import DAY_MS, HOURS, USERS, Size, end_of, name_of
from tests.bench.workload import GRACE_MS, HOUR_MS, PARTITIONS, START_MS

if TYPE_CHECKING:
    from pathlib import Path

SETTLED_MS = 3 * HOUR_MS
"""Windows that start so long before the end of a day are closed then."""
GROUP = ["partition", "window_start", "code"]
_TIME = pl.col("timestamp")
_DUE = pl.col("window_start") + HOUR_MS + GRACE_MS


def check_day(raw: Path, results: Path, state: Path, size: Size, day: int) -> dict[str, Any]:
    """Compute a day from the state after the previous one, compare the windows that it closes, and save the state.

    Returns the figures of the day: late records, results, and whether they are exact.
    """
    clocks, windows = _restored(state, day)
    late = 0
    for hour in range(day * HOURS, (day + 1) * HOURS):
        rows = _ordered(raw / name_of(hour), clocks)
        kept = rows.filter(pl.col("clock") < _DUE)
        late += rows.height - kept.height
        clocks = dict(rows.group_by("partition").agg(pl.col("clock").last()).iter_rows())
        sums = kept.group_by(GROUP).agg(pl.len().cast(pl.Int64).alias("events"), pl.col("cents").sum())
        windows = pl.concat([windows, sums]).group_by(GROUP).agg(pl.col("events", "cents").sum())
    until = end_of(day) - SETTLED_MS if day + 1 < size.days else end_of(day)
    clock = pl.col("partition").replace_strict(clocks, return_dtype=pl.Int64)
    is_settled = (pl.col("window_start") < until) & (clock >= _DUE)
    settled = windows.filter(is_settled).sort(GROUP)
    since = START_MS - DAY_MS if day == 0 else end_of(day - 1) - SETTLED_MS
    is_right, count = _compare(settled, _published(results, since, until))
    _save(state, day, clocks, windows.filter(~is_settled))
    return {"late": late, "results": count, "exact": is_right}


@cache
def _partitions() -> pl.DataFrame:
    found = {"user": USERS, "partition": [crc32(user.encode()) % PARTITIONS for user in USERS]}
    return pl.DataFrame(found).with_row_index("code")


def _ordered(file: Path, clocks: dict[int, int]) -> pl.DataFrame:
    """Return the records of a file in the order of each partition, with their windows and the clock at each."""
    read = (
        pl.read_parquet(file)
        .join(_partitions(), on="user")
        .rename({"arrived_at": "arrived", "happened_at": "timestamp"})
    )
    rows = read.select(
        "partition",
        "code",
        (pl.col("amount") * 100).round().cast(pl.Int64).alias("cents"),
        pl.col("arrived", "timestamp").dt.epoch("ms"),
    ).sort("partition", "arrived", "code", "cents", "timestamp")
    before = pl.col("partition").replace_strict(clocks, default=START_MS - DAY_MS, return_dtype=pl.Int64)
    clock = pl.max_horizontal(_TIME.cum_max().over("partition"), before)
    return rows.with_columns(window_start=_TIME - _TIME % HOUR_MS, clock=clock)


def _published(results: Path, since: int, until: int) -> pl.DataFrame:
    """Return the job's results for the windows that start within ``[since, until)``."""
    is_asked = (pl.col("window_start") >= since) & (pl.col("window_start") < until)
    read = pl.scan_parquet(DeltaTable(str(results)).file_uris(), hive_partitioning=False).filter(is_asked)
    found = read.select("user", "window_start", "events", "total").collect()
    return found.join(_partitions(), on="user", how="left").sort(GROUP)


def _compare(expected: pl.DataFrame, found: pl.DataFrame) -> tuple[bool, int]:
    """Return whether all results are exact, and their number."""
    names = [*GROUP, "events"]
    if not expected.select(names).equals(found.select(names)):
        return False, found.height
    wrong = (found["total"] * 100 - expected["cents"]).abs()
    return found.height == 0 or float(wrong.max()) < 1e-4, found.height  # type: ignore[arg-type] # a number


def _restored(state: Path, day: int) -> tuple[dict[int, int], pl.DataFrame]:
    if day == 0:
        kinds = {"partition": pl.Int64, "window_start": pl.Int64, "code": pl.UInt32, "events": pl.Int64}
        return {}, pl.DataFrame(schema={**kinds, "cents": pl.Int64})
    clocks = json.loads((state / f"clocks-{day - 1}.json").read_text())
    return {int(partition): clock for partition, clock in clocks.items()}, pl.read_parquet(
        state / f"windows-{day - 1}.parquet"
    )


def _save(state: Path, day: int, clocks: dict[int, int], windows: pl.DataFrame) -> None:
    state.mkdir(exist_ok=True)
    windows.write_parquet(state / f"windows-{day}.parquet")
    (state / f"clocks-{day}.json").write_text(json.dumps(clocks))
