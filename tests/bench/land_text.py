"""`land-csv` and `land-json`: text to a log, each landing a command of its own, next to its two yardsticks.

The goal is the CPU-seconds of landing the same rows from Parquet, plus twice those of polars reading the text. All are processes
of their own, without Spark: its JVM would cost the same for text and Parquet. Large files are landed by Spark's workers as
well, for the memory that a worker takes. The logs are compared.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from rewindow.app.open_project import OpenProject
from rewindow.tables.delta.table_rows import content_hash
from tests.bench.land_small import ROOT, cost
from tests.bench.meter import Meter, PeakMemory
from tests.bench.rounds import IN_PROCESS, ON_SPARK
from tests.bench.workload import PARTITIONS, START_MS

_LAND = "import sys; from rewindow.app.cli.entry import main; sys.argv = ['rewindow', 'land', sys.argv[1]]; main()"
_PER_BLOCK = 200_000
LEAST_ON_WORKERS = 1_000_000
_DAYS_MS = 30 * 86_400_000


def measure(rows: int, *, rounds: int, text: str, **_: object) -> dict[str, Any]:
    """Measure alternately; compare the logs."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_files(root, rows, text)
        write_project(root, rounds + 1, text)
        costs: dict[str, list[dict[str, float]]] = {text: [], "parquet": [], "polars": []}
        for number in range(rounds + 1):
            for kind in (text, "parquet"):
                costs[kind].append(cost(root, "-c", _LAND, f"{kind}{number}"))
            costs["polars"].append(cost(ROOT, "-m", "tests.bench.land_text", text, str(next((root / text).iterdir()))))
        logs = [root / "warehouse/logs" / f"{kind}{rounds}" / "events" for kind in (text, "parquet")]
        hashes = {content_hash(str(log)) for log in logs}
        notes = []
        if rows >= LEAST_ON_WORKERS:
            log, note = land_on_workers(root, text)
            hashes.add(content_hash(log))
            notes.append(note)
    cpu = {kind: median(one["cpu"] for one in found[1:]) for kind, found in costs.items()}
    seconds = median(one["seconds"] for one in costs[text][1:])
    goal = cpu["parquet"] + 2 * cpu["polars"]
    return {
        "rows": rows,
        "late": 0,
        "late_share": 0.0,
        "results": rows,
        "exact": len(hashes) == 1,
        "seconds": seconds,
        "cpu_seconds": cpu[text],
        "yardstick": "landing the rows from Parquet, plus twice polars reading the text",
        "yardstick_seconds": median(one["seconds"] for one in costs["parquet"][1:]),
        "yardstick_cpu_seconds": round(goal, 3),
        "ratio": round(cpu[text] / goal, 3),
        "is_warm": False,
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": "once",
        "source": "auto",
        "notes": [
            f"From Parquet: {cpu['parquet']:.2f} CPU-seconds; polars reads the text in {cpu['polars']:.2f}.",
            *notes,
        ],
    }


def land_on_workers(root: Path, text: str) -> tuple[str, str]:
    """Land the text by Spark's workers. Return the path of the log and a sentence about the costs."""
    own = root / "workers"
    (own / text).mkdir(parents=True)
    for file in (root / text).iterdir():
        os.link(file, own / text / file.name)
    write_project(own, 1, text, inline=ON_SPARK)
    project = OpenProject.open(own)
    with PeakMemory() as memory:
        meter = Meter()
        project.land(f"{text}0")
        found = meter.read()
    project.spark.stop()
    note = (
        f"By Spark's workers, with the start of the JVM: {found['cpu']:.2f} CPU-seconds; the largest Python worker took "
        f"{memory.peak_worker_mb:,} MB (goal: 512)."
    )
    return str(own / f"warehouse/logs/{text}0/events"), note


def write_files(root: Path, rows: int, text: str) -> None:
    """Write the same rows as text and as Parquet: a user, an amount, a whole number and a time, about 45 bytes of CSV."""
    for folder in (text, "parquet"):
        (root / folder).mkdir()
    random = np.random.default_rng(1)
    times = pa.array(START_MS + np.sort(random.integers(0, _DAYS_MS, rows))).cast(pa.timestamp("ms", "UTC"))
    users = pa.array(np.char.add("user-", random.integers(0, 50_000, rows).astype(str)))
    amounts, counts = pa.array(np.round(random.random(rows) * 100, 2)), pa.array(random.integers(0, 1000, rows))
    table = pa.table({"user": users, "amount": amounts, "n": counts, "at": times})
    for kind in (text, "parquet"):
        write_table(table, root / kind / f"rows.{kind}")


def write_table(table: pa.Table, path: Path) -> None:
    """Write rows of texts, numbers and times as Parquet, CSV or JSON lines, as the file's suffix says."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            times = pc.strftime(table[field.name], format="%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(number, field.name, times)
    if path.suffix == ".csv":
        pa_csv.write_csv(table, path, pa_csv.WriteOptions(quoting_style="none"))
        return
    quotes = ['"' if pa.types.is_string(field.type) else "" for field in table.schema]
    line = ",".join(f'"{name}":{quote}%s{quote}' for name, quote in zip(table.column_names, quotes, strict=True))
    with path.open("w") as file:
        for batch in table.to_batches(_PER_BLOCK):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            file.writelines(f"{{{line % row}}}\n" for row in rows)


def write_project(root: Path, feeds: int, text: str, inline: int = IN_PROCESS) -> None:
    """Write a project, and a feed for each round and format."""
    (root / "conf/feeds").mkdir(parents=True)
    (root / "conf/targets").mkdir()
    (root / "conf/targets/local.yaml").write_text(f"target: local\nwarehouse: warehouse\ninline: {inline}\n")
    for number in range(feeds):
        for kind in (text, "parquet"):
            (root / f"conf/feeds/{kind}{number}.yaml").write_text(
                f"feed: {kind}{number}\npartitions: {PARTITIONS}\nlogs:\n  events:\n"
                f"    source: {{format: {kind}, path: {kind}}}\n    key: user\n    timestamp: at\n"
            )


if __name__ == "__main__":
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

    if sys.argv[1] == "csv":
        pl.read_csv(sys.argv[2], try_parse_dates=True)
    else:
        pl.read_ndjson(sys.argv[2])
