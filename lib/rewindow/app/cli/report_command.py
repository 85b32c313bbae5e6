"""The command that writes a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewindow.app.cli.options import Branch, Debug, Folder, Job, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.open_project import OpenProject
from rewindow.app.times import ZONE
from rewindow.app.written_file import check_is_file, write_text
from rewindow.control.plan.spec import MAIN


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(report)


def report(
    job: Job,
    run: Annotated[str | None, typer.Option(metavar="N", help="Report on this run only, as main/3 or 3.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|TIME", help=f"Report on the runs since this run, or committed since this time {ZONE}."
        ),
    ] = None,
    diff: Annotated[
        str | None, typer.Option(metavar="BRANCH", help="Also compare the outputs with those of this branch.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Also replay the last run and compare every row.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File or URI to write. Default: report-JOB.html in this folder."),
    ] = None,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a report on a job's runs as one HTML file: verdict, dropped records, open windows, clocks, changes, cost."""
    from rewindow.app.report import Wanted
    from rewindow.app.report import report as collect
    from rewindow.report.page import page

    if out is not None:
        check_is_file(out, f"report-{job}.html")
    project = OpenProject.open(folder, target, debug=debug)
    printer, facts = Printer(as_json=as_json), collect(project, job, Wanted(branch, run, since, diff, verify))
    if printer.as_json:
        from rewindow.report.gather_report import as_json as as_values

        printer.json({"file": write_text(out, page(facts)) if out else None, **as_values(facts)})
        return
    path = write_text(out or Path(f"report-{job}.html"), page(facts))
    printer.say(f"{facts.verdict[0].text}.")
    printer.say(f"Report: {path}")
