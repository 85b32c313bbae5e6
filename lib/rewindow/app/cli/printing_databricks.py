"""Output of `rewindow databricks`, for people or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rewindow.databricks.submit import JobRun


class DatabricksPrinter:
    """Prints the progress and result of a job run."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def state_changed(self, run: JobRun) -> None:
        """Print the new state of a run to stderr."""
        if not self._as_json:
            typer.echo(f"run {run.run_id}: {run.state} {run.url}", err=True)

    def submitted(self, job: str, run: JobRun) -> None:
        """Print how a run ended, or that it is still running."""
        if self._as_json:
            typer.echo(json.dumps({"job": job, **asdict(run)}))
            return
        status = "is still running" if run.code is None else f"ended with exit code {run.code}"
        typer.echo(f"{job}: run {run.run_id} {status} ({run.state}) {run.message}".rstrip())
