"""The command that shows rows of output tables."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.app.cli.completing import jobs_and_tables, names
from rewindow.app.cli.options import AnyBranch, Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.open_project import OpenProject
from rewindow.app.output_rows import held_rows, is_quarantine, output_rows
from rewindow.app.times import with_readable_times
from rewindow.control.health.holds import explain_holds
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
            help="A job (shows all its outputs), an output table, or rewindow.quarantine.",
            autocompletion=jobs_and_tables,
        ),
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of rows to show.")
    ] = 10,
    last: Annotated[bool, typer.Option("--last", help="Show the latest rows instead of the earliest.")] = False,
    current: Annotated[
        bool, typer.Option("--current", help="Show only the last row of each key. Leave out deleted keys.")
    ] = False,
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
    if current and (held or is_quarantine(name)):
        raise UsageError(
            "current-option-misplaced",
            "--current shows published rows of a job's outputs: omit --held, and name a job or an output table",
        )
    if held and (of is not None or is_quarantine(name)):
        raise UsageError(
            "held-option-misplaced",
            "--held shows rows of a job's outputs: omit --of, and name a job or an output table",
        )
    printer, shown_branch = Printer(as_json=as_json), branch or MAIN
    if held:
        outputs = list(held_rows(project, name, branch=shown_branch, limit=limit, last=last))
    else:
        outputs = list(output_rows(project, name, branch=branch, limit=limit, last=last, of=of, current=current))
    if as_json:
        printer.json({"branch": branch if is_quarantine(name) else shown_branch, "tables": outputs})
        return
    for line in explain_holds([outputs[0]["hold"]]) if held and outputs else ():
        printer.say(line)
    for output in outputs:
        for run in output.get("on_hold", ())[:1]:
            job = command_words(output["job"], shown_branch)
            printer.say(
                f"Run {run} is on hold, so its rows, and those of the runs behind it, are not in {output['table']}: "
                f"`rewindow plan {job}` says why, `rewindow head {job} --held` shows its rows, and "
                f"`rewindow publish {job} --accept --run {run}` publishes them."
            )
        if output.get("replaced"):
            were = "row is" if output["replaced"] == 1 else "rows are"
            printer.say(
                f"{output['replaced']:,} more {were} of landings that `rewindow land --new-generation` has replaced, and not "
                "shown."
            )
        for file in output.get("lost", ()):
            printer.say(f"{counted(file['rows'], 'row')} cannot be shown, because {file['file']} is gone or damaged.")
        if output["count"] is None:
            printer.say(
                f"{output['table']} does not exist yet: no run of {output['job']} has written it on branch {shown_branch}."
            )
            continue
        if not output["count"]:
            run = f"Run {output['hold']['run']} adds no rows to {output['table']}." if held else None
            printer.say(run or f"{output['table']} has no rows{f' of {of}' if of else ''}.")
            continue
        rows, which = counted(output["count"], "row"), "last" if last else "first"
        shown = rows if len(output["rows"]) == output["count"] else f"{which} {len(output['rows'])} of {rows}"
        not_published = ", not published" if held else ""
        printer.table(f"{output['table']}: {shown}{not_published}", with_readable_times(output["rows"], output["keys"]))
