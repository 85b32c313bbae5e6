"""A few months of synthetic flights and weather in the format of the demo, in a copy of the project."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

START = datetime(2013, 1, 1, tzinfo=UTC)
MONTHS = 3


def write_sources(root: Path, seed: int = 7, flights: int = 1500) -> None:
    """Write the two sources below a project's warehouse. Some flights are late, early or cancelled."""
    rng = random.Random(seed)
    departures = [_flight(rng) for _ in range(flights)]
    weather = [
        {
            "origin": origin,
            "temp": rng.uniform(20, 90),
            "wind_speed": rng.choice([None, 5.5, 11.0]),
            "precip": 0.0,
            "reported_at": START + timedelta(hours=hour),
        }
        for hour in range(0, 24 * 30 * MONTHS, 6)
        for origin in ("EWR", "JFK", "LGA")
    ]
    raw = root / "warehouse" / "raw"
    for name, rows in (("departures", departures), ("weather", weather)):
        (raw / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), raw / name / "2013.parquet")


def _flight(rng: random.Random) -> dict[str, object]:
    scheduled = START + timedelta(minutes=rng.randint(0, 60 * 24 * 30 * MONTHS))
    is_cancelled = rng.random() < 0.03
    delay = None if is_cancelled else float(int(rng.expovariate(1 / 40)) - 10)
    return {
        "origin": rng.choice(["EWR", "JFK", "LGA"]),
        "carrier": rng.choice(["AA", "B6", "UA"]),
        "flight": rng.randint(1, 9999),
        "dest": rng.choice(["IAH", "MIA", "SFO"]),
        "dep_delay": delay,
        "scheduled_at": scheduled,
        "left_at": scheduled + timedelta(minutes=delay or 0),
    }
