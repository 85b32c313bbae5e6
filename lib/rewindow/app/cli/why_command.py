"""The command that explains a row of an output."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.app.cli.completing import tables
from rewindow.app.cli.options import Branch, Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.cli.printing_why import missing_lines, row_lines
from rewindow.app.open_project import OpenProject
from rewindow.app.times import ZONE, parse_time
from rewindow.control.plan.spec import MAIN
from rewindow.errors import NothingFoundError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(why)


def why(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="An output table, or a job with one output.", autocompletion=tables)
    ],
    key: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY", help="The key: its value, COLUMN=VALUE for each of several columns, or a JSON object."
        ),
    ],
    window: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"A time in the window, or its start if windows overlap {ZONE}. Default: the key's newest row.",
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="The row that this run wrote, as main/3 or 3.")] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Say why there is no row of the key yet, or never will be.")
    ] = False,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Name the records and punctuations that made a row, or say why there is no row. Changes nothing. Times are in UTC."""
    # These modules are imported here, because the engine that replays a row loads slowly, and other commands do not need it.
    from rewindow.app.why.asked_window import AskedTime
    from rewindow.app.why.key_form import check_columns, choose_row, null_key, read_key, without_key
    from rewindow.app.why.missing import explain_missing
    from rewindow.app.why.output import Output
    from rewindow.app.why.row import check_not_altered, explain_row

    project = OpenProject.open(folder, target, debug=debug)
    output = Output.find(project, table, branch)
    wanted, time_ms = read_key(output, key), parse_time(window)
    at = None if time_ms is None else AskedTime(output, key, time_ms, missing)
    printer = Printer(as_json=as_json)
    rows = output.rows(wanted)
    if not rows and (nulls := null_key(wanted)) and (of_nulls := output.rows(nulls)):
        wanted, rows = nulls, of_nulls
    if missing or not rows:  # somebody else may have deleted or changed the row after it was published
        output.tables.check_published(output.job.name, output.state, output.branch.name)
        check_not_altered(output)
    if not rows:
        check_columns(output, key, wanted)
    keyless = None if rows else without_key(project, output, wanted)
    if keyless is not None and not missing:
        raise NothingFoundError(
            "key-without-row",
            "{table}: {reason}",
            table=output.table,
            reason=". ".join([keyless.headline, *keyless.reasons]),
        )
    if missing:
        absent = keyless or explain_missing(project, output, wanted, rows, at)
        if as_json:
            printer.json(absent.as_json())
        else:
            for line in missing_lines(absent):
                printer.say(line)
        return
    own, row = choose_row(output, key, rows, at, run)
    facts = explain_row(output, own, row, time_ms)
    if as_json:
        printer.json(facts.as_json())
        return
    columns = [column.name for column in output.key_columns]
    for line in row_lines(facts, columns, "" if at is not None else " ".join(key)):
        printer.say(line)
