"""`python -m tests.bench.requests`: how many requests a small landing and a small run make to a bucket.

The bucket is moto's S3 server, whose log has a line for each request. What earlier commands have read is forgotten, as if each
command were a new process. The figures are written to the results page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from rewindow.tables.delta import handle
from tests.bad_input.scene import hour, without_spark
from tests.bench.results import REPORT, machine
from tests.bench.sections import write_section
from tests.object_store.scene import THERE, done, make
from tests.object_store.server import requests, s3_server

COMMAND = "python -m tests.bench.requests"
GOAL, HOURS = 120, 24
BEFORE = (
    "Before logs were read from a local copy (693d686), runs made 252 to 638 requests and landings 83 to 249. Without the cache "
    "of tables in buckets (17d5789), the third run made 893 requests, the 24th 1,437."
)


def main() -> None:
    """Measure and write the section."""
    lands, runs = measure(HOURS)
    text = as_text(lands, runs)
    print(text)
    write_section(REPORT, "requests", COMMAND, text)


def measure(hours: int) -> tuple[list[int], list[int]]:
    """Return the number of requests of each landing and of each run."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder:
        root = Path(folder)
        with s3_server(root) as settings, without_spark():
            bench, _warehouse = make(root / "project", settings)
            lands: list[int] = []
            runs: list[int] = []
            seen = len(requests(root))
            for number in range(hours):
                bench.rows(f"h{number}", hour(number))
                for words, counts in ((("land", "activity"), lands), (("run", "counts"), runs)):
                    handle.cached.clear()
                    done(bench.run(*words, *THERE, "--json"))
                    before, seen = seen, len(requests(root))
                    counts.append(seen - before)
    return lands, runs


def as_text(lands: list[int], runs: list[int]) -> str:
    """Return the section."""
    known = machine()
    rows = "\n".join(f"| {number} | {lands[number - 1]} | {runs[number - 1]} |" for number in (1, 2, 3, 12, len(runs)))
    return f"""### `requests`: requests to a bucket

{known["date"]}, {known["versions"]}. 12 records in each hour, two partitions, one output, two stores.
Goal: at most {GOAL} for a small run. {BEFORE}

| hour | landing | run |
| --- | --- | --- |
{rows}
"""


if __name__ == "__main__":
    main()
