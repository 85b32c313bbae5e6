"""A feed whose first landing fills a store with many keys, and whose later landings have few records, like an hourly job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from tests.bench.day import CONF, FEED, JOB
from tests.bench.meter import Meter
from tests.bench.workload import HOUR_MS, PARTITIONS, START_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

UNWINDOWED, WINDOWED = "unwindowed", "windowed"
TOPOLOGY = '''\
"""Count by key and send every update."""

from rewindow import StreamsBuilder, TimeWindows, Topology


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").group_by_key(){windows}.count(store="counts").to_stream().to("results")
    return builder.build()
'''
WINDOWS = {UNWINDOWED: "", WINDOWED: '.windowed_by(TimeWindows.of("1d", grace="1d"))'}


class StoredCounts:
    """A counting project with ``keys`` keys in its store."""

    def __init__(self, root: Path, keys: int, kind: str) -> None:
        """Write the project, then land and run the first records, one per key."""
        self.root, self.keys, self._hour = root, keys, 0
        settings = {"partitions": PARTITIONS, "execution": "auto", "source": "auto", "landing": ""}
        for name, text in CONF.items():
            file = root / "conf" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            # A separate module name: this process and Spark's workers may have imported another `bench_job`.
            file.write_text(text.format(**settings).replace("bench_job:", f"bench_{kind}:"))
        (root / f"bench_{kind}.py").write_text(TOPOLOGY.format(windows=WINDOWS[kind]))
        (root / "raw").mkdir()
        self.project = OpenProject.open(root)
        self.land(np.random.default_rng(0).permutation(keys))
        self.run()

    def land_some(self, rows: int) -> None:
        """Land records of random keys for the next hour."""
        self.land(np.random.default_rng(self._hour).integers(0, self.keys, rows))

    def land(self, users: Any) -> None:
        """Land one record per user, within one hour."""
        first = START_MS + self._hour * HOUR_MS
        times = np.sort(np.random.default_rng(self._hour).integers(first, first + HOUR_MS, len(users)))
        kind = pa.timestamp("ms", "UTC")
        columns = {
            "user": pa.array([f"user-{user:07d}" for user in users]),
            "amount": np.ones(len(users)),
            "happened_at": pa.array(times).cast(kind),
            "arrived_at": pa.array(times).cast(kind),
        }
        pq.write_table(pa.table(columns), self.root / "raw" / f"hour-{self._hour:03d}.parquet")
        self._hour += 1
        self.project.land(FEED)

    def run(self) -> dict[str, float]:
        """Run the new epochs. Return the costs: CPU-seconds, seconds, Delta commits and Spark jobs."""
        spark, commits = self.project.spark, self._commits()
        jobs = _jobs(spark)
        meter = Meter()
        self.project.run(JOB, RunRequest())
        cost = meter.read()
        return {**cost, "commits": len(self._commits() - commits), "jobs": len(_jobs(spark) - jobs)}

    def is_exact(self) -> bool:
        """Return whether the latest count of each key is its number of records."""
        from rewindow.tables.delta.table_rows import read_rows

        found = read_rows(f"{self.project.warehouse}/bench/results")
        value = [name for name in found.column_names if not name.startswith("_")][-1]
        newest = found.group_by("user").aggregate([(value, "max")]).sort_by("user")
        users = pa.concat_tables([pq.read_table(file, columns=["user"]) for file in (self.root / "raw").iterdir()])
        right = users.group_by("user").aggregate([([], "count_all")]).sort_by("user")
        return bool(newest[f"{value}_max"].to_pylist() == right["count_all"].to_pylist())

    def _commits(self) -> set[str]:
        return {str(file) for file in Path(self.project.warehouse).rglob("_delta_log/*.json")}


def _jobs(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def median_of(runs: Sequence[dict[str, float]], what: str) -> float:
    """Return the median cost of several runs."""
    return sorted(run[what] for run in runs)[len(runs) // 2]


def repeated(times: int, some: Callable[[], dict[str, float]]) -> list[dict[str, float]]:
    """Call a function several times and return its results."""
    return [some() for _ in range(times)]
