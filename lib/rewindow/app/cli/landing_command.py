"""The command that lands a feed."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.app.cli.options import Debug, Feed, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.open_project import OpenProject
from rewindow.app.times import ZONE, parse_time
from rewindow.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(land)


def land(
    feed: Feed,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help=f"Land only complete intervals of arrival up to this time {ZONE}. Default: now."
        ),
    ] = None,
    watermark: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Declare the log complete through this event time {ZONE}.")
    ] = None,
    new_generation: Annotated[
        bool, typer.Option(help="Start a new generation: land again under the feed's current definition.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="With --new-generation, keep the first N landings of the old generation."
        ),
    ] = None,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Land the new rows of a feed's sources."""
    if keep is not None and not new_generation:
        raise UsageError(
            "keep-without-new-generation",
            "--keep works only with --new-generation: add --new-generation, or remove --keep",
        )
    project = OpenProject.open(folder, target, debug=debug)
    printer = Printer(as_json=as_json)
    with printer.progress() as on_step:
        report = project.land(
            feed,
            until_ms=parse_time(until),
            watermark_ms=parse_time(watermark),
            new_generation=new_generation,
            keep=keep,
            on_step=on_step,
        )
    printer.landed(feed, report)
