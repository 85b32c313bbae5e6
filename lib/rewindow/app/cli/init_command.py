"""The command that creates a project."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rewindow.app.cli.options import Json
from rewindow.app.cli.printing import Printer
from rewindow.app.new_project import Example, create_project
from rewindow.errors import check_utf8


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(init)


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
    if where:
        printer.say(f"  cd {shlex.quote(folder)}")
    for command, does in (
        ("test", "play the job's test"),
        (f"land {made.feed}", "turn the sample data into a log"),
        (f"run {made.job}", "compute the results"),
        (f"head {made.job}", "show them"),
    ):
        printer.say(f"  rewindow {command:<22} # {does}")
