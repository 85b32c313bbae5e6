"""`python -m tests.bench.spill --rows N [--memory BYTES]`: count N keys in one task, then restore them and continue.

Each of the two runs is a new process, like a Spark worker, and prints its peak resident memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow import JoinWindows, SessionWindows, StreamsBuilder, TimeWindows, Topology, until_time_limit
from rewindow.contracts.tasks import (
    Epoch,
    Execution,
    JobCode,
    LogFile,
    LogSlice,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.task_execution import run_task
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, log_shape
from rewindow.streams.settings import Limits, Semantics, Settings
from tests.bench.results import LEAST_ROWS, machine

COLUMNS = [Column("offset", "long"), Column("timestamp", "long"), Column("user", "string"), Column("amount", "long")]
BATCH = 100_000
RUNS = ("count", "restore")
PAGE = """\
# A store larger than its memory: {store}

Written by `python -m tests.bench.spill --store {store} --rows {keys}`. One task, one partition: first one record for each
key, then, in another process, a restore of all of it and one fifth as many records again. `store_memory` is {memory} MiB; the
peak is the resident memory of the task's process, including Python and pyarrow. {date}, {machine}, {versions};
others used the machine at the same time, which affects the seconds.

| run | records | keys | seconds | peak MB |
| --- | --- | --- | --- | --- |
{rows}"""


def build_keys() -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").group_by_key().count(store="counts").to_stream().to("totals")
    return builder.build()


def build_windows() -> Topology:
    """All records are in one window."""
    builder = StreamsBuilder()
    grouped = builder.stream("events").group_by_key()
    grouped.windowed_by(TimeWindows.of("1d", grace="1h")).count(store="counts").to_stream().to("totals")
    return builder.build()


def build_sessions() -> Topology:
    """Each key has one session, which its second record extends."""
    builder = StreamsBuilder()
    grouped = builder.stream("events").group_by_key()
    grouped.windowed_by(SessionWindows.of("1d", grace="1h")).count(store="counts").to_stream().to("totals")
    return builder.build()


def build_join() -> Topology:
    """A self-join of the log: each record matches those of its key, and both sides store all records."""
    builder = StreamsBuilder()
    events, window = builder.stream("events"), JoinWindows.of("1d", grace="1h")
    events.join(events, _product, window, name="near").to("totals")
    return builder.build()


def build_held() -> Topology:
    """Counts that are suppressed for longer than the log lasts."""
    builder = StreamsBuilder()
    counts = builder.stream("events").group_by_key().count(store="counts")
    counts.suppress(until_time_limit("1d"), name="held").to_stream().to("totals")
    return builder.build()


def _product(left: int, right: int) -> int:
    return left * right


class Store(NamedTuple):
    """A topology, its results page, and the results and store changes per record in each of the two runs."""

    build: Callable[[], Topology]
    page: str
    outputs: tuple[int, int] = (1, 1)
    changes: tuple[int, int] = (1, 1)


STORES = {
    "keys": Store(build_keys, "SPILL.md"),
    "windows": Store(build_windows, "SPILL_WINDOWS.md"),
    "sessions": Store(build_sessions, "SPILL_SESSIONS.md", outputs=(1, 2), changes=(1, 2)),
    "join": Store(build_join, "SPILL_JOIN.md", outputs=(1, 3), changes=(2, 2)),
    "held": Store(build_held, "SPILL_HELD.md", outputs=(0, 0), changes=(2, 2)),
}


def logs() -> LogShapes:
    key, value = (Column("user", "string"),), (Column("amount", "long"),)
    return {"events": (log_shape(key, is_scalar=True), log_shape(value, is_scalar=True))}


def make_log(root: Path, keys: int, start: int, end: int) -> str:
    """Stage records of one partition: every key once, in random order."""
    file = StagingTarget("log/events", str(root), attempt=f"land{start}", partition=0).file(COLUMNS, ["offset"], 0)
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


def work_of(store: str, way: str, root: Path, memory: int, tasks: tuple[TaskWork, ...]) -> SubTopologyWork:
    """Return the work of one of the two runs, in record execution."""
    build = STORES[store].build
    topology = build()
    (part,) = topology.sub_topologies()
    targets = [f"output/{sink.topic}" for sink in part.sinks] + [f"changelog/{store.name}" for store in part.stores]
    return SubTopologyWork(
        sub_topology=part.index,
        identity=RunIdentity("", 1, way, topology.fingerprint()),
        code=JobCode(build, partial(logs), Semantics(), Settings(limits=Limits(store_memory=memory))),
        epochs=(Epoch(1 + (way == "restore"), -1),),
        tasks=tasks,
        staging=StagingArea({target: str(root / target) for target in targets}, 1),
        execution=Execution.RECORD,
    )


def run(store: str, way: str, root: Path, rows: int, memory: int) -> dict[str, Any]:
    """Make one of the two runs in this process; return its costs."""
    build, _, outputs, changes = STORES[store]
    (part,) = build().sub_topologies()
    more = rows // 5
    start, end = (0, rows) if way == "count" else (rows, rows + more)
    path = (root / f"{way}.path").read_text()
    before = json.loads((root / "report.json").read_text()) if way == "restore" else {}
    task = TaskWork(
        0,
        {"events": LogSlice((LogFile(path, start, end - 1),), ((start, end),))},
        {},
        TaskState.from_json(before["state"]) if before else None,
        {name: tuple(paths) for name, paths in before["changelogs"].items()} if before else {},
    )
    work = work_of(store, way, root, memory, (task,))
    began = time.perf_counter()
    report = run_task(work, task)
    took = time.perf_counter() - began
    records, number = end - start, RUNS.index(way)
    rows_in = {prefix: sum(f.rows for f in report.files if f.target.startswith(prefix)) for prefix in ("out", "change")}
    assert rows_in == {"out": records * outputs[number], "change": records * changes[number]}
    changelogs = {
        one.name: [
            str(root / file.target / file.path) for file in report.files if file.target == f"changelog/{one.name}"
        ]
        for one in part.stores
    }
    (root / "report.json").write_text(json.dumps({"state": report.state, "changelogs": changelogs}))
    return {
        "run": way,
        "records": records,
        "keys": rows,
        "seconds": round(took, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def measure(store: str, rows: int, memory: int) -> Iterator[dict[str, Any]]:
    """Make both runs, each in a new process."""
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
        page = PAGE.format(store=options.store, keys=options.rows, **machine(), memory=options.memory >> 20, rows=rows)
        Path(__file__).with_name(STORES[options.store].page).write_text(page)


if __name__ == "__main__":
    main()
