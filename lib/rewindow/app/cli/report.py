"""The command that writes a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewindow.app.cli.branches import HASH_SEED
from rewindow.app.cli.options import Branch, Debug, Folder, Job, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.project import Project
from rewindow.control.plan.spec import MAIN
from rewindow.errors import UsageError
from rewindow.report.facts import Report

if TYPE_CHECKING:
    from rewindow.app.report import Wanted


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(report)


def report(
    job: Job,
    run: Annotated[str | None, typer.Option(metavar="N", help="Report on this run only, as main/3 or 3.")] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="RUN|TIME", help="Report on the runs since this run, or committed since this time."),
    ] = None,
    diff: Annotated[
        str | None, typer.Option(metavar="BRANCH", help="Also compare the outputs with those of this branch.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Also replay the last run and compare every row.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write. Default: report-JOB.html in this folder.")
    ] = None,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a report on a job's runs as one HTML file: verdict, dropped records, open windows, clocks, changes, cost."""
    from rewindow.app.report import Wanted, without_collection

    if verify:
        os.environ["PYTHONHASHSEED"] = HASH_SEED  # Spark's workers inherit it
    if out is not None and out.is_dir():
        message = f"--out {out} is a folder: name a file in it, such as {out / f'report-{job}.html'}"
        raise UsageError(message)
    project = Project.open(folder, target, debug=debug)
    with without_collection():
        _report(project, job, Wanted(branch, run, since, diff, verify), out, Printer(as_json=as_json))


def _report(project: Project, job: str, wanted: Wanted, out: Path | None, printer: Printer) -> None:
    """Collect a report and print or write it."""
    from rewindow.app.report import report as collect

    found = collect(project, job, wanted)
    if printer.as_json:
        from rewindow.report.gather import as_json as as_values

        printer.json({"file": _written(found, out) if out else None, **as_values(found)})
        return
    path = _written(found, out or Path(f"report-{job}.html"))
    printer.say(f"{found.verdict[0].text}.")
    printer.say(f"Report: {path}")


def _written(found: Report, path: Path) -> str:
    """Write a report and return its path. An earlier one is replaced. Raises `UsageError` (2) if the file cannot be written."""
    from rewindow.report.page import page

    text = page(found)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write the report {path}: {error.strerror or error}. Name another file with --out"
        raise UsageError(message) from error
    return str(path)
