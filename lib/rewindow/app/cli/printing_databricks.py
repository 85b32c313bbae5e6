"""What `rewindow databricks` says, to people or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rewindow.databricks.submit import JobRun


class DatabricksPrinter:
    """Prints how a job run goes."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def seen(self, run: JobRun) -> None:
        """Say that a run is in another state now."""
        if not self._as_json:
            typer.echo(f"run {run.run_id}: {run.state} {run.url}", err=True)

    def submitted(self, job: str, run: JobRun) -> None:
        """Say how a run ended, or that it goes on."""
        if self._as_json:
            typer.echo(json.dumps({"job": job, **asdict(run)}))
            return
        code = "goes on" if run.code is None else f"ended with {run.code}"
        typer.echo(f"{job}: run {run.run_id} {code} ({run.state}) {run.message}".rstrip())
