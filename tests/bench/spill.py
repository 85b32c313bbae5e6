"""`python -m tests.bench.spill --rows N [--memory BYTES]`: one task with N keys, counted, then restored and counted on.

Each of the two runs is a process of its own, as a Spark worker is one; what it prints is the most that was resident in it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow import StreamsBuilder, TimeWindows, Topology
from rewindow.core.binding import LogShapes, log_shape
from rewindow.core.checkpoint import TaskState
from rewindow.core.schema import Column
from rewindow.core.semantics import Semantics
from rewindow.core.settings import Limits, Settings
from rewindow.core.work import Epoch, LogFile, LogSlice, StageWork, TaskWork
from rewindow.spark.emit import Place
from rewindow.spark.execute import run_task
from tests.bench.results import LEAST_ROWS, machine

COLUMNS = [Column("offset", "long"), Column("timestamp", "long"), Column("user", "string"), Column("amount", "long")]
BATCH = 100_000
RUNS = ("count", "restore")
STORES = {"keys": "SPILL.md", "windows": "SPILL_WINDOWS.md"}
PAGE = """\
# A store that is larger than its memory: {store}

Written by `python -m tests.bench.spill --store {store}`. One task, one partition: each key is counted once, then all of
it is restored in another process and a fifth as many records are counted on. `store_memory` is {memory} MiB; the peak is
what was resident in the task's process, Python and pyarrow included. {date}, {machine}, {versions};
the seconds are those of a machine that others used too.

| run | records | keys | seconds | peak MB |
| --- | --- | --- | --- | --- |
{rows}"""


def build_keys() -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").group_by_key().count(store="counts").to_stream().to("totals")
    return builder.build()


def build_windows() -> Topology:
    """All records lie in one window."""
    builder = StreamsBuilder()
    grouped = builder.stream("events").group_by_key()
    grouped.windowed_by(TimeWindows.of("1d", grace="1h")).count(store="counts").to_stream().to("totals")
    return builder.build()


BUILD = {"keys": build_keys, "windows": build_windows}


def logs() -> LogShapes:
    key, value = (Column("user", "string"),), (Column("amount", "long"),)
    return {"events": (log_shape(key, is_scalar=True), log_shape(value, is_scalar=True))}


def make_log(root: Path, keys: int, start: int, end: int) -> str:
    """Stage records of one partition: every key once, in an order of its own."""
    file = Place("log/events", str(root), attempt=f"land{start}", partition=0).file(COLUMNS, ["offset"], 0)
    order = np.random.default_rng(start).permutation(keys)[: end - start]
    with file:
        for first in range(start, end, BATCH):
            offsets = np.arange(first, min(end, first + BATCH))
            names = [f"user-{number:09d}" for number in order[offsets - start].tolist()]
            arrays = [pa.array(offsets), pa.array(offsets), pa.array(names), pa.array(offsets % 7)]
            file.write(pa.RecordBatch.from_arrays(arrays, schema=_schema()))
        staged = file.close()
    assert staged is not None
    return f"{root}/{staged.path}"


def _schema() -> pa.Schema:
    types = {"long": pa.int64(), "string": pa.string()}
    return pa.schema([(column.name, types[column.type]) for column in COLUMNS])


def run(store: str, way: str, root: Path, rows: int, memory: int) -> dict[str, Any]:
    """Make one of the two runs in this process; say what it took."""
    topology = BUILD[store]()
    (part,) = topology.sub_topologies()
    more = rows // 5
    start, end = (0, rows) if way == "count" else (rows, rows + more)
    path = (root / f"{way}.path").read_text()
    before = json.loads((root / "report.json").read_text()) if way == "restore" else {}
    task = TaskWork(
        0,
        {"events": LogSlice((LogFile(path, start, end - 1),), ((start, end),))},
        {},
        TaskState.from_json(before["state"]) if before else None,
        {"counts": tuple(before["changelog"])} if before else {},
    )
    targets = [f"output/{sink.topic}" for sink in part.sinks] + [f"changelog/{store.name}" for store in part.stores]
    work = StageWork(
        stage=part.index,
        run=1,
        attempt=way,
        partitions=1,
        epochs=(Epoch(1 + (way == "restore"), -1),),
        tasks=(task,),
        roots={target: str(root / target) for target in targets},
        load_topology=BUILD[store],
        fingerprint=topology.fingerprint(),
        load_logs=partial(logs),
        semantics=Semantics(),
        settings=Settings(limits=Limits(store_memory=memory)),
    )
    began = time.perf_counter()
    report = run_task(work, task)
    took = time.perf_counter() - began
    staged = {file.target: file for file in report.files}
    assert staged["output/totals"].rows == end - start
    assert staged["changelog/counts"].rows == end - start
    changelog = [
        str(root / "changelog/counts" / file.path) for file in report.files if file.target.startswith("change")
    ]
    (root / "report.json").write_text(json.dumps({"state": report.state, "changelog": changelog}))
    return {
        "run": way,
        "records": end - start,
        "keys": rows,
        "seconds": round(took, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def measure(store: str, rows: int, memory: int) -> Iterator[dict[str, Any]]:
    """Make both runs, each in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="rewindow-spill-") as folder:
        root = Path(folder)
        for way, start, end in zip(RUNS, (0, rows), (rows, rows + rows // 5), strict=True):
            (root / f"{way}.path").write_text(make_log(root / "log", rows, start, end))
        for way in RUNS:
            command = [sys.executable, "-m", "tests.bench.spill", "--rows", str(rows), "--memory", str(memory)]
            command += ["--store", store]
            done = subprocess.run([*command, "--run", way, str(root)], check=True, capture_output=True, text=True)
            yield json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spill", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--memory", type=int, default=Limits().store_memory)
    parser.add_argument("--store", choices=STORES, default="keys")
    parser.add_argument("--run", nargs=2, metavar=("RUN", "FOLDER"), help="make one run in this process")
    options = parser.parse_args()
    if options.run:
        way, folder = options.run
        print(json.dumps(run(options.store, way, Path(folder), options.rows, options.memory)))
        return
    found = []
    for figures in measure(options.store, options.rows, options.memory):
        print(json.dumps(figures), flush=True)
        found.append(figures)
    if options.rows >= LEAST_ROWS:
        rows = "".join(
            "| {run} | {records:,} | {keys:,} | {seconds:,} | {peak_mb:,} |\n".format(**one) for one in found
        )
        page = PAGE.format(store=options.store, **machine(), memory=options.memory >> 20, rows=rows)
        Path(__file__).with_name(STORES[options.store]).write_text(page)


if __name__ == "__main__":
    main()
