"""The command that lists what is in a project."""

from __future__ import annotations

from typing import Any

import typer

from rewindow.app.cli.options import Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.listing import list_project
from rewindow.app.open_project import OpenProject
from rewindow.contracts.instants import instant
from rewindow.control.health.entries import Entry
from rewindow.control.health.phrases import counted


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(ls)


def ls(
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List feeds, jobs and branches with their status. Changes nothing, and exits with 0.

    Starts Spark only for tables that a catalog governs (`commit: spark`). These are the statuses:

    `fresh`: nothing to do.

    `due`: a feed's sources have new rows, one landing waits for the job, or an interrupted command must be completed.

    `behind`: two or more landings wait for the job, or a branch has not processed all landings that main has processed.

    `on hold`: a run does not meet an expectation. It is not published until somebody accepts it.

    `running`: a process is landing the feed or running the job now.

    `never landed`, `never run`: the feed has no landing, or the job has no run.

    `left behind` (branches only): the branch has run other code or other landings than the job and its feed have now.

    `broken`: the next command would be refused, for the reason that is shown.
    """
    project = OpenProject.open(folder, target, debug=debug)
    feeds, jobs = list_project(project)
    printer = Printer(as_json=as_json)
    if as_json:
        listed = [{"feed": entry.name, **_values(entry)} for entry in feeds]
        printer.json({"target": target, "feeds": listed, "jobs": [_job(entry) for entry in jobs]})
        return
    rows = [_row("feed", entry.name, entry) for entry in feeds]
    for job in jobs:
        rows.append(_row("job", job.name, job))
        rows += [_row("branch", f"{job.name} {branch.name}", branch) for branch in job.branches]
    if rows:
        printer.table("", rows)
    else:
        printer.say("There are no feeds and jobs yet: add conf/feeds/FEED.yaml and conf/jobs/JOB.yaml.")


def _values(entry: Entry) -> dict[str, Any]:
    return {
        "status": entry.status.value,
        "detail": entry.detail,
        "detail_codes": entry.detail_codes,
        "exit_code": entry.exit_code,
        "epoch": entry.epoch,
        "watermark_ms": entry.watermark_ms,
    }


def _job(job: Entry) -> dict[str, Any]:
    branches = [{"branch": branch.name, **_values(branch), "waiting": branch.waiting} for branch in job.branches]
    return {"job": job.name, "feed": job.feed, **_values(job), "waiting": job.waiting, "branches": branches}


def _row(kind: str, name: str, entry: Entry) -> dict[str, Any]:
    """Return the table row of an entry.

    If the entry's detail has several lines, the row has the first line and the number of the others.
    """
    through = None if entry.watermark_ms is None else instant(entry.watermark_ms)
    first_line, *more = (entry.detail or "").split("\n")
    detail = f"{first_line} ({counted(len(more), 'more line')} with --json)" if more else first_line
    status = entry.status.value.replace("_", " ")
    return {
        "": kind,
        "name": name,
        "status": status,
        "landing": entry.epoch,
        "complete through": through,
        "detail": detail,
    }
