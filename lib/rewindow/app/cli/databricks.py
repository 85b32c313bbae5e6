"""The commands that speak to a Databricks workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from rewindow.app.cli.options import Json
from rewindow.app.cli.times import parse_time
from rewindow.errors import UsageError

databricks_app = typer.Typer(help="Run a job in a Databricks workspace.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(databricks_app, name="databricks")


@databricks_app.command()
def submit(
    job: str,
    interval_end: Annotated[str | None, typer.Option(help="The job parameter interval_end: process up to it.")] = None,
    parameter: Annotated[list[str] | None, typer.Option(help="Another job parameter, NAME=VALUE.")] = None,
    wait: Annotated[bool, typer.Option(help="Follow the run to its end, and end with its code.")] = True,
    timeout: Annotated[float | None, typer.Option(help="Seconds to follow it; then 75, and the run goes on.")] = None,
    poll: Annotated[float, typer.Option(help="Seconds between two looks.")] = 10.0,
    new: Annotated[bool, typer.Option("--new", help="Start another run, also if one did or does the same.")] = False,
    profile: Annotated[str | None, typer.Option(help="A profile of ~/.databrickscfg.")] = None,
    as_json: Json = False,
) -> int:
    """Start a run of a deployed job, by name or id, and end with the exit code of what it did there."""
    from rewindow.app.cli.printing_databricks import DatabricksPrinter
    from rewindow.databricks import submit as databricks

    printer = DatabricksPrinter(as_json=as_json)
    parameters = dict(_pair(text) for text in parameter or ())
    if interval_end is not None:
        parameters["interval_end"] = interval_end
    parse_time(parameters.get("interval_end") or None)  # before a cluster is started that says no
    client = databricks.workspace(profile)
    run = databricks.start(client, job, parameters, new=new)
    if wait and run.code is None:
        run = databricks.wait(client, run.run_id, timeout_s=timeout, poll_s=poll, on_state=printer.seen)
    printer.submitted(job, run)
    return run.code or 0


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"--parameter {text!r}: write NAME=VALUE")
    return name, value
