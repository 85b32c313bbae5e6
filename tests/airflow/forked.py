"""Execute Python beside a loaded Airflow: one process imports it, in four CPU-seconds, and each piece of code gets a fork.

A fork has an environment, arguments and modules of its own, as a new process has. What Airflow reads while it is imported
is that of the first process: its home, and its database.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LOADED = (
    "airflow.dag_processing.dagbag",
    "rewindow.airflow.dags",
    "rewindow.airflow.job_runs",
    "databricks.sdk",
)
"""What most of the code imports, as far as it is installed."""


class Airflow:
    """A process that has imported Airflow."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Send requests to the process."""
        self._process = process

    def executes(self, code: str, env: dict[str, str], *arguments: str) -> list[str]:
        """Execute code in this environment, and return the lines that it printed. It must not fail."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([code, env, arguments]) + "\n")
        self._process.stdin.flush()
        code_of_exit, out, err = json.loads(self._process.stdout.readline())
        assert code_of_exit == 0, f"{code}\nended with {code_of_exit}\n{out[-6000:]}\n{err[-6000:]}"
        return str(out).splitlines()

    def answers(self, code: str, env: dict[str, str], *arguments: str) -> Any:
        """Execute code, and return the JSON of the last line that it printed."""
        return json.loads(self.executes(code, env, *arguments)[-1])


@contextmanager
def loaded(env: dict[str, str]) -> Iterator[Airflow]:
    """Start a process that imports Airflow in this environment."""
    command = [sys.executable, "-W", "ignore", "-P", str(Path(__file__))]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Airflow(process)


def serve() -> None:
    """Execute each request from stdin in a fork, and answer with its exit code, output and errors."""
    for name in LOADED:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for line in sys.stdin:
        code, env, arguments = json.loads(line)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if child == 0:
                _execute(code, env, arguments, out.fileno(), err.fileno())
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            print(json.dumps([os.waitstatus_to_exitcode(status), out.read(), err.read()]), flush=True)


def _execute(code: str, env: dict[str, str], arguments: list[str], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = arguments
    ended = 1
    try:
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})  # noqa: S102 - the code of a test
        ended = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the test prints it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended)


if __name__ == "__main__":
    serve()
