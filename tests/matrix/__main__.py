"""Install each row of the support matrix into its own environment, run its tests, and write it into README.md's table."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.results import machine
from tests.bench.sections import commit

ROOT = Path(__file__).resolve().parents[2]
README, KEPT = ROOT / "README.md", Path(__file__).with_name("results.json")
ENVIRONMENTS = ROOT / ".cache" / "matrix"
BEGIN, END = "<!-- matrix:begin (written by `make matrix`) -->\n", "<!-- matrix:end -->\n"
SHOWN = ("pyspark", "delta-spark", "deltalake", "pyarrow", "pandas", "apache-airflow")

SPARK_TESTS = ("tests/end_to_end/test_cli.py", "tests/engine", "tests/ingest", "tests/protocol/test_protocol.py")
"""Tests of what depends on versions: sessions, sources, Arrow in the workers, and Delta logs read and written by Spark."""


@dataclass(frozen=True, slots=True)
class Row:
    """One combination of versions. Unpinned packages have the newest version that pyproject.toml allows."""

    name: str
    python: str
    pins: tuple[str, ...]
    extras: str = "connect,demo,dev"
    tests: tuple[str, ...] = SPARK_TESTS
    markers: str = "not slow and not cluster and not airflow"


ROWS = (
    Row("oldest", "3.11", ("pyspark==4.0.1", "delta-spark==4.4.0", "pandas==2.2.3", "pyarrow==19.0.1", "numpy<2.3")),
    Row("4.1", "3.12", ("pyspark==4.1.4", "delta-spark==4.4.0", "pandas<3")),
    Row("newest", "3.13", ("pyspark==4.2.0", "delta-spark==4.4.0", "pandas<3")),
    Row(
        "airflow",
        "3.12",
        ("pyspark==4.2.0", "delta-spark==4.4.0", "apache-airflow==3.3.*"),
        extras="airflow,databricks,dev",
        tests=("tests/airflow",),
        markers="not airflow",
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """The versions that a row installed, by package, and the numbers of tests that passed and failed with them."""

    row: Row
    versions: Mapping[str, str]
    passed: int
    failed: int

    def as_json(self) -> dict[str, Any]:
        """Return what is kept of it, with today's date and the commit."""
        return {
            "python": self.row.python,
            "versions": {name: self.versions[name] for name in SHOWN if name in self.versions},
            "passed": self.passed,
            "failed": self.failed,
            "date": datetime.now(UTC).date().isoformat(),
            "commit": commit(),
            "machine": machine()["machine"],
        }


def main() -> int:
    """Run the requested rows. Return 1 if tests of any row failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="ROW", help=f"default: all of {', '.join(row.name for row in ROWS)}"
    )
    names = parser.parse_args().names
    if unknown := sorted(set(names) - {row.name for row in ROWS}):
        parser.error(f"no such row: {', '.join(unknown)}")
    failed = 0
    for row in ROWS:
        if not names or row.name in names:
            result = run(row)
            write(result)
            failed += result.failed
    return int(failed > 0)


def run(row: Row) -> Result:
    """Install a row and run its tests."""
    python = install(row)
    versions = json.loads(subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True).stdout)
    print(f"== {row.name}: Python {row.python}, {versions}", flush=True)
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PATH": f"{python.parent}:{os.environ['PATH']}"}
    environment["VIRTUAL_ENV"] = str(python.parent.parent)
    subprocess.run([python, "-m", "rewindow.engine.spark.class_archive"], env=environment, check=True)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", row.markers, "-W", "default", *row.tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout[-6000:])
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    failed = counts.get("failed", 0) + counts.get("error", 0) or int(done.returncode != 0)
    return Result(row, versions, counts.get("passed", 0), failed)


def install(row: Row) -> Path:
    """Create or update the row's environment, and return its Python."""
    folder = ENVIRONMENTS / row.name
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([_interpreter(row.python), "-m", "venv", folder], check=True)
    pip: list[str | Path] = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "setuptools>=77", "wheel"], check=True)
    subprocess.run([*pip, "--use-pep517", "-e", f"{ROOT}[{row.extras}]", *row.pins], check=True)
    return python


def _interpreter(version: str) -> str:
    """Return the command of a Python version: the launcher on the path, or pyenv's interpreter."""
    pyenv = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    return str(pyenv[-1]) if pyenv else f"python{version}"


def write(result: Result) -> None:
    """Keep a row's result, and write it into the table in README.md. The other rows stay."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) | {result.row.name: result.as_json()}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    README.write_text(rendered(), encoding="utf-8")


def rendered() -> str:
    """Return README.md with the table that the kept results give."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        message = f"README.md has no {BEGIN.strip()} ... {END.strip()}"
        raise SystemExit(message)
    lines = [
        f"| | Python | {' | '.join(SHOWN)} | tests | date, commit |",
        f"| --- | --- |{' --- |' * len(SHOWN)} --- | --- |",
        *(_line(row.name, kept[row.name]) for row in ROWS if row.name in kept),
    ]
    text = "".join(f"{line}\n" for line in lines)
    return f"{before}{begin}{text}{end}{after}"


def _line(name: str, result: Mapping[str, Any]) -> str:
    shown = " | ".join(result["versions"].get(package, "-") for package in SHOWN)
    outcome = f"{result['passed']} passed" + (f", {result['failed']} failed" if result["failed"] else "")
    return f"| {name} | {result['python']} | {shown} | {outcome} | {result['date']}, {result['commit']} |"


_VERSIONS = f"""
import json
from importlib import metadata
found = {{}}
for name in {SHOWN!r}:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""

if __name__ == "__main__":
    sys.exit(main())
