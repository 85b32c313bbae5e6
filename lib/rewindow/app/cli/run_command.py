"""The commands of a replay: plan and run."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.app.cli.options import AcceptChanges, Branch, Debug, Folder, Job, Json, Takeover, Target
from rewindow.app.cli.printing_runs import RunPrinter, end_on_hold
from rewindow.app.describe_job import describe_published
from rewindow.app.open_project import OpenProject
from rewindow.app.times import ZONE, parse_through, parse_time
from rewindow.control.health.holds import describe_holds

Through = Annotated[
    str | None,
    typer.Option(
        metavar="LANDING|TIME",
        help=f"Stop after this landing (a number), or at this event time {ZONE}. Default: take all.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help=f"Take only complete intervals of arrival up to this time {ZONE}. Also applies to --land."
    ),
]
Final = Annotated[bool, typer.Option(help="Close every open window, then seal the branch: no run can follow.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (plan, run):
        app.command()(command)


def plan(
    job: Job,
    through: Through = None,
    until: Until = None,
    branch: Branch = "main",
    final: Final = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what `run` would do and why, and which landings and records wait. Changes nothing.

    If `run` would be refused, exits with the same code. If a run is on hold (79), names the run and exits with 0.
    """
    project = OpenProject.open(folder, target, debug=debug)
    request = parse_through(through, until, branch=branch, final=final)
    RunPrinter(as_json=as_json).planned(project.plan(job, request))


def run(
    job: Job,
    through: Through = None,
    until: Until = None,
    land_first: Annotated[bool, typer.Option("--land", help="Land the job's feed first.")] = False,
    branch: Branch = "main",
    final: Final = False,
    replan: Annotated[
        bool, typer.Option(help="Discard the plan of an attempt that did not finish and plan a new run.")
    ] = False,
    drop_buffered: Annotated[bool, typer.Option(help="Discard records buffered by a removed suppress().")] = False,
    accept_changes: AcceptChanges = False,
    takeover: Takeover = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay the new landings in one run. Exits with 79 if this run or an earlier run of the branch is on hold."""
    project = OpenProject.open(folder, target, debug=debug)
    printer = RunPrinter(as_json=as_json)
    landed = None
    if land_first:
        feed = project.job_config(job).feed
        with printer.progress() as on_step:
            landed = project.land(feed, until_ms=parse_time(until), on_step=on_step)
        if not as_json:
            printer.landed(feed, landed)
    request = parse_through(
        through,
        until,
        branch=branch,
        final=final,
        replan=replan,
        take_over=takeover,
        drop_buffered=drop_buffered,
        accept_changes=accept_changes,
    )
    with printer.progress() as on_step:
        results = project.run_to_the_end(job, request, on_step)
    holds = describe_holds(project.tables.state(job), branch)
    published = describe_published(project.tables, job, branch) if as_json else ()
    printer.ran(results, on_step, published, landed, holds)
    end_on_hold(holds)
