"""The command that shows what a job has done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rewindow.app.cli.options import Branch, Debug, Folder, Job, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.describe_job import show_job
from rewindow.app.open_project import OpenProject
from rewindow.app.result_lines import readable
from rewindow.control.health.holds import explain_holds, explain_lag
from rewindow.control.plan.spec import MAIN


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(show)


def show(
    job: Job,
    branch: Branch = "main",
    hashes: Annotated[bool, typer.Option(help="Compute the content hash of each output table.")] = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a job's runs, tables and metrics."""
    project = OpenProject.open(folder, target, debug=debug)
    _print(Printer(as_json=as_json), show_job(project, job, branch=branch, hashes=hashes))


def _print(printer: Printer, shown: Mapping[str, Any]) -> None:
    """Print runs, tables and metrics."""
    if printer.as_json:
        printer.json(shown)
        return
    if not shown["runs"]:
        job, branch = shown["job"], shown["branch"]
        others = f" Branches with runs: {', '.join(shown['branches'])}." if shown["branches"] else ""
        command = f"`rewindow run {job}`" if branch in (None, MAIN) else f"`rewindow run {job} --branch {branch}`"
        printer.say(f"Job {job} has no runs on branch {branch or MAIN} yet. Start one with {command}.{others}")
        return
    runs = [{name: value for name, value in run.items() if name != "ledger_row"} for run in shown["runs"]]
    for title, rows in (("Runs", runs), ("Tables", shown["tables"]), ("Metrics", shown["metrics"])):
        printer.table(title, [readable(row) for row in rows])
    if shown["unmet"]:
        printer.table("Expectations not met", [readable(row) for row in shown["unmet"]])
    for line in explain_holds(shown["on_hold"]):
        printer.say(line)
    for line in explain_lag(shown["lagging"], f"The next command on the job, such as `rewindow run {shown['job']}`,"):
        printer.say(line)
