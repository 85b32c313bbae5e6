"""The commands that look into a job's stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rewindow.app.cli.options import Branch, Debug, Folder, Json, Target
from rewindow.app.cli.printing_maintenance import RecoveryPrinter
from rewindow.app.project import Project
from rewindow.control.plan.branch_decisions import find_run
from rewindow.control.plan.spec import MAIN
from rewindow.errors import UsageError
from rewindow.tables.delta.state_query import Stores, as_rows, changes, export

At = Annotated[str | None, typer.Option(help="After this run: main/3 or its number (default: the last).")]
Limit = Annotated[int, typer.Option(help="How many to show.", min=1)]

DIFFERENT = 1

state_app = typer.Typer(help="Look into a job's stores, as they are or as they were after a run.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(state_app, name="state")


@state_app.command("list")
def state_list(
    job: str,
    at: At = None,
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List a job's stores: keys, what a restore reads, the last run that changed each, columns."""
    opened = Project.open(project, target, debug=debug)
    RecoveryPrinter(as_json=as_json).listed("stores", _stores(opened, job, branch, at).describe())


@state_app.command("show")
def state_show(
    job: str,
    store: str,
    key: Annotated[list[str] | None, typer.Option(help="Only this key: a value, or COLUMN=VALUE, repeated.")] = None,
    at: At = None,
    limit: Limit = 20,
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what a store holds, by key."""
    stores = _stores(Project.open(project, target, debug=debug), job, branch, at)
    rows = stores.rows(store, _where(stores, store, key or ()))
    shown = as_rows(rows.slice(0, limit))
    RecoveryPrinter(as_json=as_json).entries(shown, rows.num_rows)


@state_app.command("diff")
def state_diff(
    job: str,
    store: str,
    run_a: str,
    run_b: str,
    limit: Limit = 20,
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare a store after two runs, key by key; ends with 1 if it differs."""
    opened = Project.open(project, target, debug=debug)
    first, second = (_stores(opened, job, branch, run) for run in (run_a, run_b))
    found = list(changes(first.rows(store), second.rows(store), first.keys(store)))
    RecoveryPrinter(as_json=as_json).changed(store, (run_a, run_b), found, limit)
    if found:
        raise typer.Exit(DIFFERENT)


@state_app.command("export")
def state_export(
    job: str,
    store: str,
    to: Annotated[Path, typer.Option(help="A new file: NAME.parquet, NAME.csv or NAME.json (a row a line).")],
    at: At = None,
    branch: Branch = MAIN,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write what a store holds to a file."""
    rows = _stores(Project.open(project, target, debug=debug), job, branch, at).rows(store)
    export(rows, to)
    RecoveryPrinter(as_json=as_json).exported(store, str(to), rows.num_rows)


def _stores(project: Project, job: str, branch: str, at: str | None) -> Stores:
    project.job_config(job)
    tables = project.tables
    state = tables.state(job)
    for _step in tables.publish(job, state, branch):
        pass
    known = state.branch(branch)
    run = known.head if at is None else find_run(state, known, at)
    if run is None:
        message = f"job {job!r} has no state yet in branch {branch!r}: `rewindow run {job}` first"
        raise UsageError(message)
    return Stores(tables, state, run)


def _where(stores: Stores, store: str, said: Sequence[str]) -> dict[str, str]:
    """Read ``COLUMN=VALUE``; a bare value is that of the first key column."""
    where = {}
    for word in said:
        column, is_named, value = word.partition("=")
        columns = stores.keys(store)
        if is_named and column in columns:
            where[column] = value
        else:
            where[columns[0]] = word
    return where
