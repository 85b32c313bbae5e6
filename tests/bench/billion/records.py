"""The records of the billion: a Parquet file per hour, each from its own seed, so that any of them can be written again.

As in `tests.bench.day`, records arrive in order, with timestamps that are earlier by an exponential delay with mean 60 s, or
30 minutes for one record in twenty. There are at most 50 M records in a day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.workload import HOUR_MS, KEYS, MINUTE_MS, START_MS

if TYPE_CHECKING:
    from pathlib import Path

SEED = 18
DAY_ROWS = 50_000_000
HOURS = 24
DAY_MS = HOURS * HOUR_MS
USERS = tuple(f"user-{number:05d}" for number in range(KEYS))
_SCHEMA = pa.schema(
    {
        "user": pa.string(),
        "amount": pa.float64(),
        "happened_at": pa.timestamp("ms", "UTC"),
        "arrived_at": pa.timestamp("ms", "UTC"),
    }
)
_TIMES = dict.fromkeys(("happened_at", "arrived_at"), "DELTA_BINARY_PACKED")


class Size(NamedTuple):
    """How many records there are."""

    rows: int

    @property
    def days(self) -> int:
        """The number of days that they arrive in."""
        return max(1, -(-self.rows // DAY_ROWS))

    def rows_of(self, hour: int) -> int:
        """Return the number of records that arrive in an hour."""
        hours = self.days * HOURS
        return self.rows * (hour + 1) // hours - self.rows * hour // hours


def name_of(hour: int) -> str:
    """Return the name of an hour's file."""
    return f"hour-{hour:04d}.parquet"


def end_of(day: int) -> int:
    """Return the end of a day, in epoch ms."""
    return START_MS + (day + 1) * DAY_MS


def write_hour(folder: Path, hour: int, rows: int) -> None:
    """Write the records that arrive in an hour. A file under its final name is whole."""
    rng = np.random.default_rng([SEED, hour])
    start = START_MS + hour * HOUR_MS
    arrived = np.sort(rng.integers(start, start + HOUR_MS, rows))
    mean_ms = np.where(rng.random(rows) < 1 / 20, 30 * MINUTE_MS, MINUTE_MS)
    codes = pa.array(rng.integers(0, KEYS, rows, dtype=np.int32))
    table = pa.table(
        {
            "user": pa.DictionaryArray.from_arrays(codes, list(USERS)).cast(pa.string()),
            "amount": np.round(rng.lognormal(3, 1, rows), 2),
            "happened_at": pa.array(arrived - rng.exponential(mean_ms).astype(np.int64)),
            "arrived_at": pa.array(arrived),
        }
    ).cast(_SCHEMA)
    draft = folder / f"{name_of(hour)}.draft"
    pq.write_table(table, draft, use_dictionary=["user", "amount"], column_encoding=_TIMES)
    draft.rename(folder / name_of(hour))
