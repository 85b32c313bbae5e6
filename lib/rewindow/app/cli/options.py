"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.app.cli.completing import branches, names
from rewindow.errors import ConfigError, UsageError
from rewindow.tables.shared.paths import safe_name


def checked_branch(name: str | None) -> str | None:
    """Return the name of a branch unchanged; None if none is given.

    Raises `UsageError` (2) if it is not safe in paths and SQL.
    """
    try:
        return name if name is None else safe_name(name, "branch")
    except ConfigError as error:
        raise UsageError.restored(error.code, f"--branch: {error.message}", error.facts) from error


Job = Annotated[
    str, typer.Argument(metavar="JOB", help="Name of the job (conf/jobs/JOB.yaml).", autocompletion=names("jobs"))
]
Feed = Annotated[
    str, typer.Argument(metavar="FEED", help="Name of the feed (conf/feeds/FEED.yaml).", autocompletion=names("feeds"))
]

Target = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Target to run against (conf/targets/NAME.yaml).", autocompletion=names("targets")
    ),
]
Folder = Annotated[str, typer.Option("--project", metavar="FOLDER", help="Project folder, or a folder below it.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Branch = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Branch to work on. `main` writes the published tables.",
        autocompletion=branches,
        callback=checked_branch,
    ),
]
AnyBranch = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Branch to look at. Default: main; of rewindow.quarantine, all branches.",
        autocompletion=branches,
        callback=checked_branch,
    ),
]
AcceptChanges = Annotated[
    bool,
    typer.Option(
        help="Resume from a checkpoint of different code, if its stores are still compatible. Takes effect in a run that takes a "
        "landing."
    ),
]
Takeover = Annotated[bool, typer.Option(help="Fence an attempt that is still running, and take over its run.")]
Debug = Annotated[bool, typer.Option(help="Show stack traces and the JVM's log.")]
