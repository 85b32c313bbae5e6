"""A separate Airflow for tests: its home, database and environment, which only child processes use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
AIRFLOW = str(Path(sys.executable).parent / "airflow")


def environment(home: Path, dags: Path, database: str = "") -> dict[str, str]:
    """Return the environment of an Airflow with this home and folder of DAG files. Its database is SQLite by default."""
    bins = str(Path(sys.executable).parent)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # 5 s is too short on a busy machine
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database or f"sqlite:///{home}/airflow.db?timeout=120",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "PATH": f"{bins}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "lib"),
    }


def migrate(env: dict[str, str]) -> None:
    """Create the database and the pool of one slot."""
    for arguments in (["db", "migrate"], ["pools", "set", "rewindow", "1", "rewindow: one writer at a time"]):
        said(env, AIRFLOW, *arguments)


def said(env: dict[str, str], *command: str, cwd: Path | None = None, timeout: float = 900) -> str:
    """Run a command to its end and return its output."""
    done = subprocess.run(command, env=env, cwd=cwd, timeout=timeout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"{' '.join(command)} ended with {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    )
    return done.stdout


def patiently(env: dict[str, str], line: list[str]) -> None:
    """Run an Airflow command, with retries because SQLite is sometimes locked."""
    for _ in range(10):
        done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
        if done.returncode == 0 or "database is locked" not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, f"{line}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"


def commands(root: Path, command: str) -> list[int]:
    """Return the pids of rewindow commands on a project (not of their supervisors)."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if str(root) in line and command in line[4:6] and not any(part.endswith("supervisor.py") for part in line):
            found.append(process.pid)
    return found


def play(env: dict[str, str], *plays: dict[str, Any]) -> list[dict[str, Any]]:
    """Run DAGs with `dag.test`, one after the other in one process; see `tests.airflow.play`."""
    printed = said(env, sys.executable, str(ROOT / "tests/airflow/play.py"), json.dumps(plays), timeout=1800)
    found: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return found
