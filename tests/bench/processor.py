"""`processor` and `processor-batch`: counters by key, forwarded and cleared every ten minutes of stream time (`jobs`).

The yardstick is a plain Python loop over the same Arrow batches that keeps its results in memory. The ratio is our records
per CPU-second divided by the loop's, with a goal of 0.7. Also measured: the loop that writes its results, record execution in
one process without Spark, and Spark's ``transformWithState`` in Python, at a size that it can finish.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.meter import Meter, PeakMemory
from tests.bench.record_execution import child
from tests.bench.stored import median_of
from tests.bench.workload import Slice, make_log

JOB = "processor"
SPARK_ROWS = 20_000
"""The number of records for `transformWithState`, which does not finish 2,000,000 in an hour."""


def measure(rows: int, *, rounds: int, job: str = JOB, **_: object) -> dict[str, Any]:
    """Measure the ways alternately, each in a new process. Each process compares its results with those of the loop.

    ``job``: `processor`, or `processor-batch`, the same with `process_batch`; Spark's own way is measured for the first.
    """
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        log = make_log(Path(folder) / "log", rows)
        (Path(folder) / "log.json").write_text(json.dumps(log))
        taken: dict[str, list[dict[str, Any]]] = {}
        for _number in range(rounds):
            for way in ("loop", "local", "spark"):
                taken.setdefault(way, []).append(child(way, job, Path(folder)))
        profile = child("profile", job, Path(folder))
        own = _spark_own(log, min(rows, SPARK_ROWS)) if job == JOB else None
    taken["written"] = [one["written"] for one in taken["loop"]]
    rates = {way: rows / median_of(costs, "cpu") for way, costs in taken.items()}
    notes = [
        f"The ratio is of records per CPU-second: more is better, the goal is {0.3 if job == JOB else 0.7}.",
        (
            f"In one process, without Spark, it is {rates['local'] / rates['loop']:.2f}; compared with the loop that "
            f"writes its results as Parquet {rates['spark'] / rates['written']:.2f}."
        ),
    ]
    of_spark = {}
    if own:
        rates["transformWithState"] = own["rows"] / own["cpu"]
        of_spark["times_transform_with_state"] = round(rates["spark"] / rates["transformWithState"], 1)
        notes.append(
            f"Spark's own transformWithState in Python, {own['rows']:,.0f} records, warm: "
            f"{rates['transformWithState']:,.0f} records per CPU-second; rewindow "
            f"processes {rates['spark'] / rates['transformWithState']:,.0f} times as many (goal 30)."
        )
    shares = ", ".join(f"{part} {share:.0%}" for part, share in profile.items() if share >= 0.01)
    return {
        "rows": rows,
        "late": 0,
        "late_share": 0.0,
        "results": taken["loop"][0]["results"],
        "exact": True,  # a process whose results differ from the loop's fails
        "seconds": median_of(taken["spark"], "seconds"),
        "cpu_seconds": median_of(taken["spark"], "cpu"),
        "yardstick": "plain loop, results kept in memory",
        "yardstick_seconds": median_of(taken["loop"], "seconds"),
        "yardstick_cpu_seconds": median_of(taken["loop"], "cpu"),
        "ratio": round(rates["spark"] / rates["loop"], 3),
        "ratio_in_one_process": round(rates["local"] / rates["loop"], 3),
        "ratio_written": round(rates["spark"] / rates["written"], 3),
        **of_spark,
        "is_warm": True,
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "record",
        "landings": "hourly",
        "source": "auto",
        "records_per_cpu_second": {way: round(rate) for way, rate in rates.items()},
        "profile": profile,
        "bars": rates,
        "bars_unit": "records per CPU-second",
        "notes": [
            *notes,
            f"Where record execution spends its time (cProfile, which favours few long calls): {shares}.",
        ],
    }


def _spark_own(log: list[Slice], rows: int) -> dict[str, float]:
    """Measure ``transformWithState``, warm. It needs the package protobuf, which is in the lock file."""
    from rewindow.engine.spark.session import local_session
    from tests.bench.processor_state import count_by_key
    from tests.bench.record_execution import ROOT

    spark = local_session(cores=2, python_path=[ROOT])
    count_by_key(spark, log[0].path, 100)
    meter = Meter()
    count_by_key(spark, log[0].path, rows)
    cost = meter.read()
    spark.stop()
    return {**cost, "rows": min(rows, log[0].bounds[-1][1])}
