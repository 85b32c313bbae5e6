"""`python -m tests.bench.governed_worker --rows N`: the memory of a worker of governed tables.

One task counts N keys, then restores them and counts N/5 more, each time in a new process that receives its records and its
store as rows, as from Spark, and returns what it stages as rows. Prints the peak resident memory of each process. ``--batch``
is the number of pieces per batch that Spark delivers: 2,048 as rewindow asks for, 10,000 where that setting is forbidden.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.tasks import Execution, LogSlice, LogTable, TaskWork
from rewindow.engine.spark.shuffle_reader import DATA, PACK_COLUMNS
from rewindow.engine.worker.packing import PACK_ROWS, PIECE_BYTES, cut
from rewindow.streams.checkpoint import TaskState
from rewindow.tables.governed import rows_engine as engine
from rewindow.tables.governed.journal import ROOT
from tests.bench import spill

_SCHEMA = pa.schema([*((name, pa.int64()) for name in PACK_COLUMNS), (DATA, pa.binary())])
_BLOCK = engine._BLOCK_TOPIC


def _delivered(log: str, blocks: list[Path], batch: int) -> Iterator[pa.RecordBatch]:
    """Yield pieces of the store's files, then pieces of packs of the records, in batches."""
    held: list[pa.RecordBatch] = []
    for pieces in chain(_of_blocks(blocks), _of_packs(log)):
        held.append(pieces)
        if sum(one.num_rows for one in held) >= batch:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _of_blocks(blocks: list[Path]) -> Iterator[pa.RecordBatch]:
    for number, path in enumerate(blocks):
        data = path.read_bytes()
        pieces = [data[first : first + PIECE_BYTES] for first in range(0, len(data), PIECE_BYTES)]
        yield _batch((0, 0, _BLOCK, number, -1, -1), pa.array(pieces, pa.binary()))


def _of_packs(log: str) -> Iterator[pa.RecordBatch]:
    for number, rows in enumerate(pq.ParquetFile(log).iter_batches(PACK_ROWS)):
        offsets = rows.column("offset")
        yield _batch((0, 0, 0, offsets[0].as_py(), offsets[-1].as_py(), number), cut(rows))


def _batch(numbers: tuple[int, ...], data: pa.Array) -> pa.RecordBatch:
    columns = [pa.repeat(pa.scalar(number, pa.int64()), len(data)) for number in numbers]
    return pa.RecordBatch.from_arrays([*columns, pa.array(range(len(data)), pa.int64()), data], schema=_SCHEMA)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Make one of the two runs in this process; return its costs."""
    way, folder = options.run
    root, rows = Path(folder), options.rows
    start, end = (0, rows) if way == "count" else (rows, rows + rows // 5)
    before = json.loads((root / "report.json").read_text()) if way == "restore" else {"blocks": [], "state": None}
    blocks = [path for path in before["blocks"] if "changelog" in path]
    task = TaskWork(
        0,
        {"events": LogSlice((), ((start, end),))},
        {},
        TaskState.from_json(before["state"]) if before["state"] else None,
        {"counts": tuple(f"{ROOT}{path}" for path in blocks)} if blocks else {},
    )
    work = replace(
        spill.work_of(options.store, way, root, options.memory, ()),
        tables={"events": LogTable("events", "")},
        execution=Execution(options.execution),
    )
    rows_in = _delivered((root / f"{way}.path").read_text(), [root / path for path in blocks], options.batch)
    staged, state = {}, None
    for batch in engine._run_rows(work, {0: task}, (), rows_in):
        (row,) = batch.select(["kind", "path", "text"]).to_pylist()
        if row["kind"] == "report":
            state = json.loads(row["text"])["state"]
        else:
            (root / row["path"]).parent.mkdir(parents=True, exist_ok=True)
            data = batch.column("data")[0].as_buffer()
            (root / row["path"]).write_bytes(data)
            staged[row["path"]] = data.size >> 20
    (root / "report.json").write_text(json.dumps({"state": state, "blocks": list(staged)}))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"run": way, "largest_block_mb": max(staged.values()), "peak_mb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.governed_worker", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--memory", type=int, default=384 << 20, help="store_memory")
    parser.add_argument("--batch", type=int, default=2_048)
    parser.add_argument("--store", choices=spill.STORES, default="keys")
    parser.add_argument("--execution", choices=["record", "vectorized"], default="record")
    parser.add_argument("--run", nargs=2, metavar=("RUN", "FOLDER"), help="make one run in this process")
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options)))
        return
    with tempfile.TemporaryDirectory(prefix="rewindow-worker-") as folder:
        root, rows = Path(folder), options.rows
        for way, start, end in zip(spill.RUNS, (0, rows), (rows, rows + rows // 5), strict=True):
            (root / f"{way}.path").write_text(spill.make_log(root / "log", rows, start, end))
            command = [sys.executable, "-m", "tests.bench.governed_worker", *sys.argv[1:], "--run", way, folder]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            print(done.stdout or done.stderr[-2000:], end="", flush=True)


if __name__ == "__main__":
    main()
