"""The commands of time travel: rewind, backfill, diff, promote, branch and verify."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rewindow.app.branches import History
from rewindow.app.cli.options import Branch, Debug, Folder, Json, Target
from rewindow.app.cli.printing_branches import HistoryPrinter
from rewindow.app.project import Project
from rewindow.control.plan.spec import MAIN

DIFFERENT = 1
HASH_SEED = "20130101"
"""Another order of sets and dictionaries' hashes than Spark's workers have by default, which is 0."""

branch_app = typer.Typer(help="List a job's branches, or give a branch up.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (rewind, backfill, diff, promote, verify):
        app.command()(command)
    app.add_typer(branch_app, name="branch")


def rewind(
    job: str,
    to: Annotated[str, typer.Option(help="The run to go back to: main/3, its number, or 0 for the beginning.")],
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Go back to an earlier run. Its successors' rows leave the output tables; nothing is deleted."""
    printer = HistoryPrinter(as_json=as_json)
    with printer.progress() as on_step:
        done = _history(project, target, job, debug=debug).rewind(branch, to, on_step)
    printer.rewound(job, done)


def backfill(
    job: str,
    start: Annotated[
        str, typer.Option("--from", help="An event time, a landing or a run; rounded down to a run's end.")
    ],
    end: Annotated[str | None, typer.Option("--to", help="The same, inclusive (default: as far as main).")] = None,
    branch: Annotated[str | None, typer.Option(help="The branch, new or begun (default: backfill-N).")] = None,
    accept_changes: Annotated[
        bool, typer.Option(help="Go on with other code than the checkpoint's, where its stores allow it.")
    ] = False,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay history on a branch with tables of its own. What is published stays as it is until `promote`."""
    printer = HistoryPrinter(as_json=as_json)
    with printer.progress() as on_step:
        done = _history(project, target, job, debug=debug).backfill(
            start, end, branch, on_step, accept_changes=accept_changes
        )
    printer.backfilled(job, done)


def diff(
    job: str,
    first: str,
    second: str,
    samples: Annotated[int, typer.Option(help="How many differing keys to show of each output.")] = 5,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two branches' outputs key by key; ends with 1 if they differ."""
    history = _history(project, target, job, debug=debug)
    found = history.diff(first, second, samples)
    are_equal = all(difference.is_none for difference in found.values())
    HistoryPrinter(as_json=as_json).compared(
        first, second, found, [] if are_equal else history.code_changes(first, second)
    )
    if not are_equal:
        raise typer.Exit(DIFFERENT)


def promote(
    job: str,
    branch: str,
    into: Annotated[str, typer.Option(help="The branch that it becomes.")] = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Make a branch the published branch, when it has caught up: one commit for each table."""
    printer = HistoryPrinter(as_json=as_json)
    with printer.progress() as on_step:
        done = _history(project, target, job, debug=debug).promote(branch, into, on_step)
    printer.promoted(job, done)


def verify(
    job: str,
    runs: Annotated[list[str] | None, typer.Argument(help="Runs, as main/3 or 3 (default: the last).")] = None,
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay committed runs in another layout and compare every row; ends with 1 if one differs."""
    os.environ["PYTHONHASHSEED"] = HASH_SEED  # Spark's workers get it
    printer = HistoryPrinter(as_json=as_json)
    with printer.progress() as on_step:
        proofs = list(_history(project, target, job, debug=debug).verify(branch, runs or (), on_step))
    printer.verified(job, proofs)
    if any(proof.differences for proof in proofs):
        raise typer.Exit(DIFFERENT)


@branch_app.command("list")
def branch_list(
    job: str, target: Target = "local", project: Folder = ".", as_json: Json = False, debug: Debug = False
) -> None:
    """List a job's branches: where each begins, how far it is, whether it is open."""
    HistoryPrinter(as_json=as_json).listed("branches", _history(project, target, job, debug=debug).branches())


@branch_app.command("drop")
def branch_drop(
    job: str, name: str, target: Target = "local", project: Folder = ".", as_json: Json = False, debug: Debug = False
) -> None:
    """Give a branch up. Its name is not used again."""
    _history(project, target, job, debug=debug).drop(name)
    HistoryPrinter(as_json=as_json).dropped(job, name)


def _history(project: str, target: str, job: str, *, debug: bool) -> History:
    return History(Project.open(project, target, debug=debug), job)
