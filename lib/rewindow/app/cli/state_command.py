"""The commands that query a job's state stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rewindow.app.cli.completing import stores
from rewindow.app.cli.options import Branch, Debug, Folder, Job, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.open_project import OpenProject
from rewindow.app.result_lines import as_assignments
from rewindow.app.run_references import as_of
from rewindow.app.times import with_readable_times
from rewindow.control.health.phrases import counted
from rewindow.control.plan.spec import MAIN
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.shared.state_query import StoreChange, Stores, as_rows, changes, export

At = Annotated[
    str | None, typer.Option(metavar="RUN", help="State after this run, as main/3 or 3. Default: the last run.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="Maximum number of entries to show.", min=1)]
StoreName = Annotated[str, typer.Argument(metavar="STORE", help="Name of the store.", autocompletion=stores)]

DIFFERENT = 1

state_app = typer.Typer(help="Query a job's state stores, now or as of an earlier run.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(state_app, name="state")


@state_app.command("list")
def state_list(
    job: Job,
    at: At = None,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List a job's stores: number of entries, cost of a restore, last run that changed each, columns."""
    project = OpenProject.open(folder, target, debug=debug)
    Printer(as_json=as_json).listed("stores", _stores(project, job, branch, at).describe())


@state_app.command("show")
def state_show(
    job: Job,
    store: StoreName,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE|COLUMN=VALUE",
            help="Show only this key: VALUE of the first key column, or COLUMN=VALUE. Can be repeated.",
        ),
    ] = None,
    at: At = None,
    limit: Limit = 20,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the entries of a store."""
    stores = _stores(OpenProject.open(folder, target, debug=debug), job, branch, at)
    where = _where(stores, store, key or ())
    rows, printer = stores.rows(store, where), Printer(as_json=as_json)
    shown = as_rows(rows.slice(0, limit))
    if as_json:
        printer.json({"entries": shown, "count": rows.num_rows})
    elif not shown:
        searched = ", ".join(f"{name}={value}" for name, value in where.items())
        printer.say(f"Store {store} has no entry{f' with {searched}' if searched else ''}.")
    else:
        printer.table("", with_readable_times(shown, stores.keys(store)))
        if rows.num_rows > len(shown):
            printer.say(f"{len(shown)} of {rows.num_rows} entries. Use --limit to show more.")


@state_app.command("diff")
def state_diff(
    job: Job,
    store: StoreName,
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="First run, as main/3 or 3.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Second run.")],
    limit: Limit = 20,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare a store after two runs, key by key in each partition. Exits with 1 if they differ."""
    project = OpenProject.open(folder, target, debug=debug)
    before, after = (_stores(project, job, branch, run) for run in (run_a, run_b))
    changed = list(changes(before.rows(store), after.rows(store), before.keys(store)))
    shown, printer = changed[:limit], Printer(as_json=as_json)
    if as_json:
        printer.json({"count": len(changed), "changes": [change.as_json() for change in shown]})
    else:
        _print_changes(printer, store, (run_a, run_b), changed, shown)
    if changed:
        raise typer.Exit(DIFFERENT)


@state_app.command("export")
def state_export(
    job: Job,
    store: StoreName,
    to: Annotated[
        Path, typer.Option(metavar="FILE", help="New file: NAME.parquet, NAME.csv or NAME.json (one row per line).")
    ],
    at: At = None,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the entries of a store to a file."""
    rows = _stores(OpenProject.open(folder, target, debug=debug), job, branch, at).rows(store)
    export(rows, to)
    wrote = f"Wrote {counted(rows.num_rows, 'row')} of store {store} to {to}."
    Printer(as_json=as_json).result({"store": store, "file": str(to), "rows": rows.num_rows}, [wrote])


def _print_changes(
    printer: Printer, store: str, runs: tuple[str, str], changes: Sequence[StoreChange], shown: Sequence[StoreChange]
) -> None:
    """Print how a store differs between two runs."""
    in_several = any(change.in_several for change in changes)
    unit = "entries" if in_several else "keys"
    printer.say(f"Store {store}: {len(changes)} {unit} differ between {runs[0]} and {runs[1]}.")
    rows = [
        {
            **({PARTITION: change.partition} if in_several else {}),
            **change.key,
            runs[0]: _values(change.before),
            runs[1]: _values(change.after),
        }
        for change in shown
    ]
    if rows:
        printer.table("", with_readable_times(rows, shown[0].key))
    if len(changes) > len(shown):
        printer.say(f"{len(shown)} of {len(changes)} {unit}. Use --limit to show more.")


def _values(row: Mapping[str, Any] | None) -> str:
    return "-" if row is None else as_assignments(row)


def _stores(project: OpenProject, job: str, branch: str, at: str | None) -> Stores:
    return as_of(project, job, branch, at).stores(project.tables)


def _where(stores: Stores, store: str, words: Sequence[str]) -> dict[str, str]:
    """Parse words ``COLUMN=VALUE`` to a mapping from column to value.

    A value without ``COLUMN=`` is for the first key column.
    """
    where = {}
    for word in words:
        column, is_named, value = word.partition("=")
        columns = stores.keys(store)
        if is_named and column in columns:
            where[column] = value
        else:
            where[columns[0]] = word
    return where
