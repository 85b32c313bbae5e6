"""The commands that create a project, describe its files to editors, and play its transcripts."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rewindow.app.cli.options import Debug, Folder, Json
from rewindow.app.cli.printing import Printer
from rewindow.app.new_project import Example, create_project
from rewindow.config.json_schema import KINDS, schema_of, schema_text
from rewindow.config.load import find_project
from rewindow.errors import check_utf8

FAILED = 1
"""The exit code if a transcript fails. It is the code of all comparisons that find a difference."""


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(init)
    app.command("test")(play)
    app.command()(schema)


def init(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to create the project.")] = ".",
    example: Annotated[Example, typer.Option(help="What the job shows.")] = Example.WINDOWS,
    as_json: Json = False,
) -> None:
    """Create a project that runs: a feed, a job, a test, a target, and sample data with late rows."""
    root, printer = Path(folder).absolute(), Printer(as_json=as_json)
    check_utf8(str(root), "folder")
    made = create_project(root, example)
    if as_json:
        printer.json({"project": str(root), "example": example.value, **asdict(made)})
        return
    for path in made.files:
        printer.say(f"  {path}")
    where = "" if root == Path.cwd() else f" in {root}"
    done = f"Created {len(made.files)} files" if made.files else "All files are there already"
    printer.say(f"{done}{where}. Next:")
    for command, does in (
        ("test", "play the job's test"),
        (f"land {made.feed}", "turn the sample data into a log"),
        (f"run {made.job}", "compute the results"),
        (f"head {made.job}", "show them"),
    ):
        printer.say(f"  rewindow {command:<22} # {does}")


class _Kind(StrEnum):
    """The kinds of YAML files."""

    FEED = "feed"
    JOB = "job"
    TARGET = "target"


def schema(
    kind: Annotated[
        _Kind | None, typer.Argument(metavar="KIND", help="The kind of file. Default: all, by kind.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of the YAML files, with which editors complete, explain and check them."""
    del as_json  # the schema is JSON with and without the option
    if kind is not None:
        typer.echo(schema_text(kind.value), nl=False)
    else:
        typer.echo(json.dumps({name: schema_of(name) for name in KINDS}, indent=2, ensure_ascii=False))


def play(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Files with transcripts. Default: all below tests/."),
    ] = None,
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Play the project's transcripts, each once whole and once restarted between any two steps. Exits with 1 if one fails."""
    from rewindow.app.transcripts import play_all

    del debug  # not needed here, but every command has this option
    root, printer = find_project(Path(folder).absolute()), Printer(as_json=as_json)
    played = list(play_all(root, [path.absolute() for path in files or ()]))
    failed = [case for case in played if case.failure is not None]
    if as_json:
        printer.json({"passed": len(played) - len(failed), "failed": [case.as_json() for case in failed]})
        return FAILED if failed else 0
    shown = set()
    for case in failed:
        if (case.file, case.case) not in shown:
            printer.message(f"FAILED {case.file}: {case.failure}")
        shown.add((case.file, case.case))
    cases = len({(case.file, case.case) for case in played})
    printer.say(f"{cases - len(shown)} of {cases} transcripts passed, whole and cut into runs.")
    return FAILED if failed else 0
