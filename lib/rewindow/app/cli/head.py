"""The command that shows rows of output tables."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.app.cli.completing import jobs_and_tables, names
from rewindow.app.cli.options import AnyBranch, Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.first_rows import is_quarantine, output_rows
from rewindow.app.held_rows import held_rows
from rewindow.app.open_project import OpenProject
from rewindow.app.times import with_readable_times
from rewindow.control.health.job_health import explain_holds
from rewindow.control.health.phrases import command_words, counted
from rewindow.control.plan.spec import MAIN
from rewindow.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(head)


def head(
    name: Annotated[
        str,
        typer.Argument(
            metavar="JOB|TABLE",
            help="A job, for all its outputs, an output table, or rewindow.quarantine.",
            autocompletion=jobs_and_tables,
        ),
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of rows to show.")
    ] = 10,
    last: Annotated[bool, typer.Option("--last", help="Show the latest rows instead of the earliest.")] = False,
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            metavar="JOB|FEED",
            help="Of rewindow.quarantine, only the records that this job or feed put there.",
            autocompletion=names("jobs", "feeds"),
        ),
    ] = None,
    held: Annotated[
        bool,
        typer.Option("--held", help="Show the rows of the first run on hold, which are not published."),
    ] = False,
    branch: AnyBranch = None,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show rows of output tables, in the order of their timestamps, or of the quarantine. Times are in UTC."""
    project = OpenProject.open(folder, target, debug=debug)
    if held and (of is not None or is_quarantine(name)):
        raise UsageError(
            "held-option-misplaced",
            "--held shows rows of a job's outputs: omit --of, and name a job or an output table",
        )
    printer, shown_branch = Printer(as_json=as_json), branch or MAIN
    if held:
        found = list(held_rows(project, name, branch=shown_branch, limit=limit, last=last))
    else:
        found = list(output_rows(project, name, branch=branch, limit=limit, last=last, of=of))
    if as_json:
        printer.json({"branch": branch if is_quarantine(name) else shown_branch, "tables": found})
        return
    for line in explain_holds([found[0]["hold"]]) if held and found else ():
        printer.say(line)
    for one in found:
        for run in one.get("on_hold", ())[:1]:
            job = command_words(one["job"], shown_branch)
            printer.say(
                f"Run {run} is on hold, so its rows, and those of the runs behind it, are not in {one['table']}: "
                f"`rewindow plan {job}` says why, `rewindow head {job} --held` shows its rows, and "
                f"`rewindow publish {job} --accept --run {run}` publishes them."
            )
        if one.get("replaced"):
            were = "row is" if one["replaced"] == 1 else "rows are"
            printer.say(
                f"{one['replaced']:,} more {were} of landings that `rewindow land --new-generation` has replaced, and not shown."
            )
        if one["count"] is None:
            printer.say(
                f"{one['table']} does not exist yet: no run of {one['job']} has written it on branch {shown_branch}."
            )
            continue
        if not one["count"]:
            run = f"Run {one['hold']['run']} adds no rows to {one['table']}." if held else None
            printer.say(run or f"{one['table']} has no rows{f' of {of}' if of else ''}.")
            continue
        rows, which = counted(one["count"], "row"), "last" if last else "first"
        shown = rows if len(one["rows"]) == one["count"] else f"{which} {len(one['rows'])} of {rows}"
        not_published = ", not published" if held else ""
        printer.table(f"{one['table']}: {shown}{not_published}", with_readable_times(one["rows"], one["keys"]))
