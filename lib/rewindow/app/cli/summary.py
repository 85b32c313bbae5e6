"""The summaries of landings and runs: records, rows, what was dropped and why, commits and duration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewindow.app.watch import Watch
from rewindow.contracts.staged_files import QUARANTINE
from rewindow.control.health.inputs import dropped_by_reason, records_from_feed, rows_by_output
from rewindow.control.health.phrases import counted, keep_dropped, see_quarantined
from rewindow.control.plan.spec import MAIN
from rewindow.control.run import RunReport
from rewindow.streams.metrics import DROPS, LATE_RECORD_DROP, PUNCTUATE, QUARANTINED, sum_by_reason

_MOSTLY = 2
"""If late records are this part of all, a run warns."""


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
        "hint_codes": [hint.code for hint in result.hints],
        "seconds": watch.seconds,
    }


def summary_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the last lines of a summary: how long it took, and where the report is."""
    punctuations = f"{summary['punctuations']} punctuations, " if summary["punctuations"] else ""
    branch = "" if summary["branch"] == MAIN else f" --branch {summary['branch']}"
    took = f"{punctuations}{summary['commits']} commits in {summary['seconds']:.1f} seconds"
    yield f"  {took}. Report: rewindow report {summary['job']}{branch}"


def reason_lines(result: RunReport) -> Iterator[str]:
    """Yield what a run dropped and how to see it, and why an output got no rows."""
    dropped = dropped_by_reason(result.metrics)
    for kind, reasons in dropped.items():
        yield f"  {kind}: {', '.join(f'{count} {reason}'.strip() for reason, count in reasons.items())}"
    yield from _how_to_see(result, dropped)
    yield from _mostly_late(result)
    yield from (f"  {hint}." for hint in result.hints)


def _mostly_late(result: RunReport) -> Iterator[str]:
    """Yield a warning if a node dropped so many records as late that its grace period or the feed's order is probably wrong.

    Nodes in which a record counts once for each of several windows are left out.
    """
    records = records_from_feed(result.spec.binding, result.commit.consumed)
    once = {timed.node for timed in result.spec.binding.timed or () if timed.has_one_window}
    late = (
        sum_by_reason((row for row in result.metrics if row["node"] == node), LATE_RECORD_DROP) for node in sorted(once)
    )
    if 0 < records <= _MOSTLY * max((sum(reasons.values()) for reasons in late), default=0):
        branch = "" if result.spec.branch == MAIN else f" --branch {result.spec.branch}"
        report = f"rewindow report {result.spec.job}{branch}"
        what = f"Of the {counted(records, 'record')} of the run, half or more were late"
        yield f"  {what}: the lateness in `{report}` shows which grace period keeps them."


def _how_to_see(result: RunReport, dropped: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield how to see the records that were dropped. Without ``dropped: quarantine`` they are only counted."""
    refused = sum(dropped.get(DROPS[QUARANTINED], {}).values())
    rows = result.commit.targets[QUARANTINE].rows if QUARANTINE in result.commit.targets else 0
    if rows:
        yield f"  See them with `{see_quarantined(result.spec.job)}`."
    if rows <= refused and any(kind != DROPS[QUARANTINED] for kind in dropped):
        yield f"  {keep_dropped(result.spec.job)}."
