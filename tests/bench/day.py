"""The day of records that the `finals` benchmarks aggregate: records, jobs, and an independent exact computation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.workload import GRACE_MS, HOUR_MS, KEYS, MINUTE_MS, PARTITIONS, START_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

FEED = JOB = "bench"
HOURS = 24
SESSION = "session"
GAP_MS = 5 * MINUTE_MS
CONF = {
    "feeds/bench.yaml": """\
feed: bench
partitions: {partitions}
{landing}
logs:
  events:
    source: {{format: parquet, path: raw}}
    key: user
    value: [amount]
    timestamp: happened_at
    arrived_at: arrived_at
""",
    "jobs/bench.yaml": """\
job: bench
topology: bench_job:build_topology
feed: bench
outputs:
  results: {{table: bench.results}}
""",
    "targets/local.yaml": "target: local\nwarehouse: warehouse\nexecution: {execution}\nsource: {source}\n",
}
TOPOLOGY = '''\
"""Count and sum by key and window, final results only."""

from rewindow import Count, SessionWindows, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("events")
        .group_by_key()
        .windowed_by({windows})
        .aggregate({{"events": Count(), "total": Sum("amount")}}, store="hours")
        .suppress(until_window_closes(), name="closed-hours")
        .to_stream()
        .to("results")
    )
    return builder.build()
'''


def write_project(root: Path, *, execution: str, landings: str, source: str, advance: int | str) -> None:
    """Write a project whose windows start every ``advance`` minutes, or are sessions."""
    landing = "landing: {every: 1h}" if landings == "hourly" else ""
    settings = {"partitions": PARTITIONS, "execution": execution, "source": source, "landing": landing}
    for name, text in CONF.items():
        file = root / "conf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(**settings))
    windows = f'TimeWindows.of("1h", grace="10m").advance_by("{advance}m")'
    if advance == SESSION:
        windows = 'SessionWindows.of("5m", grace="10m")'
    (root / "bench_job.py").write_text(TOPOLOGY.format(windows=windows))


def write_source(folder: Path, rows: int, seed: int = 1, hours: int = HOURS) -> None:
    """Write a day of records, or as many hours of them, in order of arrival."""
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(START_MS, START_MS + hours * HOUR_MS, rows))
    mean_ms = np.where(rng.random(rows) < 1 / 20, 30 * MINUTE_MS, MINUTE_MS)
    names = np.array([f"user-{number:05d}" for number in range(KEYS)])
    kind = pa.timestamp("ms", "UTC")
    table = pa.table(
        {
            "user": names[rng.integers(0, KEYS, rows)],
            "amount": np.round(rng.lognormal(3, 1, rows), 2),
            "happened_at": pa.array(arrival - rng.exponential(mean_ms).astype(np.int64)).cast(kind),
            "arrived_at": pa.array(arrival).cast(kind),
        }
    )
    folder.mkdir()
    pq.write_table(table, folder / "day.parquet")


def exact(log: pa.Table, advance: int | str) -> tuple[pa.Table, int]:
    """Return the exact results in whole cents, and how often a record is too late for a window."""
    parts, late = [], 0
    for partition in range(PARTITIONS):
        rows = log.filter(pc.equal(log["partition"], partition)).sort_by("offset")
        found, dropped = _sessions(rows) if advance == SESSION else _hours(rows, int(advance) * MINUTE_MS)
        parts.append(found)
        late += dropped
    return pa.concat_tables(parts), late


def is_exact(found: pa.Table, expected: pa.Table) -> bool:
    """Compare results with the exact ones."""
    order = [("user", "ascending"), ("window_start", "ascending")]
    found, expected = found.sort_by(order).combine_chunks(), expected.sort_by(order).combine_chunks()
    names = ["user", "window_start", "events"]
    if not found.select(names).equals(expected.select(names)):
        return False
    wrong = np.abs(np.asarray(found["total"]) * 100 - np.asarray(expected["cents"]))
    return bool(wrong.max() < 1e-4)


def _hours(rows: pa.Table, advance_ms: int) -> tuple[pa.Table, int]:
    times = np.asarray(rows["timestamp"])
    clock = np.maximum.accumulate(times)
    cents, late, kept = _cents(rows), 0, []
    for back in range(HOUR_MS // advance_ms):
        starts = times - times % advance_ms - back * advance_ms
        due = starts + HOUR_MS + GRACE_MS
        late += int(np.count_nonzero(due <= clock))
        part = pa.table({"user": rows["user"], "window_start": starts, "cents": cents})
        kept.append(part.filter(pa.array((due > clock) & (due <= clock[-1]))))
    sums = pa.concat_tables(kept).group_by(["user", "window_start"]).aggregate([([], "count_all"), ("cents", "sum")])
    return sums.rename_columns({"count_all": "events", "cents_sum": "cents"}), late


def _sessions(rows: pa.Table) -> tuple[pa.Table, int]:
    """Return the closed sessions and the number of late records, computed record by record."""
    cents, times = _cents(rows).tolist(), rows["timestamp"].to_pylist()
    open_of: dict[str, list[list[int]]] = {}
    done: list[tuple[Any, ...]] = []
    clock = late = 0
    for user, time, amount in zip(rows["user"].to_pylist(), times, cents, strict=True):
        clock = max(clock, time)
        open_from = clock - GAP_MS - GRACE_MS
        mine = open_of.setdefault(user, [])
        done += [(user, one[0], one[2], one[3]) for one in mine if one[1] < open_from]
        mine[:] = [one for one in mine if one[1] >= open_from]
        touched = [one for one in mine if one[1] >= time - GAP_MS and one[0] <= time + GAP_MS]
        joined = [time, time, 1, amount]
        for one in touched:
            joined = [min(joined[0], one[0]), max(joined[1], one[1]), joined[2] + one[2], joined[3] + one[3]]
        if joined[1] < open_from:
            late += 1
            continue
        mine[:] = [one for one in mine if one not in touched] + [joined]
    over = clock - GAP_MS - GRACE_MS
    done += [(user, *one[:1], *one[2:]) for user, mine in open_of.items() for one in mine if one[1] < over]
    return pa.table(dict(zip(("user", "window_start", "events", "cents"), _columns(done), strict=True))), late


def _columns(rows: list[tuple[Any, ...]]) -> Iterator[pa.Array]:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    for column, kind in zip(columns, (pa.string(), pa.int64(), pa.int64(), pa.int64()), strict=True):
        yield pa.array(column, kind)


def _cents(rows: pa.Table) -> Any:
    return np.rint(np.asarray(rows["amount"]) * 100).astype(np.int64)
