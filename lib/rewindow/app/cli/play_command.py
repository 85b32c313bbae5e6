"""The command `rewindow test`, which plays a project's transcripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewindow.app.cli.options import Debug, Folder, Json
from rewindow.app.cli.printing import Printer
from rewindow.config.load import find_project

FAILED = 1
"""The exit code if a transcript fails. Every comparison that finds a difference exits with this code."""


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("test")(play)


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
