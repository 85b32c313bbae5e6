"""The commands of a replay: land, plan, run, show, explain, and what prepares Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewindow.app.cli.options import AcceptChanges, Branch, Debug, Feed, Folder, Job, Json, Takeover, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.cli.publish import end_on_hold
from rewindow.app.describe import describe_published, explain_job, show_job
from rewindow.app.open_project import OpenProject
from rewindow.app.publishing import on_hold
from rewindow.app.run_to_the_end import run_to_the_end
from rewindow.app.times import ZONE, parse_through, parse_time
from rewindow.app.written_file import check_is_file, write_text
from rewindow.errors import UsageError

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


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (land, plan, run, show, explain, setup):
        app.command()(command)


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
    project = OpenProject.open(folder, target, debug=debug)
    request = parse_through(through, until, branch=branch, final=final)
    Printer(as_json=as_json).planned(project.plan(job, request))


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
    project = OpenProject.open(folder, target, debug=debug)
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
    published = describe_published(project.tables, job, branch) if as_json else ()
    printer.ran(results, on_step, published, landed, holds)
    end_on_hold(holds)


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
    project = OpenProject.open(folder, target, debug=debug)
    Printer(as_json=as_json).shown(show_job(project, job, branch=branch, hashes=hashes))


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
    project = OpenProject.open(folder, target, debug=debug)
    explained = explain_job(project, job, spark=spark)
    printer = Printer(as_json=as_json)
    if svg is not None:
        from rewindow.report.topology_svg import topology_svg

        write_text(svg, topology_svg(f"Topology of {job}", explained["sub_topologies"]))
        explained["svg"] = str(svg)
    printer.explained(explained)


def setup() -> None:
    """Download the two Delta jars into the cache and prepare Spark for a fast start."""
    from rewindow.engine.spark.setup import set_up

    set_up(typer.echo)
