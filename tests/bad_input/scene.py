"""A small project without Spark in which something is wrong, and checks of what the commands then do.

The command line is real. It lands with Arrow (`tests.ingest.local_engine`) and runs tasks in this process.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from rewindow.app.cli.entry import run_command
from rewindow.app.cli.printing import Printer
from rewindow.app.failures import Failure
from rewindow.app.open_project import OpenProject
from rewindow.app.overview import overview
from rewindow.control.health.findings import Finding
from rewindow.control.ingest.landing_report import LandReport
from rewindow.control.plan.spec import MAIN, RunRequest
from rewindow.control.run import RunReport
from rewindow.engine.worker.local_engine import LocalEngine as RunEngine
from rewindow.errors import ReasonMessage
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import content_hash, read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import LANDINGS, QUARANTINE, RUNS
from tests.ingest.local_engine import HOUR, T0, LocalEngine, write_rows
from tests.refusals import Refusal

Say = Callable[..., tuple[int, str]]
"""The fixture `say`: runs a command, and returns its exit code and what it printed."""

FEED = """\
feed: activity
partitions: 2
logs:
  events: {source: {path: raw, format: parquet}, key: user, timestamp: t, arrived_at: got}
"""
CSV_FEED = """\
feed: orders
partitions: 1
logs:
  orders:
    source: {format: csv, path: data, schema: "user STRING, t TIMESTAMP", options: {header: "true"}}
    key: user
    value: [t]
    timestamp: t
    arrived_at: t
"""
HOURLY = FEED.replace("feed: activity", "feed: hourly") + "landing: {every: 1h}\n"
JOB = """\
job: counts
topology: bench_job:build_topology
feed: activity
outputs:
  totals: {table: alerts.totals}
on_code_change: accept
"""
TARGET = "target: local\nwarehouse: warehouse\n"
SCORE = """\
def score(row):
    return row.x * 2
"""
MODULE = """\
from rewindow import StreamsBuilder, TimeWindows, until_window_closes

{score}

def build_topology():
    builder = StreamsBuilder()
    counts = (
        builder.stream("events")
        .map_values(lambda row: score(row), name="scores")
        .group_by_key()
        .windowed_by(TimeWindows.of("30m", grace="5m"))
        .count(store="sums")
    )
    counts.suppress(until_window_closes(), name="closed").to_stream().to("totals")
    return builder.build()
"""
DONE = (0, 1)
"""Number of hours landed and replayed when a case starts; the next hour waits in the source."""
FRESH = 2
USERS = ("ann", "bob", "cyd")
MODULES = ("jobs", "bench_job", "bench_times", "shop_job", "other_job", "collected_lists", "collected_reader")


def topology(*lines: str, before: str = "") -> str:
    """Return a module that builds a topology in these lines."""
    body = indent("\n".join(lines).strip("\n"), "    ")
    head = f"from rewindow import *\n\n\n{before}\n\ndef build_topology():\n    builder = StreamsBuilder()\n"
    return f"{head}{body}\n    return builder.build()\n"


def project_of(root: Path, feed: str, module: str, *outputs: str, more: str = "") -> Bench:
    """Create a project of a feed and of the job `counts`, which writes its outputs into the schema `shop`. Nothing is landed."""
    bench, name = Bench(root), feed.splitlines()[0].removeprefix("feed: ")
    tables = "".join(f"  {output}: {{table: shop.{output}}}\n" for output in outputs)
    job = f"job: counts\ntopology: bench_job:build_topology\nfeed: {name}\n{more}"
    bench.write(f"conf/feeds/{name}.yaml", feed)
    bench.write("conf/jobs/counts.yaml", f"{job}outputs:\n{tables}" if outputs else job)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("bench_job.py", module)
    return bench


def hour(number: int, rows: int = 12) -> list[dict[str, Any]]:
    """Return the records of an hour."""
    start = T0 + number * HOUR
    return [
        {"user": USERS[n % 3], "t": start + n * HOUR // rows, "got": start + n * HOUR // rows + 1, "x": n}
        for n in range(rows)
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command: what it printed, why it failed, and the JSON object with the facts of its messages."""

    code: int
    out: str
    err: str
    failure: Failure | None = None
    said: Any = None

    @property
    def values(self) -> dict[str, Any]:
        """What `--json` printed."""
        values: dict[str, Any] = json.loads(self.out)
        return values

    def refused(self, code: str, /, **facts: object) -> Failure:
        """Return why the command failed, after a check of the code and of some facts. The code decides the exit code."""
        assert self.failure is not None, self
        Refusal(code, facts).check(self.failure)
        return self.failure


class Bench:
    """The project of a case."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warehouse = root / "warehouse"

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that occurs once in a file."""
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, (path, old)
        self.write(path, text.replace(old, new))

    def code(self, score: str) -> None:
        """Replace the job's user function."""
        self.write("bench_job.py", MODULE.format(score=score))

    def rows(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a source file."""
        write_rows(self.root, name, rows)

    def run(self, *words: str) -> Answer:
        """Run a command line in this process."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), self.code_is_imported(), _noting() as noted:
            code = run_command([*words, "--project", str(self.root)] if words[:1] != ("--help",) else [*words])
        return Answer(code, out.getvalue(), err.getvalue(), noted.get("failure"), noted.get("said"))

    def done(self, *lines: str) -> Answer:
        """Run command lines in this process, which must succeed. Return the last answer."""
        for line in lines:
            answer = self.run(*line.split())
            assert answer.code == 0, (line, answer)
        return answer

    def refuses(self, line: str, code: str, /, **facts: object) -> Failure:
        """Run a command line, which must fail with this code and, among others, these facts. Return why it failed."""
        return self.run(*line.split()).refused(code, **facts)

    def json(self, line: str) -> dict[str, Any]:
        """Return what a command line that succeeds, or finds something (1), prints with `--json`."""
        answer = self.run(*line.split(), "--json")
        assert answer.code in {0, 1}, answer
        return answer.values

    def said(self, line: str) -> dict[str, Any]:
        """Return what `json` returns, whose messages have their codes and facts."""
        answer = self.run(*line.split(), "--json")
        assert answer.code in {0, 1}, answer
        return dict(answer.said)

    def why(self, words: str) -> list[ReasonMessage]:
        """Return why a key has no row: what `rewindow why --missing` says of these words."""
        found = self.said(f"why {words} --missing")
        return [found["headline"], *found["reasons"]]

    def land(self, feed: str) -> LandReport:
        """Land a feed, for tests of what that returns to Python."""
        return OpenProject.open(self.root).land(feed)

    def replay(self, job: str, **request: Any) -> RunReport:
        """Run a job, for tests of what that returns to Python."""
        with self.code_is_imported():
            report = OpenProject.open(self.root).run(job, RunRequest(**request))
        assert isinstance(report, RunReport), report
        return report

    def findings(self, *names: str, branch: str = MAIN) -> list[Finding]:
        """Return what `rewindow status` finds, the most urgent subject first."""
        with self.code_is_imported():
            subjects = overview(OpenProject.open(self.root), names, branch).subjects
        return [finding for subject in subjects for finding in subject.findings]

    def code_is_imported(self) -> AbstractContextManager[None]:
        """Return a context in which the project's modules are imported anew, as by a process of its own."""
        return _own_modules(self.root)

    def files(self) -> dict[str, str]:
        """Return every file of the project with a digest of its bytes."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            for name in sorted(names):
                path = Path(folder, name)
                found[str(path.relative_to(self.root))] = blake2b(path.read_bytes(), digest_size=8).hexdigest()
        return found

    def decided(self) -> list[tuple[str, int, str]]:
        """Return the ledger rows that decide something, without PLAN and NOTE."""
        rows = []
        for path, name in ((RUNS, "counts"), (LANDINGS, "activity")):
            ledger = Ledger(table_path(str(self.warehouse), path), name)
            rows += [(path, row.seq, row.kind) for row in ledger.read() if row.kind not in {"PLAN", "NOTE"}]
        return rows

    def result(self) -> dict[str, str]:
        """Return the content of every table, as hashes: the log, outputs, stores, metrics."""
        hashes = dict(DeltaTables(str(self.warehouse)).hashes("counts", "main"))
        hashes["log"] = self.log_hash()
        return hashes

    def log_hash(self) -> str:
        """Return the content of the log, as a hash."""
        return content_hash(table_path(str(self.warehouse), "logs/activity/events"), exclude=("landing",))

    def quarantined(self) -> list[str]:
        """Return the reasons in the quarantine."""
        return sorted(read_rows(table_path(str(self.warehouse), QUARANTINE))["reason"].to_pylist())


@contextmanager
def _noting() -> Iterator[dict[str, Any]]:
    """Yield a dictionary that takes what a command in the block fails with, and what it prints as JSON."""
    noted: dict[str, Any] = {}
    print_failure, print_json = Printer.failed, Printer.json

    def failed(printer: Printer, failure: Failure, error: BaseException | None = None) -> None:
        noted["failure"] = failure
        print_failure(printer, failure, error)

    def said(printer: Printer, value: Any) -> None:
        noted["said"] = value
        print_json(printer, value)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Printer, "failed", failed)
        patched.setattr(Printer, "json", said)
        yield noted


@contextmanager
def _own_modules(root: Path) -> Iterator[None]:
    path, wrote, before = list(sys.path), sys.dont_write_bytecode, _without_own_code()
    sys.dont_write_bytecode = True  # cached bytecode of a file edited twice within a second would count as current
    sys.path.insert(0, str(root))  # as in a worker
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, wrote
        _without_own_code()
        sys.modules.update(before)


def _without_own_code() -> dict[str, ModuleType]:
    """Let the modules of projects be imported again; return those that were imported."""
    own = [name for name in sys.modules if name.startswith(MODULES) and name.partition(".")[0] in MODULES]
    return {name: sys.modules.pop(name) for name in own}


@contextmanager
def without_spark() -> Iterator[None]:
    """Execute the project's work in this process, without a JVM."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "rewindow.engine.spark.spark_landing.SparkLandingEngine",
            lambda *_args, project_root, **_options: LocalEngine(project_root),
        )
        patched.setattr("rewindow.engine.spark.spark_engine.SparkEngine", lambda *_args, **_options: RunEngine())
        patched.setattr(OpenProject, "spark", None)
        patched.setattr("typer.main.get_command", cache(get_command))  # otherwise each call builds it again, in 0.1 s
        yield


def make_template(root: Path) -> Bench:
    """Create the project that each case copies: two hours are replayed, and the third waits in the source."""
    bench = Bench(root)
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.code(SCORE)
    for number in DONE:
        bench.rows(f"h{number}", hour(number))
        goes_on(bench)
    bench.rows(f"h{FRESH}", hour(FRESH))
    return bench


def copy_of(template: Bench, root: Path) -> Bench:
    """Return a copy of a bench."""
    shutil.copytree(template.root, root)
    return Bench(root)


def goes_on(bench: Bench) -> None:
    """Land and replay everything, and check that it succeeds."""
    for words in (("land", "activity"), ("run", "counts")):
        answer = bench.run(*words)
        assert answer.code == 0, answer.err
