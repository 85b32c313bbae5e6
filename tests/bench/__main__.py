"""`python -m tests.bench NAME [--rows N] [--json]`: run one benchmark, next to its yardstick.

With ``--rows small`` it is as small as it can be, prints one line, writes nothing, and fails if its answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from rewindow.testing.fresh_modules import without_modules
from tests.bench import (
    day,
    end_to_end,
    finals,
    functions,
    governed,
    incremental,
    join,
    land,
    land_small,
    land_text,
    limits,
    long_ledger,
    overhead,
    processor,
    results,
    scale,
    year,
)
from tests.bench.billion import measure as billion
from tests.bench.nexmark import measure as nexmark

BENCHES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "finals": finals.measure,
    "finals-hopping": partial(finals.measure, advance=20),
    "finals-session": partial(finals.measure, advance=day.SESSION),
    "functions": functions.measure,
    "governed": governed.measure,
    "governed-ledger": long_ledger.measure,
    "limits": limits.measure,
    "land": land.measure,
    "land-small": land_small.measure,
    "land-csv": partial(land_text.measure, text="csv"),
    "land-json": partial(land_text.measure, text="json"),
    "end-to-end": end_to_end.measure,
    "processor": processor.measure,
    "processor-batch": partial(processor.measure, job="processor-batch"),
    "incremental": incremental.measure,
    "join": partial(join.measure, kind=join.STREAM_TABLE),
    "join-streams": partial(join.measure, kind=join.STREAM_STREAM),
    "scale": scale.measure,
    "overhead": overhead.measure,
    "year": year.measure,
    "billion": billion.measure,
    **{f"nexmark-{query}": partial(nexmark.measure, query=query) for query in nexmark.LOGS},
}
WRITERS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "governed": governed.write,
    "governed-ledger": long_ledger.write,
}
"""Benchmarks whose section of the results page is not the usual one."""
ROWS = {
    "finals-hopping": 4_000_000,
    "finals-session": 2_000_000,
    "functions": 4_000_000,
    "processor": 1_000_000,
    "processor-batch": 1_000_000,
    "incremental": 4_000_000,
    "year": 8_760 * year.PER_RUN,
    "billion": billion.ROWS,
}
ROWS |= dict.fromkeys((f"nexmark-{query}" for query in nexmark.LOGS), 2_000_000)
ROWS |= {"join": 1_000_000, "join-streams": 200_000, "overhead": 10_000, "land-small": 10_000, "governed": 1_000}
"""The default number of records: a benchmark ends within minutes on two cores."""
MOST_ROWS = 10_000_000
SMALL = "small"
SMALL_ROWS = 10_000
SMALLER: Mapping[str, Mapping[str, Any]] = {
    **{name: {"shuffles": (2,)} for name in ("finals", "finals-hopping", "finals-session")},
    "overhead": {"rows": 1_000, "stored": 10_000},
    "governed": {"rows": 100, "runs": (1,)},
    "governed-ledger": {"hours": (24,)},
    "year": {"rows": 24 * year.PER_RUN},
}
"""What else is small in the short form of a benchmark."""


def main() -> int:
    """Run a benchmark and print its figures. Large measurements are also written to the results page."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", choices=BENCHES)
    default = f"{SMALL}, or a number; default: {MOST_ROWS:,}, or fewer, so that it ends within minutes"
    parser.add_argument("--rows", type=lambda text: text if text == SMALL else int(text), metavar="N", help=default)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each way, alternated; the median counts")
    parser.add_argument("--execution", choices=("auto", "record"), default="auto")
    parser.add_argument("--landings", choices=("hourly", "one"), default="hourly")
    parser.add_argument("--source", choices=("auto", "shuffle"), default="auto")
    parser.add_argument("--folder", type=Path, help="billion: where its files are (40 GB of disk; default: build)")
    parser.add_argument("--inline", type=int, help="billion: as in a target")
    parser.add_argument("--cold", action="store_true", help="each measurement is the first job of a fresh session")
    parser.add_argument("--json", action="store_true", help="print one JSON object and write nothing")
    options = parser.parse_args()
    if options.rows == SMALL:
        return run_small(options.name)
    usual = ROWS.get(options.name, MOST_ROWS)
    rows = options.rows or usual
    where = {"folder": options.folder, "inline": options.inline} if options.name == "billion" else {}
    figures = BENCHES[options.name](
        rows,
        **where,
        rounds=options.rounds,
        execution=options.execution,
        landings=options.landings,
        source=options.source,
        cold=options.cold,
    )
    figures = {"bench": options.name, **figures, **results.machine()}
    if options.json:
        print(json.dumps(figures))
    elif options.name in WRITERS:
        WRITERS[options.name](figures)
    else:
        print(results.as_text(figures))
        if rows >= min(usual, results.LEAST_ROWS):
            results.write(figures)
    return 0


def run_small(name: str) -> int:
    """Run the short form of a benchmark; return 1 if its answer is wrong. Its figures mean nothing, so there are none."""
    begun = time.monotonic()
    with without_modules(_is_temporary), tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder:
        where = {"folder": Path(folder)} if name == "billion" else {}
        figures = BENCHES[name](**{"rows": SMALL_ROWS, "rounds": 1, **where, **SMALLER.get(name, {})})
    is_exact = figures.get("exact", True)
    answer = "exact" if is_exact else "WRONG"
    print(f"{name}: {figures['rows']:,} records, answer {answer}, {time.monotonic() - begun:.0f} s", flush=True)
    return 0 if is_exact else 1


def _is_temporary(_: str, module: ModuleType) -> bool:
    # Benchmarks write jobs of the same name, and the next one in this process must not find the module of this one.
    return (getattr(module, "__file__", None) or "").startswith(tempfile.gettempdir())


if __name__ == "__main__":
    sys.exit(main())
