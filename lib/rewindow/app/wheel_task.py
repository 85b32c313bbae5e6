"""Entry point of the Databricks wheel task: translates job parameters into `land` and `run`, and exit codes into errors.

Parameters have the form ``--name=value``. Schedules, native backfills and manual runs all set ``interval_end``. Each command
prints one line of JSON, which `databricks.submit` reads from the task's logs. ``secrets`` lists environment variables whose
values are read from secret scopes, because serverless compute does not allow setting environment variables.

Databricks would retry every failed task, whatever the reason. So the bundle sets ``max_retries: 0``, and the task itself
repeats a command if its exit code asks for a retry.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rewindow.app.cli.entry import run_command
from rewindow.app.times import parse_time
from rewindow.config.load import find_project, load_feed, load_job
from rewindow.contracts.exit_codes import LIMIT, Next, meaning, what_next
from rewindow.databricks import secrets
from rewindow.databricks.submit import ended
from rewindow.errors import RewindowError, UsageError, visible

STOPPED = (130, 143)
"""Exit codes of a command that somebody stopped. A scheduler may retry such a command, but this task must end."""
PAUSES_S = (60, 120, 240)
"""The pauses (seconds) before the repetitions of a command. If the last repetition fails, the task fails."""


class TaskError(RuntimeError):
    """The failure of a task. Databricks keeps its text, from which `rewindow databricks submit` reads the exit code."""


def main() -> None:
    """Run the task with the arguments of this process. Raises `TaskError` if a command fails."""
    try:
        commands = commands_of(sys.argv[1:])
        os.environ.update(secrets.read(secrets.named(_parsed(sys.argv[1:]).secrets)))
    except RewindowError as error:
        raise TaskError(ended(error.exit_code, str(error))) from None
    for command in commands:
        code = _repeated(command)
        if code:
            raise TaskError(ended(code, f"`rewindow {' '.join(command[:2])}`; see its message above"))


def _repeated(command: list[str]) -> int:
    """Run a command and return its last exit code. After a pause, repeat it if its exit code asks for a retry."""
    limits = 0
    for pause_s in PAUSES_S:
        code = run_command(command)
        if code in STOPPED or what_next(code, limits_before=limits) not in (Next.RETRY, Next.RETRY_ONCE):
            return code
        limits += code == LIMIT
        sys.stderr.write(
            visible(f"{meaning(code)}. `rewindow {' '.join(command[:2])}` runs again in {pause_s} s") + "\n"
        )
        time.sleep(pause_s)
    return run_command(command)


def commands_of(arguments: Sequence[str]) -> list[list[str]]:
    """Return the command lines for a task's parameters.

    Raises `UsageError` (2) for invalid parameters, and for references that Databricks did not resolve.
    """
    for argument in arguments:
        if "{{" in argument:
            # Databricks leaves a misspelt reference unchanged.
            raise UsageError(
                "reference-unresolved",
                "{argument!r} contains an unresolved reference: check its spelling in databricks.yml",
                argument=argument,
            )
    given = _parsed(arguments)
    root = find_project(Path(given.project).absolute())
    job = load_job(root, given.job)
    until = given.interval_end or None
    parse_time(until)
    common = ["--target", given.target, "--project", str(root), "--json"]
    upto = ["--until", until] if until else []
    # If each watermark is the end of an interval, `run` stops there, too. Otherwise it processes all landings.
    ends = load_feed(root, job.feed).landing.watermark == "interval_end"
    through = ["--through", until] if until and ends else []
    accepts = ["--accept-changes"] if given.accept_changes == "true" else []
    return [["land", job.feed, *upto, *common], ["run", job.job, *through, *accepts, *common]]


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="rewindow-task", add_help=False, allow_abbrev=False)
    parser.add_argument("--job", required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--target", default="databricks")
    parser.add_argument("--interval_end", default="")
    parser.add_argument("--accept_changes", choices=["true", "false"], default="false")
    parser.add_argument("--secrets", default="")
    return parser.parse_args(list(arguments))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError("task-parameters-invalid", "the task's parameters: {reason}", reason=message)
