"""The command line: parse, call the project, print. What is decided is decided elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from rewindow.app.cli.branches import register as register_history
from rewindow.app.cli.check import check
from rewindow.app.cli.databricks import register as register_databricks
from rewindow.app.cli.maintenance import register as register_recovery
from rewindow.app.cli.options import Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.cli.progress import take_log_format
from rewindow.app.cli.state import register as register_state
from rewindow.app.cli.times import parse_through, parse_time
from rewindow.app.project import Project
from rewindow.control.run import RunReport
from rewindow.errors import RewindowError, UsageError, failed_io

app = typer.Typer(
    help="Replay event logs in Delta tables, deterministically. With --log-format json (or text) every command writes a "
    "line to stderr for each of its steps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Branch = Annotated[str, typer.Option(help="Replay into tables of its own; `main` has the published ones.")]
Through = Annotated[str | None, typer.Option(help="Stop after this landing (a number), or after this time.")]
Until = Annotated[
    str | None, typer.Option(help="Stop after what had arrived in complete intervals by this time; so does --land.")
]
Final = Annotated[bool, typer.Option(help="Nothing comes after: close every window, then seal the branch.")]


@app.command()
def land(
    feed: str,
    until: Annotated[str | None, typer.Option(help="Only complete intervals up to this time (default: now).")] = None,
    watermark: Annotated[str | None, typer.Option(help="Declare: complete through this time.")] = None,
    new_generation: Annotated[bool, typer.Option(help="Land under a changed definition.")] = False,
    keep: Annotated[int | None, typer.Option(min=1, help="With --new-generation: share the first N landings.")] = None,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Land what is new of a feed's sources."""
    if keep is not None and not new_generation:
        message = "--keep says what a new generation shares: add --new-generation, or leave it out"
        raise UsageError(message)
    opened = Project.open(project, target, debug=debug)
    printer = Printer(as_json=as_json)
    with printer.progress() as on_step:
        report = opened.land(
            feed,
            until_ms=parse_time(until),
            watermark_ms=parse_time(watermark),
            new_generation=new_generation,
            keep=keep,
            on_step=on_step,
        )
    printer.landed(feed, report)


@app.command()
def plan(
    job: str,
    through: Through = None,
    until: Until = None,
    branch: Branch = "main",
    final: Final = False,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what `run` would do and why, and what waits for what. Changes nothing."""
    opened = Project.open(project, target, debug=debug)
    request = parse_through(through, until, branch=branch, final=final)
    Printer(as_json=as_json).planned(opened.plan(job, request))


@app.command()
def run(
    job: str,
    through: Through = None,
    until: Until = None,
    land_first: Annotated[bool, typer.Option("--land", help="Land the feed before.")] = False,
    branch: Branch = "main",
    final: Final = False,
    replan: Annotated[bool, typer.Option(help="Forget the plan of an attempt that died.")] = False,
    drop_buffered: Annotated[bool, typer.Option(help="Let go of what a suppress holds that was taken out.")] = False,
    accept_changes: Annotated[
        bool, typer.Option(help="Go on with other code than the checkpoint's, where its stores allow it.")
    ] = False,
    takeover: Annotated[bool, typer.Option(help="Fence an attempt that still lives.")] = False,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay what is new, in one run."""
    opened = Project.open(project, target, debug=debug)
    printer = Printer(as_json=as_json)
    if land_first:
        feed = opened.job_config(job).feed
        with printer.progress() as on_step:
            report = opened.land(feed, until_ms=parse_time(until), on_step=on_step)
        if not as_json:
            printer.landed(feed, report)
    request = parse_through(
        through,
        until,
        branch=branch,
        final=final,
        replan=replan,
        take_over=takeover,
        drop_buffered=drop_buffered,
        accept_changes=accept_changes,
    )
    with printer.progress() as on_step:
        results = [opened.run(job, request, on_step)]
        if isinstance(results[0], RunReport) and results[0].spec.takes_over is not None:
            # That was the plan of an attempt that died; there may be more to do than it had planned.
            results.append(opened.run(job, request, on_step))
    printer.ran(results, on_step, opened.published(job, branch) if as_json else ())


@app.command()
def show(
    job: str,
    branch: Annotated[str, typer.Option(help="The branch to show.")] = "main",
    hashes: Annotated[bool, typer.Option(help="Compute each table's content hash.")] = False,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a job's runs, its tables and what its tasks counted."""
    opened = Project.open(project, target, debug=debug)
    Printer(as_json=as_json).shown(opened.show(job, branch=branch, hashes=hashes))


@app.command()
def explain(
    job: str,
    spark: Annotated[bool, typer.Option("--spark", help="Show Spark's plan of each part too.")] = False,
    target: Target = "local",
    project: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a job's topology, and for each part where its records come from and how it runs."""
    opened = Project.open(project, target, debug=debug)
    Printer(as_json=as_json).explained(opened.explain(job, spark=spark))


@app.command()
def setup() -> None:
    """Fetch the two Delta jars into the cache, once, and prepare a quick start of Spark."""
    from rewindow.engine.spark.setup import set_up

    set_up(typer.echo)


app.command()(check)
register_history(app)
register_recovery(app)
register_databricks(app)
register_state(app)


def main() -> None:
    """Run the command line and leave with one of the documented exit codes."""
    leave(run_command(sys.argv[1:]))


def leave(code: int) -> None:
    """End the process with this exit code. Native code of the Delta libraries now and then aborts an orderly exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_command(arguments: list[str]) -> int:
    """Run one command line; return its exit code. Errors are printed, never raised."""
    as_json, debug = "--json" in arguments, "--debug" in arguments
    try:
        arguments = take_log_format(arguments)
        _check(arguments)
        result = app(arguments, standalone_mode=False)
    except RewindowError as error:
        return _fail(str(error), error.exit_code, as_json=as_json, error=error if debug else None)
    except TyperException as error:
        return _fail(_usage(error), 2, as_json=as_json)
    except (KeyboardInterrupt, Abort):
        return _fail("interrupted; run again, nothing is lost", 130, as_json=as_json)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        message = f"{error.strerror or error}{where}. Check the warehouse in conf/targets, its access and its space"
        code = failed_io(error, message).exit_code
        return _fail(message, code, as_json=as_json, error=error if debug else None)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - no user shall meet a stack trace
        first = (str(error).strip().splitlines() or [""])[0]
        message = f"{type(error).__name__}: {first}. This is a fault of rewindow: run with --debug and report it"
        return _fail(message, 70, as_json=as_json, error=error if debug else None)
    return result if isinstance(result, int) else 0


def _check(arguments: list[str]) -> None:
    for argument in arguments:
        if "{{" in argument:
            message = f"the argument {argument!r} still has a template in it: the scheduler did not fill it in"
            raise UsageError(message)


def _usage(error: TyperException) -> str:
    said = getattr(error, "format_message", None)
    return f"{(said() if callable(said) else str(error)) or 'no command was named'} (see --help)"


def _fail(message: str, code: int, *, as_json: bool, error: BaseException | None = None) -> int:
    Printer(as_json=as_json).failed(message, code, error)
    return code
