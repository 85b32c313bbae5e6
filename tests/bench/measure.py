"""One measurement of record execution in a new process: `python -m tests.bench.measure WAY JOB FOLDER`.

It prints one JSON object. The log is in ``FOLDER/log.json``. Results go to ``FOLDER/results/<job>-<way>``. Those of the
handwritten loop remain there for comparison.
"""

from __future__ import annotations

import cProfile
import json
import shutil
import sys
from collections import defaultdict
from itertools import islice
from pathlib import Path
from pstats import Stats
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.engine.worker.local_engine import LocalEngine
from tests.bench.by_hand import read
from tests.bench.jobs import JOBS, sub_topology_work
from tests.bench.meter import Meter
from tests.bench.workload import EPOCHS, Slice

if TYPE_CHECKING:
    from rewindow.contracts.staged_files import TaskReport

ROOT = Path(__file__).resolve().parents[2]
ORDER = [("_partition", "ascending"), ("_offset", "ascending")]
WARM_UP_EPOCHS = 1

PARTS = {
    "engine/worker/log_reader.py": "decode",
    "engine/worker/arrow_rows.py": "rows (decode, encode)",
    "streams/serde/schema.py": "rows (decode, encode)",
    "streams/serde/types_to_columns.py": "rows (decode, encode)",
    "streams/ordering.py": "ordering",
    "streams/task.py": "task",
    "streams/batch": "task",
    "streams/processor.py": "forward",
    "operators/": "operators",
    "streams/state/stores.py": "stores",
    "streams/state/key_": "stores",
    "streams/state/spilling_map.py": "stores",
    "streams/state/suppress_buffer.py": "stores",
    "streams/serde/key_bytes.py": "key bytes",
    "engine/worker/record_writers.py": "output",
    "engine/worker/parquet_writer.py": "write",
    "engine/worker/digest.py": "statistics, digest",
    "tests/bench/": "the job's own code",
}


def by_hand(job: str, log: list[Slice], folder: Path) -> dict[str, Any]:
    """Measure the loop until its results are in memory, and until they are written."""
    _write(job, folder, [JOBS[job].by_hand().run(islice(read(log[0].path), log[0].bounds[WARM_UP_EPOCHS - 1][1]))])
    meter = Meter()
    results = [JOBS[job].by_hand().run(read(part.path)) for part in log]
    in_memory = meter.read()
    _write(job, folder, results)
    return {**in_memory, "written": meter.read(), "results": sum(map(len, results))}


def by_engine(job: str, log: list[Slice], folder: Path, way: str) -> dict[str, Any]:
    """Measure record execution, warm: in this process, or through a local Spark session."""
    engine, stop = LocalEngine(), None
    if way == "spark":
        from rewindow.engine.spark.session import local_session
        from rewindow.engine.spark.spark_engine import SparkEngine

        session = local_session(cores=2, python_path=[ROOT])
        engine, stop = SparkEngine(session, slots=2), session.stop
    root = _results(folder, job, way)
    for _ in range(2):
        engine.run_sub_topology(sub_topology_work(job, log, root / "warm", WARM_UP_EPOCHS))
    meter = Meter()
    reports = engine.run_sub_topology(sub_topology_work(job, log, root))
    measured = meter.read()
    if stop:
        stop()
    outputs = [root / file.target / file.path for report in reports for file in report.files if "output" in file.target]
    return {**measured, "results": _check(job, folder, outputs), "late": _late(reports)}


def profile(job: str, log: list[Slice], folder: Path) -> dict[str, Any]:
    """Profile record execution in this process. Return the seconds spent in each part."""
    root = _results(folder, job, "profile")
    engine = LocalEngine()
    engine.run_sub_topology(sub_topology_work(job, log, root / "warm", WARM_UP_EPOCHS))
    work, profiler = sub_topology_work(job, log, root), cProfile.Profile()
    profiler.runcall(engine.run_sub_topology, work)
    calls: Any = Stats(profiler).stats  # type: ignore[attr-defined]
    parts: dict[str, float] = defaultdict(float)
    for function, (_, _, own, _, _) in calls.items():
        for part, share in _owners(function, calls, 0).items():
            parts[part] += own * share
    total = sum(parts.values())
    return {part: round(own / total, 4) for part, own in sorted(parts.items(), key=lambda item: -item[1])}


def _owners(function: Any, calls: Any, depth: int) -> dict[str, float]:
    """Return how a function's own time is shared between our parts. Time of foreign functions counts for their callers."""
    file = function[0].replace("\\", "/")
    for path, part in PARTS.items():
        if path in file:
            return {part: 1.0}
    callers = {caller: times[2] for caller, times in calls[function][4].items()} if depth < 8 else {}
    total = sum(callers.values())
    if not total:
        return {"other": 1.0}
    owners: dict[str, float] = defaultdict(float)
    for caller, own in callers.items():
        for part, share in _owners(caller, calls, depth + 1).items():
            owners[part] += share * own / total
    return owners


def _check(job: str, folder: Path, outputs: list[Path]) -> int:
    """Compare the results with those of the loop, and return their number."""
    found = pa.concat_tables(pq.read_table(path, partitioning=None) for path in outputs).sort_by(ORDER)
    right = [pq.read_table(_results(folder, job, "loop") / f"{partition}.parquet") for partition in range(8)]
    names = list(JOBS[job].columns)
    expected = pa.concat_tables(right)
    numbers = [number for table in right for number in range(table.num_rows)]
    if not found.select(names).combine_chunks().equals(expected.combine_chunks()):
        raise SystemExit(f"{job}: record execution and the loop do not agree")
    if found.column("_offset").to_pylist() != numbers:
        raise SystemExit(f"{job}: the offsets of the results are not 0, 1, 2 ...")
    return int(found.num_rows)


def _late(reports: list[TaskReport]) -> int:
    return sum(row["count"] for report in reports for row in report.metrics if row["name"] == "late-record-drop")


def _results(folder: Path, job: str, way: str) -> Path:
    written = folder / "results" / f"{job}-{way}"
    shutil.rmtree(written, ignore_errors=True) if way != "loop" else None
    written.mkdir(parents=True, exist_ok=True)
    return written


def _write(job: str, folder: Path, results: list[list[Any]]) -> None:
    schema = pa.schema(list(JOBS[job].columns.items()))
    for partition, rows in enumerate(results):
        batch = pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct(list(schema))))
        pq.write_table(pa.Table.from_batches([batch]), _results(folder, job, "loop") / f"{partition}.parquet")


def main(way: str, job: str, folder: Path) -> None:
    """Measure one way of running a job."""
    log = [
        Slice(path, [(start, end) for start, end in bounds])
        for path, bounds in json.loads((folder / "log.json").read_text())
    ]
    assert len(log[0].bounds) == EPOCHS
    if way == "loop":
        measured = by_hand(job, log, folder)
    elif way == "profile":
        measured = profile(job, log, folder)
    else:
        measured = by_engine(job, log, folder, way)
    print(json.dumps(measured))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
