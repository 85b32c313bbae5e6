"""A landing that is killed several times, and then called until its end: the log is that of an unbroken landing.

`python -m tests.crash.killed_landing [--rows N] [--kills K] [--seed S] [--folder F]` does it with real commands and many
records, at random moments, and writes the section of the benchmarks' page.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from rewindow.engine.worker.digest import RowsDigest
from rewindow.tables.delta.table_rows import table_files
from tests.bench.billion.records import HOURS, Size, name_of, write_hour
from tests.bench.day import FEED
from tests.bench.land_text import write_table
from tests.bench.results import REPORT, machine
from tests.bench.rounds import IN_PROCESS, ON_SPARK, open_rounds
from tests.bench.sections import write_section
from tests.bench.workload import PARTITIONS
from tests.cli_process import command, done

ROWS, KILLS, PARQUET = 50_000_000, 3, "parquet"
WAYS = {"Spark's workers": ON_SPARK, "the command's process": IN_PROCESS}
LAND = ("land", f"{FEED}0")
END_S = 3600


class Landed(NamedTuple):
    """What a landing left: a digest of the log's rows, their number, and the files of the exchange, of which none may remain.

    The digest takes little memory, unlike `content_hash`. The rows have their partitions and offsets, so it shows their order.
    """

    digest: str
    rows: int
    exchange: int


def write_raw(folder: Path, rows: int, kind: str = PARQUET) -> None:
    """Write the raw files of a day."""
    folder.mkdir(parents=True)
    size = Size(rows)
    for hour in range(HOURS * size.days):
        write_hour(folder, hour, size.rows_of(hour))
        if kind != PARQUET:
            file = folder / name_of(hour)
            write_table(pq.read_table(file), file.with_suffix(f".{kind}"))
            file.unlink()


def scene(root: Path, raw: Path, inline: int, kind: str = PARQUET) -> Path:
    """Return the folder of a new project over the raw files."""
    open_rounds(root, raw, 1, landings="hourly", inline=inline)
    feed = root / f"conf/feeds/{FEED}0.yaml"
    feed.write_text(feed.read_text().replace(f"format: {PARQUET}", f"format: {kind}"))
    return root


def land(root: Path) -> Landed:
    """Land to the end."""
    done(command(root, *LAND), seconds=END_S)
    digest, rows = RowsDigest(), 0
    log = log_of(root)
    for listed in table_files(str(log), DeltaTable(str(log))):
        with pq.ParquetFile(log / listed.path) as file:
            for batch in file.iter_batches():
                digest.update(
                    batch.append_column("partition", pa.repeat(listed.partition["partition"], batch.num_rows))
                )
                rows += batch.num_rows
    return Landed(digest.hexdigest(), rows, len(exchanged(root)))


def kill(root: Path, files: int) -> str:
    """Start a landing and kill it without warning once it has written so many files. Return what it was doing."""
    before = _files(root)
    process = command(root, *LAND)
    while process.poll() is None and len(_files(root) - before) < files:
        time.sleep(0.01)
    was = stage_of(root) if process.poll() is None else "ended"
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=END_S)
    return was


def _files(root: Path) -> set[Path]:
    """Return the files of the exchange and of the log, of which some may be drafts."""
    return {*exchanged(root), *log_of(root).glob("generation=*/*/*")}


def stage_of(root: Path) -> str:
    """Return which pass of a landing has left files."""
    if next(log_of(root).glob("generation=*/*/*"), None):
        return "writing the log"
    return "sorting" if exchanged(root) else "before its first file"


def exchanged(root: Path) -> list[Path]:
    """Return the files between the two passes of landings on Spark."""
    return list((log_of(root) / "_exchange").glob("*"))


def log_of(root: Path) -> Path:
    """Return the folder of the log."""
    return root / "warehouse" / "logs" / f"{FEED}0" / "events"


def main() -> None:
    """Kill landings at random moments of the unbroken one, finish them, compare, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--format", choices=(PARQUET, "csv", "json"), default=PARQUET)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the files are (default: the temporary folder)")
    options = parser.parse_args()
    rng, lines = random.Random(options.seed), []
    with tempfile.TemporaryDirectory(prefix="rewindow-kills-", dir=options.folder) as folder:
        write_raw(Path(folder) / "raw", options.rows, options.format)
        for number, (way, inline) in enumerate(WAYS.items()):
            raw = Path(folder) / "raw"
            begun = time.monotonic()
            expected = land(scene(Path(folder) / f"unbroken{number}", raw, inline, options.format))
            seconds = time.monotonic() - begun
            killed = scene(Path(folder) / f"killed{number}", raw, inline, options.format)
            moments = []
            for _ in range(options.kills):
                files = rng.randrange(1, HOURS * PARTITIONS)
                moments.append(f"{files} files ({kill(killed, files)})")
            found = land(killed)
            is_same = found == expected and not found.exchange
            lines.append(
                f"| {way} | {seconds:.0f} | {', '.join(moments)} | {found.rows:,} | "
                f"{'the same' if is_same else f'**WRONG** {expected} {found}'} |"
            )
            print(lines[-1], flush=True)
            text = as_text(options, lines)
            section = "killed-landing" if options.format == PARQUET else f"killed-landing-{options.format}"
            write_section(REPORT, section, f"python -m tests.crash.killed_landing --format {options.format}", text)


def as_text(options: argparse.Namespace, lines: list[str]) -> str:
    """Return the section."""
    known = machine()
    rows = f"{options.rows:,} records from {options.format} files"
    table = "\n".join(lines)
    return f"""### `killed-landing`: a landing of {rows} that `kill -9` ends several times

{known["date"]}, {known["machine"]}, {known["versions"]}.
Random moments of seed {options.seed}. Afterwards the landing is called again, to its end.

| landed by | seconds unbroken | killed after | records then | digest of all rows |
| --- | --- | --- | --- | --- |
{table}
"""


if __name__ == "__main__":
    main()
