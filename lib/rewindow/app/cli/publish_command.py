"""The command that publishes committed runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rewindow.app.cli.options import Branch, Debug, Folder, Job, Json, Target
from rewindow.app.cli.printing_runs import RunPrinter, end_on_hold
from rewindow.app.describe_job import describe_published
from rewindow.app.open_project import OpenProject
from rewindow.app.publishing import Published, published_lines
from rewindow.app.publishing import publish as publish_job
from rewindow.control.plan.spec import MAIN
from rewindow.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(publish)


def publish(
    job: Job,
    accept: Annotated[
        bool, typer.Option("--accept", help="Publish a run on hold although it does not meet its expectations.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The run to accept, as main/3 or 3. Default: the only one on hold."),
    ] = None,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Publish committed runs. Exits with 79 while a run is on hold; --accept publishes it."""
    if run is not None and not accept:
        raise UsageError("run-without-accept", "--run works only with --accept: add --accept, or remove --run")
    project = OpenProject.open(folder, target, debug=debug)
    printer = RunPrinter(as_json=as_json)
    with printer.progress() as on_step:
        done = publish_job(project, job, branch, accepts=accept, run=run, on_step=on_step)
    if as_json:
        printer.json(_as_json(job, done) | {"published": describe_published(project.tables, job, branch)})
    else:
        for line in published_lines(job, done):
            printer.say(line)
    end_on_hold(done.on_hold)


def _as_json(job: str, done: Published) -> dict[str, Any]:
    return {
        "job": job,
        "branch": done.branch,
        "accepted": done.accepted,
        "lagged": done.lagged,
        "on_hold": done.on_hold,
    }
