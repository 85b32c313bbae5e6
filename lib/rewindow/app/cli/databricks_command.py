"""The commands that call a Databricks workspace."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rewindow.app.cli.options import Json
from rewindow.app.cli.printing import Printer
from rewindow.app.times import ZONE, parse_time
from rewindow.errors import UsageError

if TYPE_CHECKING:
    from rewindow.databricks.submit import JobRun

databricks_app = typer.Typer(help="Run a job in a Databricks workspace.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(databricks_app, name="databricks")


@databricks_app.command()
def submit(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name or id of the deployed job.")],
    interval_end: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Job parameter interval_end: the time to process up to {ZONE}.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Another job parameter, as NAME=VALUE. Can be repeated."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Follow the run until it ends and exit with its exit code.")] = True,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Seconds to follow the run. Then exit with 75; the run continues."),
    ] = None,
    poll: Annotated[float, typer.Option(metavar="SECONDS", help="Seconds between two polls.")] = 10.0,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new run even if one with the same parameters is active or succeeded.")
    ] = False,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="Profile of ~/.databrickscfg to use.")] = None,
    as_json: Json = False,
) -> int:
    """Start a run of a deployed job, follow it, and exit with the exit code of its task."""
    from rewindow.databricks import submit as databricks

    printer = DatabricksPrinter(as_json=as_json)
    parameters = dict(_pair(text) for text in parameter or ())
    if interval_end is not None:
        parameters["interval_end"] = interval_end
    parse_time(parameters.get("interval_end") or None)  # fail before a cluster starts
    client = databricks.workspace(profile)
    run = databricks.start(client, job, parameters, new=new)
    if wait and run.code is None:
        run = databricks.wait(client, run.run_id, timeout_s=timeout, poll_s=poll, on_state=printer.state_changed)
    printer.submitted(job, run)
    return run.code or 0


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError("databricks-parameter-malformed", "--parameter {given!r}: write it as NAME=VALUE", given=text)
    return name, value


class DatabricksPrinter(Printer):
    """Prints the progress and result of a job run."""

    def state_changed(self, run: JobRun) -> None:
        """Print the new state of a run to stderr."""
        if not self.as_json:
            self.note(f"run {run.run_id}: {run.state} {run.url}")

    def submitted(self, job: str, run: JobRun) -> None:
        """Print how a run ended, or that it is still running."""
        if self.as_json:
            self.json({"job": job, **asdict(run)})
            return
        status = "is still running" if run.code is None else f"ended with exit code {run.code}"
        self.message(f"{job}: run {run.run_id} {status} ({run.state}) {run.message}".rstrip())
