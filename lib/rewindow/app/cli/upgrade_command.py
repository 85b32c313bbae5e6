"""The command that shows whether this version can read the format of a warehouse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from rewindow.app.cli.options import Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.open_project import OpenProject
from rewindow.control.health.phrases import counted
from rewindow.control.plan.stored_rows import FORMAT
from rewindow.errors import CheckpointError
from rewindow.tables.shared.stored_formats import Fit, StoredTable

_UNSTATED = "that state no format: told by the columns"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(upgrade)


def upgrade(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be converted.")] = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say which formats the warehouse has, and convert what needs it. Exits with 76 if this version cannot read it.

    This version reads and writes only one format. So there is nothing to convert, and the command never changes anything.
    """
    stored = OpenProject.open(folder, target, debug=debug).tables.stored_tables()
    printer = Printer(as_json=as_json)
    is_readable = all(table.fit in (Fit.READ, Fit.ABSENT) for table in stored)
    advice = list(_advice(stored, target))
    if as_json:
        code = 0 if is_readable else CheckpointError.exit_code
        tables = [_values(table) for table in stored]
        printer.json(
            {"target": target, "format": FORMAT, "dry_run": dry_run, "tables": tables, "converted": []}
            | {"advice": advice, "exit_code": code}
        )
    else:
        printer.table(
            "", [{**_values(table), "rows": _counts(table), "refused": ", ".join(table.refused)} for table in stored]
        )
        for line in advice:
            printer.say(line)
    if not is_readable:
        raise typer.Exit(CheckpointError.exit_code)


def _values(table: StoredTable) -> dict[str, Any]:
    rows = [{"format": stated, "rows": count} for stated, count in table.rows.items()]
    return {
        "table": table.table,
        "path": table.path,
        "fit": table.fit.value,
        "rows": rows,
        "refused": list(table.refused),
    }


def _counts(table: StoredTable) -> str:
    return ", ".join(
        f"{counted(count, 'row')} {_UNSTATED if stated is None else f'of format {stated}'}"
        for stated, count in table.rows.items()
    )


def _advice(stored: Sequence[StoredTable], target: str) -> Iterator[str]:
    """Yield what to do, as sentences."""
    fits = {table.fit for table in stored}
    if fits <= {Fit.ABSENT}:
        yield f"The warehouse is empty. This version writes format {FORMAT}. There is nothing to convert."
    elif fits <= {Fit.READ, Fit.ABSENT}:
        yield f"This version reads and writes format {FORMAT}, and the warehouse has no other. There is nothing to convert."
    if Fit.OLDER in fits:
        yield (
            "Format 1 was written by rewindow 0.1. No version converts it, and every command of this one refuses it (76) "
            "and leaves it as it is."
        )
        yield "To go on, replay into a new warehouse and keep the old one for reading with 0.1:"
        yield f"  1. copy conf/targets/{target}.yaml to a new target with another `warehouse:`"
        yield "  2. rewindow land FEED --target NEW, for each feed: its sources are read again from the beginning"
        yield "  3. rewindow run JOB --target NEW, for each job; then let readers use its tables"
    if Fit.NEWER in fits:
        yield f"A newer version of rewindow wrote here. This one reads format {FORMAT} only: install that version again."
