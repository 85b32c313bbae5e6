"""The command that shows a job's topology, and the one that prepares Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rewindow.app.cli.options import Debug, Folder, Job, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.describe_topology import explain_job
from rewindow.app.open_project import OpenProject
from rewindow.app.result_lines import readable
from rewindow.app.written_file import check_is_file, write_text


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (explain, setup):
        app.command()(command)


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
    _print(printer, explained)


def setup() -> None:
    """Download the two Delta jars into the cache and prepare Spark for a fast start."""
    from rewindow.engine.spark.class_archive import set_up

    set_up(Printer().say)


def _print(printer: Printer, explained: Mapping[str, Any]) -> None:
    """Print a job's topology."""
    if printer.as_json:
        printer.json(explained)
        return
    for part in explained["sub_topologies"]:
        printer.say(f"Sub-topology {part['sub_topology']}: {part['execution']}")
        for source in part["sources"]:
            printer.say(f"  reads {source['topic']}: {source['how']}")
        printer.table("", [readable(node) for node in part["nodes"]])
        for store in part["stores"]:
            printer.say(f"  store {store['name']} ({store['kind']}): {store['columns']}")
        if "spark_plan" in part:
            printer.say(part["spark_plan"])
    if most := explained["inline"]:
        printer.say(
            f"A sub-topology with at most {most:,} records to read and restore runs in this process, without Spark "
            "(ten times as many with vectorized execution)"
        )
    if not explained["landed"]:
        printer.say(
            f"Feed {explained['feed']} was never landed: types are those of its sources now, and json what only the "
            f"landing decides. Land it with `rewindow land {explained['feed']}`"
        )
    for output in explained["outputs"]:
        printer.say(f"Output {output['topic']} -> {output['table']}: {output['columns']}")
    for hint in explained["undeclared"]:
        printer.say(f"{hint}.")
    if "svg" in explained:
        printer.say(f"Drawing: {explained['svg']}")
