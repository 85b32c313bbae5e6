"""The entry point of the wheel task: parameters of a Databricks job in, `land` and `run` done, errors with their code.

Parameters come as ``--name=value``. ``interval_end`` serves the schedule, the native backfill and a person alike. Each
command prints one line of JSON: who started the job run finds it in the task's logs (`databricks.results`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rewindow.app.cli.app import run_command
from rewindow.app.cli.times import parse_time
from rewindow.config.load import find_project, load_feed, load_job
from rewindow.databricks.outcome import ended
from rewindow.errors import RewindowError, UsageError


class TaskError(RuntimeError):
    """What a task ends with: Databricks keeps the text, `rewindow databricks submit` finds the code in it."""


def main() -> None:
    """Run the task with the arguments of this process. Raises `TaskError` for every end but a good one."""
    try:
        commands = commands_of(sys.argv[1:])
    except RewindowError as error:
        raise TaskError(ended(error.exit_code, str(error))) from None
    for command in commands:
        code = run_command(command)
        if code:
            raise TaskError(ended(code, f"`rewindow {' '.join(command[:2])}`; its message stands above"))


def commands_of(arguments: Sequence[str]) -> list[list[str]]:
    """Return the command lines that a task's parameters mean.

    Raises `UsageError` (2) for parameters that cannot be understood, or that the platform did not fill in.
    """
    for argument in arguments:
        if "{{" in argument:
            # Databricks passes a misspelt reference on as it is.
            message = f"{argument!r} still has a reference in it: see its spelling in databricks.yml"
            raise UsageError(message)
    given = _parsed(arguments)
    root = find_project(Path(given.project).absolute())
    job = load_job(root, given.job)
    until = given.interval_end or None
    parse_time(until)
    common = ["--target", given.target, "--project", str(root), "--json"]
    upto = ["--until", until] if until else []
    # Where watermarks are interval ends, `run` stops there too; else what was landed is all there is.
    ends = load_feed(root, job.feed).landing.watermark == "interval_end"
    through = ["--through", until] if until and ends else []
    return [["land", job.feed, *upto, *common], ["run", job.job, *through, *common]]


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="rewindow-task", add_help=False, allow_abbrev=False)
    parser.add_argument("--job", required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--target", default="databricks")
    parser.add_argument("--interval_end", default="")
    return parser.parse_args(list(arguments))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"the task's parameters: {message}")
