"""The summary of a run: records read, rows written, records dropped by reason, punctuations, commits and duration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewindow.app.run_totals import dropped_by_reason, rows_by_output
from rewindow.app.watch import Watch
from rewindow.control.plan.spec import MAIN
from rewindow.control.run import RunReport
from rewindow.streams.drop_totals import sum_by_reason
from rewindow.streams.metrics import PUNCTUATE


def summarise(result: RunReport, watch: Watch) -> dict[str, Any]:
    """Return a run's summary as JSON values. ``dropped`` is ``{"late": {reason: records}}``, ``seconds`` is wall time."""
    spec, commit = result.spec, result.commit
    return {
        "job": spec.job,
        "branch": spec.branch,
        "run": spec.name,
        "records": dict(commit.consumed),
        "rows": rows_by_output(commit),
        "dropped": dropped_by_reason(result.metrics),
        "punctuations": sum(sum_by_reason(result.metrics, PUNCTUATE).values()),
        "commits": watch.commits,
        "hints": list(result.hints),
        "seconds": watch.seconds,
    }


def summary_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a summary that are printed below a run's own lines."""
    yield from reason_lines(summary)
    punctuations = f"{summary['punctuations']} punctuations, " if summary["punctuations"] else ""
    branch = "" if summary["branch"] == MAIN else f" --branch {summary['branch']}"
    took = f"{punctuations}{summary['commits']} commits in {summary['seconds']:.1f} seconds"
    yield f"  {took}. Report: rewindow report {summary['job']}{branch}"


def reason_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a run dropped, and why an output got no rows."""
    for kind, reasons in summary["dropped"].items():
        yield f"  {kind}: {', '.join(f'{count} {reason}'.strip() for reason, count in reasons.items())}"
    yield from (f"  {hint}." for hint in summary["hints"])
