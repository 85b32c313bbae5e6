"""The option ``--version``."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

import typer

from rewindow.app.own_code import RUNNING, running_version

_WITH = ("pyspark", "delta-spark", "deltalake", "pyarrow")


def print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    """Print the versions of rewindow and what it works with, and where it is installed; then exit."""
    if not wanted:
        return
    typer.echo(f"rewindow {running_version()} ({Path(RUNNING).parent})")
    versions = [f"{name} {found}" for name in _WITH if (found := _version(name))]
    typer.echo(", ".join([f"Python {platform.python_version()}", *versions]))
    raise typer.Exit


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
