"""The report that a task writes after its command: which one, into which file, and its address. Does not import Airflow.

Each branch of a job has one file, so old reports need no clean-up; a report shows earlier runs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from rewindow.airflow.commands import command_line
from rewindow.airflow.process import Command
from rewindow.config.load import find_project, load_target, location_of
from rewindow.contracts.exit_codes import meaning
from rewindow.errors import StorageError, UsageError

WAREHOUSE, NONE = "warehouse", "none"
"""What ``reports=`` may be: reports are files below the warehouse, or there are none."""
FOLDER: Final = "rewindow/reports"
"""Where they are below the warehouse."""

_POLL_S = 0.5


def check_reports(given: str) -> str:
    """Return what ``reports=`` is. Raises `UsageError` (2) for anything else."""
    if given not in (WAREHOUSE, NONE):
        raise UsageError("reports-place-unknown", "reports={given!r}: use 'warehouse' or 'none'", given=given)
    return given


def report_of(result: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Return the file, below the folder of reports, and the options of the report on what a command did.

    ``result`` is the ``--json`` output of `run` or `backfill`; there is no report on other commands, and none if nothing
    was done.
    """
    summary = result.get("summary") or {}
    if summary.get("job"):
        return _of(summary["job"], summary["branch"])
    if result.get("runs") and result.get("job"):
        return _of(result["job"], result["branch"], "--diff", "main")
    return None


def write_report(
    result: Mapping[str, Any],
    where: Mapping[str, Any],
    served_at: str | None,
    start: Callable[[list[str]], Command],
    say: Callable[[str], None],
) -> str | None:
    """Write the report on what a command did, and return its address; None if there is no report on it.

    ``where`` are the arguments of `commands.command_line` that say where the project is, ``served_at`` the address of the
    folder. Raises a `RewindowError` with the reason if the report cannot be written.
    """
    wanted = report_of(result)
    if wanted is None:
        return None
    folder = folder_of(where["project"], where["target"])
    if folder is None:
        return None
    file, arguments = wanted
    with start(command_line([*arguments, "--out", f"{folder}/{file}"], **where)) as command:
        code = command.wait(say, poll_s=_POLL_S)
        if code != 0:
            result = command.result()
            message = str(result.get("error") or meaning(code))
            raise StorageError.restored(str(result.get("code") or "report-not-written"), message, {})
    address = address_of(folder, file, served_at)
    say(f"Report: {address}")
    return address


def folder_of(project: str, target: str) -> str | None:
    """Return the folder of a target's reports, as a path or URI; None if a catalog governs the tables.

    Such a report would start Spark. Raises `ConfigError` (78) for an unknown project or target.
    """
    root = find_project(Path(project).absolute())
    config = load_target(root, target)
    if config.catalog is not None:
        return None
    return f"{location_of(root, config.warehouse).removeprefix('file://').rstrip('/')}/{FOLDER}"


def address_of(folder: str, file: str, served_at: str | None) -> str:
    """Return the address of a report: where a web server shows it, else its own."""
    if served_at:
        return f"{served_at.rstrip('/')}/{quote(file)}"
    return f"{folder}/{file}" if "://" in folder else Path(folder, file).as_uri()


def _of(job: str, branch: str, *options: str) -> tuple[str, list[str]]:
    return f"{job}/{branch}.html", ["report", job, "--branch", branch, *options]
