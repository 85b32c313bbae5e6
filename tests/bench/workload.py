"""The log of the benchmarks: a day of records of many users, some of them late."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import ROWS_AT_ONCE
from rewindow.engine.worker.staging import StagingTarget
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, log_shape

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS, KEYS, EPOCHS = 8, 20_000, 24
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
START_MS = 1_767_225_600_000  # 2026-01-01
GRACE_MS, INTERVAL_MS = 10 * MINUTE_MS, 10 * MINUTE_MS
COLUMNS = [Column("offset", "long"), Column("timestamp", "long"), Column("user", "string"), Column("amount", "double")]


class Slice(NamedTuple):
    """One partition of the log: its file, and the offsets ``[start, end)`` of each epoch."""

    path: str
    bounds: list[tuple[int, int]]


def make_log(root: Path, rows: int, seed: int = 1, partitions: int = PARTITIONS) -> list[Slice]:
    """Stage a day of records in order of arrival, in hourly landings. One in twenty is half an hour late on average."""
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(START_MS, START_MS + 24 * HOUR_MS, rows))
    mean_ms = np.where(rng.random(rows) < 1 / 20, 30 * MINUTE_MS, MINUTE_MS)
    timestamps = arrival - rng.exponential(mean_ms).astype(np.int64)
    amounts = np.round(rng.lognormal(3, 1, rows), 2)
    numbers = rng.integers(0, KEYS, rows)
    names = [f"user-{number:05d}" for number in range(KEYS)]
    of_key, users = np.array([partition_of(name, partitions) for name in names]), pa.array(names)
    slices = []
    for partition in range(partitions):
        mine = np.flatnonzero(of_key[numbers] == partition)
        staging = StagingTarget("log/events", str(root), attempt="land", partition=partition)
        # By columns, because writing the log row by row took longer than all measurements.
        writer = staging.file(COLUMNS, ["offset"], partition)
        for some in np.split(mine, range(ROWS_AT_ONCE, len(mine), ROWS_AT_ONCE)):
            first = writer.rows
            columns = (np.arange(first, first + len(some)), timestamps[some], users.take(numbers[some]), amounts[some])
            writer.write(pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=writer.schema))
        file = writer.close()
        assert file is not None
        ends = np.searchsorted(arrival[mine], [START_MS + hour * HOUR_MS for hour in range(1, EPOCHS + 1)]).tolist()
        slices.append(Slice(f"{root}/{file.path}", list(zip([0, *ends], ends, strict=False))))
    return slices


def logs() -> LogShapes:
    """Return the shapes of the log: a bare key and a row as value, the defaults of a feed."""
    return {"events": (log_shape((COLUMNS[2],), is_scalar=True), log_shape((COLUMNS[3],), is_scalar=False))}
