"""`nexmark-q5`, `-q7`, `-q8`, `-q11`, `-q12`: queries of Nexmark, each in one run and in a hundred.

Measures one run over all landings, from the landed tables to the published one; all windows are closed at its end. The yardstick
is the same query as a Spark job over the same tables, alternating in the same warm session. Both give the same rows, which are
compared. Then the query runs once more with one run for each landing, and every table must have the same content hash.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.meter import Meter, PeakMemory
from tests.bench.nexmark.events import RATE, START_MS, write_events
from tests.bench.stored import median_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROJECT = Path(__file__).parent / "project"
FEED, LANDINGS = "nexmark", 100
LOGS = {
    "q5": ("bids",),
    "q7": ("bids",),
    "q8": ("persons", "auctions"),
    "q11": ("bids-by-bidder",),
    "q12": ("bids-by-arrival",),
}
"""The logs that each query reads."""


def measure(rows: int, *, rounds: int, query: str, **_: object) -> dict[str, Any]:
    """Measure one run of a query and Spark's, and compare their rows and those of many runs. ``rows``: events."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder) / "project"
        seconds = _write(root, rows)
        project = OpenProject.open(root)
        meter = Meter()
        project.land(FEED, until_ms=START_MS + seconds * 1_000)
        landed = meter.read()
        ours, spark = [], []
        for number in range(rounds + 1):  # the first is the warm-up
            meter = Meter()
            project.run(query, RunRequest(branch=f"round{number}", final=True))
            ours.append(meter.read())
            spark.append(_by_spark(project, query, root / "plain"))
        many = _in_many_runs(project, query)
        found, expected = _rows(project, query, "round1"), read_rows(str(root / "plain")).to_pylist()
        hashes = [project.tables.hashes(query, branch) for branch in ("round1", "many")]
        records = sum(read_rows(_log(project, log), columns=["offset"]).num_rows for log in LOGS[query])
        project.spark.stop()
    cpu, yardstick = median_of(ours[1:], "cpu"), median_of(spark[1:], "cpu")
    is_same = hashes[0] == hashes[1]
    return {
        "rows": records,
        "events": rows,
        "late": 0,
        "late_share": 0.0,
        "results": len(found),
        "exact": is_same and found == sorted(tuple(row.values()) for row in expected),
        "records_per_cpu_second": round(records / cpu),
        "seconds": median_of(ours[1:], "seconds"),
        "cpu_seconds": cpu,
        "yardstick": "plain Spark, the same query",
        "yardstick_seconds": median_of(spark[1:], "seconds"),
        "yardstick_cpu_seconds": yardstick,
        "ratio": round(cpu / yardstick, 3),
        "is_warm": True,
        "land_cpu_seconds": landed["cpu"],
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": "hundred",
        "source": "auto",
        "notes": [
            f"{records / cpu:,.0f} records per CPU-second, of {rows:,} events.",
            (
                f"In {many['runs']:.0f} runs: {many['cpu']:.2f} CPU-seconds; the content hashes of all tables are "
                f"{'the same' if is_same else 'DIFFERENT'}."
            ),
        ],
    }


def _write(root: Path, events: int) -> int:
    """Write the project. Return the seconds after the start at which all events have arrived, a whole number of landings."""
    shutil.copytree(PROJECT, root)
    write_events(root / "raw", events)
    every = max(1, -(-events // (RATE * LANDINGS)))
    feed = root / "conf" / "feeds" / f"{FEED}.yaml"
    feed.write_text(feed.read_text().replace("every: 2s", f"every: {every}s"))
    return (events // RATE // every + 2) * every


def _in_many_runs(project: OpenProject, query: str) -> dict[str, float]:
    landings = len(project.tables.feed(FEED).landings)
    meter = Meter()
    for landing in range(1, landings):
        project.run(query, RunRequest(branch="many", through_landing=landing))
    project.run(query, RunRequest(branch="many", final=True))
    return {**meter.read(), "runs": landings}


def _rows(project: OpenProject, query: str, branch: str) -> list[tuple[Any, ...]]:
    """Return the columns of a query's results that Spark's query has, as sorted rows."""
    table = read_rows(f"{project.warehouse}/{FEED}/{query}__{branch}")
    names = [name for name in table.column_names if not name.startswith("_") and name != "window_end"]
    return sorted(tuple(row.values()) for row in table.select(names).to_pylist())


def _log(project: OpenProject, log: str) -> str:
    return str(Path(project.warehouse) / "logs" / FEED / log)


def _by_spark(project: OpenProject, query: str, path: Path) -> dict[str, float]:
    shutil.rmtree(path, ignore_errors=True)
    project.spark.conf.set("spark.sql.shuffle.partitions", 2)
    meter = Meter()
    logs = [project.spark.read.format("delta").load(_log(project, log)) for log in LOGS[query]]
    BY_SPARK[query](*logs).write.format("delta").save(str(path))
    return meter.read()


def _q5(bids: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    counts = bids.groupBy("auction", _window("10 seconds", "5 seconds").alias("window")).agg(F.count("*").alias("bids"))
    most = counts.groupBy("window").agg(F.max(F.struct("bids", "auction")).alias("most"))
    return most.select(_start_ms("window"), "most.auction", "most.bids")


def _q7(bids: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    highest = bids.groupBy(_window("10 seconds").alias("window"))
    bid = highest.agg(F.max(F.struct("price", "bidder", "auction")).alias("bid"))
    return bid.select(_start_ms("window"), "bid.price", "bid.bidder", "bid.auction")


def _q8(persons: DataFrame, auctions: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    came = persons.select("id", "name", _window("10 seconds").alias("window"))
    by_seller = auctions.groupBy(auctions["seller"].alias("id"), _window("10 seconds").alias("window"))
    both = came.join(by_seller.agg(F.count("*").alias("auctions")), ["id", "window"])
    return both.select("id", _start_ms("window"), "name", "auctions")


def _q11(bids: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    # Bids that are exactly the gap apart are one session of Kafka Streams and two of Spark.
    session = F.session_window(F.timestamp_millis("timestamp"), "10001 milliseconds")
    counts = bids.groupBy("bidder", session.alias("window")).agg(F.count("*").alias("bids"))
    return counts.select("bidder", _start_ms("window"), "bids")


def _q12(bids: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    counts = bids.groupBy("bidder", _window("10 seconds").alias("window")).agg(F.count("*").alias("bids"))
    return counts.select("bidder", _start_ms("window"), "bids")


BY_SPARK: Mapping[str, Callable[..., DataFrame]] = {"q5": _q5, "q7": _q7, "q8": _q8, "q11": _q11, "q12": _q12}


def _window(size: str, slide: str | None = None) -> Any:
    from pyspark.sql import functions as F

    return F.window(F.timestamp_millis("timestamp"), size, slide)


def _start_ms(window: str) -> Any:
    from pyspark.sql import functions as F

    return F.unix_millis(F.col(f"{window}.start")).alias("start")
