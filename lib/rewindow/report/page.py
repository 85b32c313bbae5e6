"""A report as one HTML page, from the templates of this folder: the verdict, then a section for each question.

All texts and attributes are escaped. A misspelt name in a template raises an error.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rewindow.control.health import phrases
from rewindow.control.health.late_and_dropped_records import Lateness
from rewindow.errors import visible_lines
from rewindow.report import charts, text
from rewindow.report.report_facts import Change, Level, Report
from rewindow.streams.duration import in_words
from rewindow.streams.metrics import GRACE_BOUNDS_MS

SECTIONS = {
    "expectations": "Expectations",
    "dropped": "Records and drops",
    "lateness": "Lateness",
    "windows": "Open windows",
    "clocks": "Clocks",
    "stores": "Stores",
    "changes": "What changed",
    "diff": "Branch comparison",
    "cost": "Cost",
    "runs": "Runs",
    "digests": "Digests",
}
"""Maps the name of a section's template to the heading of the section. A section whose template renders to nothing is left
out."""
_STATES = {Level.GOOD: "OK", Level.NOTE: "NOTE", Level.WARNING: "ATTENTION", Level.BAD: "REFUSED"}


def page(report: Report) -> str:
    """Return the report as an HTML page, which needs no script, font or network."""
    environment = _environment()
    sections = []
    for name, heading in SECTIONS.items():
        content = environment.get_template(f"{name}.html").render(report=report).strip()
        if content:
            sections.append((name, heading, Markup(content)))  # noqa: S704 - the template has escaped the content
    return visible_lines(environment.get_template("report.html").render(report=report, sections=sections))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rewindow.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    formats = (
        phrases.counted,
        text.instant,
        text.number,
        text.seconds,
        text.share,
        text.size,
        text.span,
        text.to_the_second,
    )
    environment.filters |= {
        function.__name__: function for function in (*formats, in_words, with_code, moved, the_last)
    }
    said = (phrases.command_words, phrases.see_quarantined, text.share_of_records, text.told_holds, text.told_left_out)
    drawn = (charts.clocks_chart, charts.drops_chart, charts.lateness_chart, charts.records_chart, charts.seconds_chart)
    called = (*said, *drawn, charts.timed_clocks, text.where_results_wait, kept_by_grace)
    environment.globals |= {function.__name__: function for function in called}
    environment.globals |= {"dash": text.DASH, "states": _STATES, "clock_names": charts.CLOCKS}
    return environment


def with_code(sentence: str) -> Markup:
    """Return a sentence as HTML. Text between backticks becomes code."""
    parts = sentence.split("`")
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if index % 2 else escape(part) for index, part in enumerate(parts))


def moved(change: Change) -> str:
    """Return the relative change of a figure, as a share of its earlier value; ``""`` if it did not change."""
    if change.before is None or change.now is None or change.before == change.now:
        return ""
    by = change.now - change.before
    if not change.before:
        return f"{by:+,.2f}".rstrip("0").rstrip(".")
    return f"{by / change.before:+.1%}"


def the_last(runs: int) -> str:
    """Return the words ``the last 3 runs`` if ``runs`` is 3."""
    return "the last run" if runs == 1 else f"the last {text.number(runs)} runs"


def kept_by_grace(node: Lateness) -> list[tuple[int, int]]:
    """Return pairs: a grace period (ms), and how many records it would have accepted. Sorted by grace period."""
    records = accumulate([node.in_time, *(bucket.records for bucket in node.buckets)])
    bounds = [0, *(node.needed_ms if bucket.up_to_ms is None else bucket.up_to_ms for bucket in node.buckets)]
    kept = dict(zip(bounds, records, strict=True))
    if node.grace_ms is not None and node.counts_records:
        kept[node.grace_ms] = node.records - node.late
    elif node.grace_ms in GRACE_BOUNDS_MS:
        kept[node.grace_ms] = max(count for bound, count in kept.items() if bound <= node.grace_ms)
    return sorted(kept.items())
