"""The commands: parse the arguments, call the project, print the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort

from rewindow.app.cli.branches import register as register_branches
from rewindow.app.cli.check import check
from rewindow.app.cli.databricks import register as register_databricks
from rewindow.app.cli.head import register as register_head
from rewindow.app.cli.listing import register as register_listing
from rewindow.app.cli.maintenance import register as register_maintenance
from rewindow.app.cli.new import register as register_new
from rewindow.app.cli.options import AcceptChanges, Branch, Debug, Feed, Folder, Job, Json, Takeover, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.cli.publish import end_on_hold
from rewindow.app.cli.publish import register as register_publish
from rewindow.app.cli.report import register as register_report
from rewindow.app.cli.state import register as register_state
from rewindow.app.cli.status import register as register_status
from rewindow.app.cli.upgrade import register as register_upgrade
from rewindow.app.cli.version import print_version
from rewindow.app.cli.why import register as register_why
from rewindow.app.project import Project
from rewindow.app.publishing import on_hold
from rewindow.app.run_to_the_end import run_to_the_end
from rewindow.app.times import ZONE, parse_through, parse_time
from rewindow.app.written_file import check_is_file, write_text
from rewindow.errors import UsageError


class _Group(TyperGroup):
    """The commands. Typer would turn Ctrl-C into an exit code without a word; `entry` says what was kept."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Raises `Abort` for Ctrl-C."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Abort from error


app = typer.Typer(
    cls=_Group,
    help="Replay event logs from Delta tables, deterministically.\n\n"
    "Every command also takes --log-format json|text, which logs each of its steps to stderr.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Show the versions and exit.")
    ] = False,
) -> None:
    """Handle the options of `rewindow` itself."""
    del version


Through = Annotated[
    str | None,
    typer.Option(
        metavar="LANDING|TIME",
        help=f"Stop after this landing (a number), or at this event time {ZONE}. Default: take all.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help=f"Take only complete intervals of arrival up to this time {ZONE}. Also applies to --land."
    ),
]
Final = Annotated[bool, typer.Option(help="Close every open window, then seal the branch: no run can follow.")]


@app.command()
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
        message = "--keep works only with --new-generation: add --new-generation, or remove --keep"
        raise UsageError(message)
    project = Project.open(folder, target, debug=debug)
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


@app.command()
def plan(
    job: Job,
    through: Through = None,
    until: Until = None,
    branch: Branch = "main",
    final: Final = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what `run` would do and why, and what is blocked on what. Changes nothing.

    Exits as `run` if that would refuse, but with 0 for a run on hold (79), which it names.
    """
    project = Project.open(folder, target, debug=debug)
    request = parse_through(through, until, branch=branch, final=final)
    Printer(as_json=as_json).planned(project.plan(job, request))


@app.command()
def run(
    job: Job,
    through: Through = None,
    until: Until = None,
    land_first: Annotated[bool, typer.Option("--land", help="Land the job's feed first.")] = False,
    branch: Branch = "main",
    final: Final = False,
    replan: Annotated[
        bool, typer.Option(help="Discard the plan of an attempt that did not finish and plan a new run.")
    ] = False,
    drop_buffered: Annotated[bool, typer.Option(help="Discard records buffered by a removed suppress().")] = False,
    accept_changes: AcceptChanges = False,
    takeover: Takeover = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay the new landings in one run. Exits with 79 if it is on hold, or an earlier run of the branch."""
    project = Project.open(folder, target, debug=debug)
    printer = Printer(as_json=as_json)
    landed = None
    if land_first:
        feed = project.job_config(job).feed
        with printer.progress() as on_step:
            landed = project.land(feed, until_ms=parse_time(until), on_step=on_step)
        if not as_json:
            printer.landed(feed, landed)
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
        results = run_to_the_end(project, job, request, on_step)
    holds = on_hold(project, job, branch)
    printer.ran(results, on_step, project.published(job, branch) if as_json else (), landed, holds)
    end_on_hold(holds)


@app.command()
def show(
    job: Job,
    branch: Branch = "main",
    hashes: Annotated[bool, typer.Option(help="Compute the content hash of each output table.")] = False,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a job's runs, tables and metrics."""
    project = Project.open(folder, target, debug=debug)
    Printer(as_json=as_json).shown(project.show(job, branch=branch, hashes=hashes))


@app.command()
def explain(
    job: Job,
    spark: Annotated[bool, typer.Option("--spark", help="Also show Spark's plan of each sub-topology.")] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Also draw the topology, as an SVG file.")
    ] = None,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a job's topology: each sub-topology with its sources, nodes, stores and execution mode."""
    if svg is not None:
        check_is_file(svg, f"{job}.svg")
    project = Project.open(folder, target, debug=debug)
    explained = project.explain(job, spark=spark)
    printer = Printer(as_json=as_json)
    if svg is not None:
        from rewindow.report.topology_svg import topology_svg

        write_text(svg, topology_svg(f"Topology of {job}", explained["sub_topologies"]))
        explained["svg"] = str(svg)
    printer.explained(explained)


@app.command()
def setup() -> None:
    """Download the two Delta jars into the cache and prepare Spark for a fast start."""
    from rewindow.engine.spark.setup import set_up

    set_up(typer.echo)


app.command()(check)
register_new(app)
register_listing(app)
register_status(app)
register_branches(app)
register_maintenance(app)
register_publish(app)
register_upgrade(app)
register_databricks(app)
register_head(app)
register_why(app)
register_state(app)
register_report(app)
