"""`make demo`: land a year of flights, replay it in thirteen runs and in one, and show that every table is equal.

What it prints depends on the data alone, so docs/demo.md can hold it: the command writes it there.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from rich.console import Console
from rich.progress import track
from rich.table import Table

from jobs.flights_source import write_sources
from rewindow.app.cli.entry import leave
from rewindow.app.project import Project
from rewindow.contracts.instants import instant
from rewindow.control.plan.spec import RunRequest
from rewindow.errors import RewindowError
from rewindow.tables.delta.content_hash import read_rows

FEED = "flights"
JOBS = ("hourly_departures", "quiet_carriers", "departure_board", "flight_weather")
ONE_RUN = "one_run"
BEGIN, END = "<!-- demo:begin (written by `make demo`) -->\n", "<!-- demo:end -->\n"
ROOT = Path(__file__).parent.parent


def main() -> int:
    """Run the demo; 1 if two tables that must be equal are not."""
    said = io.StringIO()
    printed = Console(file=said, width=118, highlight=False)
    project = Project.open(ROOT)
    rows = write_sources(Path(project.warehouse) / "raw")
    sys.stderr.write(f"Landing {rows['departures']:,} flights and {rows['weather']:,} weather reports ...\n")
    project.land(FEED)
    feed = project.tables.feed(FEED)
    landed = sum((landing.counts or {}).get("rows", 0) for landing in feed.landings)
    printed.print(f"Feed {FEED}: {landed:,} records in {len(feed.landings)} landings, one for each month of arrival.")
    _print_partitions(printed, feed.landings[-1].ranges)
    last = len(feed.landings)
    requests = [RunRequest(through_landing=number) for number in range(1, last + 1)]
    requests.append(RunRequest(through_landing=last, branch=ONE_RUN))
    runs = [(job, request) for request in requests for job in JOBS]
    for job, request in track(runs, "Replaying month by month, then the year at once", console=Console(stderr=True)):
        project.run(job, request)
    _print_finals(printed, project)
    _print_counts(printed, project)
    are_equal = _print_comparison(printed, project)
    printed.print(f"\nThe tables are Delta tables below {os.path.relpath(project.warehouse, ROOT)}/flights/; try")
    printed.print("  .venv/bin/rewindow show hourly_departures --hashes\n  .venv/bin/rewindow explain quiet_carriers")
    sys.stdout.write(said.getvalue())
    _write_page(said.getvalue())
    return 0 if are_equal else 1


def _print_partitions(out: Console, ranges: Mapping[Any, Any]) -> None:
    counts = {f"{where.topic}-{where.partition}": landed.end for where, landed in sorted(ranges.items())}
    filled = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
    out.print(f"Three airports fill some of the 4 partitions ({filled}); the empty ones delay nothing.")


def _print_finals(out: Console, project: Project) -> None:
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


def _print_counts(out: Console, project: Project) -> None:
    table = _table("What the thirteen runs counted")
    for name in ("job", "records", "rows", "late, by reason", "punctuations"):
        table.add_column(name, justify="left" if name in ("job", "late, by reason") else "right")
    for job in JOBS:
        shown = project.show(job, branch="main")
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


def _print_comparison(out: Console, project: Project) -> bool:
    table = _table("Thirteen runs and one run: the content hash of every table")
    for name in ("job", "table", "13 runs", "1 run", ""):
        table.add_column(name)
    are_equal = True
    for job in JOBS:
        many, one = project.tables.hashes(job, "main"), project.tables.hashes(job, ONE_RUN)
        for target in sorted({*many, *one}):
            is_equal = many.get(target) == one.get(target)
            are_equal = are_equal and is_equal
            hashes = (str(hashes.get(target))[:12] for hashes in (many, one))
            table.add_row(job, target, *hashes, "equal" if is_equal else "DIFFERENT")
    out.print(table)
    return are_equal


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
    leave(code)
