"""The command that describes a project's YAML files to editors."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from rewindow.app.cli.options import Json
from rewindow.config.json_schema import KINDS, schema_of, schema_text


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(schema)


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
    """Print the JSON Schema of the YAML files. With it, editors complete, explain and check these files."""
    del as_json  # the schema is JSON with and without the option
    if kind is not None:
        typer.echo(schema_text(kind.value), nl=False)
    else:
        typer.echo(json.dumps({name: schema_of(name) for name in KINDS}, indent=2, ensure_ascii=False))
