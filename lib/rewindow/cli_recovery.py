"""The commands of recovery: republish and resume."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.cli_options import Debug, Folder, Json, Target
from rewindow.plan.spec import MAIN
from rewindow.printing_recovery import RecoveryPrinter
from rewindow.project import Project
from rewindow.recovery import Recovery

Lineage = Annotated[str, typer.Option(help="The lineage; `main` has the published tables.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (republish, resume):
        app.command()(command)


def republish(
    job: str,
    output: Annotated[list[str] | None, typer.Option(help="Publish this output anew, whatever is found.")] = None,
    all_tables: Annotated[bool, typer.Option("--all", help="Publish all tables anew, whatever is found.")] = False,
    lineage: Lineage = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find what another hand did to a job's tables (RESTORE, DELETE, a drop, files gone) and mend it."""
    printer = RecoveryPrinter(as_json=as_json)
    recovery = Recovery(Project.open(project, target, debug=debug), job)
    with printer.progress() as on_step:
        done = recovery.republish(lineage, output or [], all_tables=all_tables, on_step=on_step)
    printer.republished(job, done)


def resume(
    job: str,
    replan: Annotated[bool, typer.Option(help="Plan anew instead: all that the feed has by now.")] = False,
    takeover: Annotated[bool, typer.Option(help="Fence an attempt that still lives.")] = False,
    lineage: Lineage = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Take up the run of an attempt that died: its own epochs, parent and clock."""
    printer = RecoveryPrinter(as_json=as_json)
    recovery = Recovery(Project.open(project, target, debug=debug), job)
    with printer.progress() as on_step:
        done = recovery.resume(lineage, replan=replan, take_over=takeover, on_step=on_step)
    printer.resumed(job, done)
