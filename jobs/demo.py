"""`make demo`: replay a year of flights month by month in this process and at once on Spark, and compare every table.

It ends with a bug, its fix on a branch, and the promotion. It works in a copy of the project, `build/demo`, which each call
makes anew. What it prints depends on the data and the locked versions, so docs/demo.md can hold it: it is written there.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import track
from rich.table import Table

from jobs import demo_fix
from jobs.flights_source import write_sources
from rewindow.app.api.calls import own_code
from rewindow.app.cli.entry import leave
from rewindow.app.describe_job import show_job
from rewindow.app.open_project import OpenProject
from rewindow.app.watch import Watch
from rewindow.contracts.instants import instant
from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.spec import RunRequest
from rewindow.errors import RewindowError
from rewindow.tables.delta.table_rows import read_rows

FEED = "flights"
JOBS = ("hourly_departures", "quiet_carriers", "departure_board", "flight_weather")
YEAR = "year"
"""The branch of the run that takes the whole year at once."""
SHOWN = 12
"""How many digits of a content hash are shown."""
BEGIN, END = "<!-- demo:begin (written by `make demo`) -->\n", "<!-- demo:end -->\n"
ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build/demo"


class Tasks(Watch):
    """Counts the tasks of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def task(self, report: TaskReport) -> None:
        """Count a task that has finished."""
        super().task(report)
        self.count += 1


def main() -> int:
    """Run the demo; 1 if two tables that must be equal are not, or if `rewindow status` finds something wrong afterwards."""
    text = io.StringIO()
    out = Console(file=text, width=118, highlight=False)
    _make_project()
    # The commands in the project's folder import its own modules, so the runs have to be made by these, too.
    with own_code(FOLDER):
        are_equal = _show(out)
    sys.stdout.write(text.getvalue())
    _write_page(text.getvalue())
    return int(not are_equal) or demo_fix.status_of(FOLDER)


def _show(out: Console) -> bool:
    """Do and print what the demo shows; return whether all tables are equal that must be."""
    project = OpenProject.open(FOLDER)
    rows = write_sources(Path(project.warehouse) / "raw")
    sys.stderr.write(f"Landing {rows['departures']:,} flights and {rows['weather']:,} weather reports ...\n")
    project.land(FEED)
    feed = project.tables.feed(FEED)
    landed = sum((landing.counts or {}).get("rows", 0) for landing in feed.landings)
    out.print(f"Feed {FEED}: {landed:,} records in {len(feed.landings)} landings, one for each month of arrival.")
    _print_partitions(out, feed.landings[-1].ranges)
    _replay(out, project, len(feed.landings))
    _print_finals(out, project)
    _print_counts(out, project)
    are_equal = _print_comparison(out, project)
    are_equal = _print_fix(out, project) and are_equal
    folder, report = FOLDER.relative_to(ROOT), f"report-{demo_fix.JOB}.html"
    out.print(f"\nOpen {folder}/{report} in a browser: it says what the promotion replaced.", soft_wrap=True)
    out.print(f"The project is in {folder}, its Delta tables are below {folder}/warehouse/flights. Try")
    out.print(f"  cd {folder}\n  ../../.venv/bin/rewindow ls\n  ../../.venv/bin/rewindow explain quiet_carriers")
    return are_equal


def _make_project() -> None:
    """Copy the project's jobs and configuration, so that the demo changes no file of the checkout."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in ("conf", "jobs"):
        shutil.copytree(ROOT / name, FOLDER / name, ignore=shutil.ignore_patterns("__pycache__"))


def _replay(out: Console, project: OpenProject, last: int) -> None:
    """Replay each landing by itself in this process, then all of them in one run on Spark; print where and in how many tasks."""
    monthly, yearly = Tasks(), Tasks()
    runs = [(job, RunRequest(through_landing=number)) for number in range(1, last + 1) for job in JOBS]
    terminal = Console(stderr=True)
    for job, request in track(runs, "Replaying month by month in this process", console=terminal):
        project.run(job, request, monthly)
    before = SparkSession.getActiveSession()
    on_spark = OpenProject.open(FOLDER, "spark")
    for job in track(JOBS, "Replaying the year at once on Spark", console=terminal):
        on_spark.run(job, RunRequest(through_landing=last, branch=YEAR), yearly)
    table = _table("Where the runs were executed")
    for name in ("runs of each job", "target", "where", "tasks"):
        table.add_column(name, justify="right" if name == "tasks" else "left")
    table.add_row(f"{last}, one for each month", project.target.target, _where(before), str(monthly.count))
    table.add_row("1, the whole year", on_spark.target.target, _where(on_spark.spark), str(yearly.count))
    out.print(table)


def _where(session: SparkSession | None) -> str:
    """Return where runs were executed, by the Spark session that was active after them."""
    if session is None:
        return "this process"
    tracker = session.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(None)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    done = sum(stage.numCompletedTasks for stage in stages if stage)
    return f"local Spark {session.version}, in {done} Spark tasks"


def _print_partitions(out: Console, ranges: Mapping[Any, Any]) -> None:
    counts = {f"{where.topic}-{where.partition}": landed.end for where, landed in sorted(ranges.items())}
    filled = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
    out.print(f"Three airports fill some of the 4 partitions ({filled}); the empty ones delay nothing.")


def _print_finals(out: Console, project: OpenProject) -> None:
    rows = read_rows(f"{project.warehouse}/flights/hourly_departures")
    busiest = rows.sort_by([("departures", "descending"), ("window_start", "ascending"), ("origin", "ascending")])
    table = _table("The busiest hours (hourly_departures: one final row per airport and hour)")
    for name in ("origin", "hour (UTC)", "departures", "mean delay (min)"):
        table.add_column(name, justify="left" if name in ("origin", "hour (UTC)") else "right")
    for row in busiest.slice(0, 5).to_pylist():
        delay = f"{row['mean_delay']:.2f}"
        table.add_row(row["origin"], instant(row["window_start"]), str(row["departures"]), delay)
    out.print(table)
    board = read_rows(f"{project.warehouse}/flights/departure_board")
    asked = {str(item["values"]): item["counts"] for item in pc.value_counts(board["asked_by"]).to_pylist()}
    reports = ", ".join(f"{count:,} by {who}" for who, count in sorted(asked.items()))
    out.print(f"\ndeparture_board: {len(board):,} reports were requested: {reports}.")


def _print_counts(out: Console, project: OpenProject) -> None:
    table = _table("What the thirteen runs counted")
    for name in ("job", "records", "rows", "late, by reason", "punctuations"):
        table.add_column(name, justify="left" if name in ("job", "late, by reason") else "right")
    for job in JOBS:
        shown = show_job(project, job)
        late = _totals(shown["metrics"], "late-record-drop")
        fired = _totals(shown["metrics"], "punctuate")
        table.add_row(
            job,
            f"{sum(run['records'] for run in shown['runs']):,}",
            f"{sum(run['rows'] for run in shown['runs']):,}",
            ", ".join(f"{reason}: {total:,}" for reason, total in late.items()) or "-",
            ", ".join(f"{reason}: {total:,}" for reason, total in fired.items()) or "-",
        )
    out.print(table)


def _print_comparison(out: Console, project: OpenProject) -> bool:
    table = _table("Thirteen runs in this process and one run on Spark: the content hash of every table")
    for name in ("job", "table", "13 runs", "1 run", ""):
        table.add_column(name)
    are_equal = True
    for job in JOBS:
        monthly, yearly = project.tables.hashes(job, "main"), project.tables.hashes(job, YEAR)
        for target in sorted({*monthly, *yearly}):
            is_equal = monthly.get(target) == yearly.get(target)
            are_equal = are_equal and is_equal
            hashes = (str(hashes.get(target))[:SHOWN] for hashes in (monthly, yearly))
            table.add_row(job, target, *hashes, "equal" if is_equal else "DIFFERENT")
    out.print(table)
    return are_equal


def _print_fix(out: Console, project: OpenProject) -> bool:
    sys.stderr.write("Planting a bug, and fixing it on a branch ...\n")
    demo_fix.plant_bug(FOLDER)
    published = demo_fix.show_fix(FOLDER, lambda line: out.print(line, markup=False, soft_wrap=True))
    is_equal = str(project.tables.hashes(demo_fix.MODEL, "main")["output/hourly-departures"]).startswith(published)
    verdict = f"that of {demo_fix.MODEL}" if is_equal else f"DIFFERENT from that of {demo_fix.MODEL}"
    out.print(f"\nThe content hash of the published table is now {published[:SHOWN]}, {verdict}.")
    return is_equal


def _totals(metrics: Iterable[Mapping[str, Any]], name: str) -> dict[str, int]:
    totals: dict[str, int] = {}
    for measure in metrics:
        if measure["metric"] == name:
            totals[measure["reason"]] = totals.get(measure["reason"], 0) + measure["total"]
    return totals


def _table(title: str) -> Table:
    return Table(title=f"\n{title}", title_justify="left", title_style="", show_edge=False, pad_edge=False)


def _write_page(text: str) -> None:
    page = ROOT / "docs/demo.md"
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        page.write_text(f"{before}{begin}```text\n{lines.strip()}\n```\n{end}{after}")


if __name__ == "__main__":
    try:
        code = main()
    except RewindowError as error:
        sys.stderr.write(f"\nrewindow: {error}\n")
        code = error.exit_code
    except subprocess.CalledProcessError as error:  # the command has said why
        code = error.returncode
    leave(code)
