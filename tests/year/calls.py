"""Calls of commands: in this process, through the same code as a command line, and in processes of their own."""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from typer.main import get_command

from rewindow.app.cli.entry import run_command
from tests.year.project import MODULE
from tests.year.requests import Requests
from tests.year.shortened import short_ages
from tests.year.watched import start

EXPECTED = frozenset({0})


class Called:
    """The result of a command: its exit code, its JSON, and its costs."""

    def __init__(self, words: tuple[str, ...], code: int, out: str, err: str, costs: dict[str, float]) -> None:
        self.words, self.code, self.out, self.err, self.costs = words, code, out, err, costs

    @property
    def data(self) -> Any:
        """What it printed."""
        return json.loads(self.out)

    def checked(self, codes: frozenset[int] = EXPECTED) -> Called:
        """Return it. Raises `AssertionError` if the command ended with another code."""
        assert self.code in codes, (
            f"{' '.join(self.words)} ended with {self.code}: {self.out[-500:]} {self.err[-1500:]}"
        )
        return self


def here(root: Path, *words: str) -> Called:
    """Call a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    arguments = [*words, "--project", str(root), "--json"]
    with redirect_stdout(out), redirect_stderr(err), _own_modules(root), short_ages():
        begun, cpu = time.perf_counter(), time.process_time()
        code = run_command(arguments)
        costs = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu}
    return Called(words, code, out.getvalue(), err.getvalue(), {name: round(cost, 4) for name, cost in costs.items()})


def cold(root: Path, *words: str) -> Called:
    """Call a command in a process of its own, and count what it opens of the warehouse and of the source."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Requests(root / "warehouse", root / "raw") as requests:
        begun = time.perf_counter()
        process = start(root, *words, "--json")
        out, err = process.communicate()
        seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    costs = {"seconds": round(seconds, 3), "cpu": round(cpu, 3), "files": requests.files, "folders": requests.folders}
    return Called(words, process.returncode, out, err, costs)


def resident_mb() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 1)


@contextmanager
def _own_modules(root: Path) -> Iterator[None]:
    """Import the project's code anew, as a new process would, and build the command line once."""
    path = list(sys.path)
    sys.path.insert(0, str(root))
    try:
        with mock.patch("typer.main.get_command", _command):
            yield
    finally:
        sys.path[:] = path
        sys.modules.pop(MODULE, None)


_command = cache(get_command)
