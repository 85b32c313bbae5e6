"""The results page, in sections that `python -m tests.year` writes: the year, the governed part, the odd sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.bench.results import machine
from tests.bench.sections import write_section
from tests.year import series
from tests.year.charts import chart
from tests.year.disturbed import RELEASED
from tests.year.events import Year
from tests.year.fit import fit
from tests.year.judge import YEAR_RUNS, Judged
from tests.year.simulation import Line

PAGE = Path(__file__).with_name("RESULTS.md")
PLOTS = "plots"
COMMAND = "python -m tests.year"
YEAR = """\
### The year: {hours:,} hours

{date}, {machine}, {versions}. {played}
CPU-seconds are what counts: this machine did other work too. A day has {day} hours, and `gc` keeps what the runs of the last 30
days need. Each hour is a landing and a run of 50 records, 8 partitions, two outputs, three stores, {runs:,} runs in all. {events}
{law}

Before (one process per run of 50 records, 8 partitions): 2.0 s at run 10, 2.6 s at run 240, 2.3 ms more for every earlier run,
which is 20 s more at the end of a year; 265 runs left 11,779 files and 91 MB. Now 265 runs left {files_265}.

A line is fitted to each series by least squares; the slope is for 1,000 runs, with its 95 % interval. {steady}*Fails* means that
even the smallest growth in that interval, over 8,760 runs, is above the bound.

| | first | slope per 1,000 runs | at run 8,760 | may grow in a year | |
| --- | --- | --- | --- | --- | --- |
{rows}

{pictures}
"""
HALFWAY = """\
### An upgrade halfway: {hours:,} hours

{date}, {machine}, {versions}.
The first {upgraded:,} landings and runs were made by the code of {released}, each by a process. Then `rewindow upgrade`,
`status` and `plan` were called as the guide says, and this version made the others, {runs:,} runs in all. {events}
{law}
"""
GOVERNED = """\
### Governed tables, scaled down: {runs} landings and runs

{date}, {machine}, {versions}. 50 records per landing, over Spark Connect, each command in a newly opened project. Spark jobs are
what counts: this machine did other work too, whose load the seconds show. A slope whose interval has 0 in it is no growth that
was measured.

| | first | slope per run | at run 8,760, extrapolated |
| --- | --- | --- | --- |
{rows}
"""
SIZE = """\
### Odd sizes: {size:,} {what}

{date}, {machine}. {verdict}

| command | seconds | peak MB | exit code | said |
| --- | --- | --- | --- | --- |
{rows}
"""


def write_year(year: Year, lines: Sequence[Line], law: Mapping[str, Any] | None, judged: Sequence[Judged]) -> None:
    """Write the section of the year and its charts."""
    names = []
    for title, some in groupby(judged, key=lambda one: one.series.chart):
        name = f"{title.replace(' ', '-')}.svg".lower()
        (PAGE.parent / PLOTS).mkdir(exist_ok=True)
        (PAGE.parent / PLOTS / name).write_text(chart(title, list(some)), encoding="utf-8")
        names.append(f"![{title}]({PLOTS}/{name})")
    is_steady = sum("stored" in line for line in lines) > series.STEADY_DAYS + 3
    text = YEAR.format(
        **machine(),
        hours=len(lines),
        day=year.day,
        played=_played(year, lines),
        runs=lines[-1]["runs"],
        events=_events(lines),
        law=_law(law),
        files_265=_files_at(lines, 265),
        steady=f"Of files, bytes and memory it begins on day {series.STEADY_DAYS}. " if is_steady else "",
        rows="\n".join(_row(one) for one in judged),
        pictures="\n\n".join(names),
    )
    write_section(PAGE, "year", COMMAND, text)


def write_halfway(year: Year, lines: Sequence[Line], law: Mapping[str, Any] | None) -> None:
    """Write the section of a year whose upgrade is in its middle."""
    text = HALFWAY.format(
        **machine(),
        hours=len(lines),
        upgraded=sum(bool(line.get("old")) for line in lines),
        released=RELEASED,
        runs=lines[-1]["runs"],
        events=_events(lines),
        law=_law(law),
    )
    write_section(PAGE, "halfway", COMMAND, text)


def write_governed(lines: Sequence[Mapping[str, Any]]) -> None:
    """Write the section of governed tables. The first run is left out: it makes tables."""
    rows = []
    for name in ("land", "plan", "run", "show"):
        for what, title in (("jobs", "Spark jobs"), ("cpu", "CPU-seconds of the command"), ("seconds", "seconds")):
            line = fit([(one["runs"], one[name][what]) for one in lines[1:]])
            far = f"{max(0, line.at(YEAR_RUNS)):,.0f} ± {line.error * YEAR_RUNS:,.0f}"
            rows.append(f"| `{name}`, {title} | {line.level:.2f} | {line.slope:.4f} ± {line.error:.4f} | {far} |")
    write_section(PAGE, "governed", COMMAND, GOVERNED.format(**machine(), runs=len(lines), rows="\n".join(rows)))


def write_size(name: str, called: Mapping[str, Any]) -> None:
    """Write the section of an odd size."""
    rows = [
        f"| `{one['words']}` | {one['seconds']} | {one['peak_mb']:,} | {one['code']} | {one['said'].replace('|', '/')} |"
        for one in called["commands"]
    ]
    works = called["commands"][-1]["code"] in {0, 1}
    verdict = "Works." if works else "Ends with 71 and a clear message." if called["is_clear"] else "**Not clear.**"
    text = SIZE.format(**machine(), **{**called, "rows": "\n".join(rows)}, verdict=verdict)
    write_section(PAGE, f"size {name}", f"{COMMAND} sizes", text)


def _row(one: Judged) -> str:
    bound = one.series.bound
    may = "shown only" if bound.why and bound.each_run is None and bound.share is None else ""
    may = may or (f"{bound.each_run:g} a run" if bound.each_run is not None else f"{bound.share:.0%} of its level")
    may += f" ({bound.why})" if bound.why else ""
    line = one.fit
    said = "**fails**" if one.grows else ""
    return (
        f"| {one.series.chart}: {one.series.name} | {line.level:,.3g} | {1_000 * line.slope:,.3g} ± {1_000 * line.error:,.2g} "
        f"| {one.at_year:,.4g} | {may} | {said} |"
    )


def _played(year: Year, lines: Sequence[Line]) -> str:
    if len(lines) >= YEAR_RUNS:
        return "A whole year."
    whole = "" if len(lines) == year.hours else f" of {year.hours:,}, stopped before its end"
    played = f"Not a whole year: {len(lines):,} hours{whole}, with the events of a year closer together"
    return f"{played}. `make year` plays all of it."


def _events(lines: Sequence[Line]) -> str:
    killed = Counter(how for line in lines for _, how in line.get("killed", ()))
    codes = Counter(code for line in lines for pair in line.get("doubled", {}).values() for code in pair)
    old = sum(bool(line.get("old")) for line in lines)
    by_whom = "by the code of an earlier version"
    soon = f"{killed['ended']} had ended before"
    sentences = (
        f"{sum('rewind' in line for line in lines)} times a day was rewound and made again",
        f"{sum('branch' in line for line in lines)} branch with rewritten code was replayed, compared and promoted",
        f"{killed['killed']} commands were killed after a random number of files ({soon}) and called again",
        f"{sum(codes.values())} processes ran two at a time ({codes[75]} ended with 75)",
        f"the {old} hours before the upgrade were made {by_whom}"
        if old
        else f"no hour was made {by_whom}: the clone lacks it",
    )
    return f"{'; '.join(sentences)}."


def _law(law: Mapping[str, Any] | None) -> str:
    if law is None:
        return "The end was not compared."
    if law["different"]:
        return f"**Other content than one run over everything: {', '.join(law['different'])}.**"
    return f"At the end, all {law['tables']} tables had the content hashes of one landing and one run over everything (L2)."


def _files_at(lines: Sequence[Line], runs: int) -> str:
    for line in lines:
        if "stored" in line and line["runs"] >= runs:
            files, size = (sum(one[at] for one in line["stored"].values()) for at in (0, 1))
            return f"{files:,} files and {size / 1e6:.0f} MB"
    return "no figure, because there were fewer"
