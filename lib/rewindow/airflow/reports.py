"""The report that a task writes after its command: its options, its file, and its address. Does not import Airflow.

There is only one file per branch of a job, because a report also covers earlier runs. So there are no old reports to delete.
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
"""The values of ``reports=``: write reports below the warehouse, or none."""
FOLDER: Final = "rewindow/reports"
"""The folder of the reports, below the warehouse."""

_POLL_S = 0.5


def check_reports(given: str) -> str:
    """Return the value of ``reports=``. Raises `UsageError` (2) if it is invalid."""
    if given not in (WAREHOUSE, NONE):
        raise UsageError("reports-place-unknown", "reports={given!r}: use 'warehouse' or 'none'", given=given)
    return given


def report_of(result: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Return the report's file, below the folder of reports, and the arguments of the command that writes it; None for no report.

    ``result``: the ``--json`` output of a command. Only `run` and `backfill` have a report, and only if they did something.
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
    """Write the report on what a command did, and return its address; None if there is no report.

    ``where``: the arguments of `commands.command_line` that name the project and target. ``served_at``: the address at which a
    web server serves the folder. Raises a `RewindowError` with the reason if the report cannot be written.
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

    Raises `ConfigError` (78) for an unknown project or target.
    """
    root = find_project(Path(project).absolute())
    config = load_target(root, target)
    # For tables in a catalog, a report would start Spark, so none is written.
    if config.catalog is not None:
        return None
    return f"{location_of(root, config.warehouse).rstrip('/')}/{FOLDER}"


def address_of(folder: str, file: str, served_at: str | None) -> str:
    """Return the address of a report: at the web server ``served_at``, or without a server the address of the file."""
    if served_at:
        return f"{served_at.rstrip('/')}/{quote(file)}"
    return f"{folder}/{file}" if "://" in folder else Path(folder, file).as_uri()


def _of(job: str, branch: str, *options: str) -> tuple[str, list[str]]:
    return f"{job}/{branch}.html", ["report", job, "--branch", branch, *options]
