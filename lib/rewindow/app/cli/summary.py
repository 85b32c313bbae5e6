"""The summary of a run: records read, rows written, records dropped by reason, punctuations, commits and duration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rewindow.app.cli.progress import Watch
from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.commit import Commit
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.control.run import RunReport
from rewindow.streams.drop_totals import DROPS, sum_by_reason
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


def rows_by_output(commit: Commit) -> dict[str, int]:
    """Return the rows that a run added, by output topic."""
    return {
        target.removeprefix(OUTPUT): total.rows for target, total in commit.targets.items() if target.startswith(OUTPUT)
    }


def rows_of(runs: Iterable[CommittedRun]) -> Counter[str]:
    """Return the rows that runs together added, by output topic."""
    found = Counter[str]()
    for run in runs:
        found.update(rows_by_output(run.commit))
    return found


def fewer_rows(before: Counter[str], after: Counter[str]) -> dict[str, list[int]]:
    """Return the rows before and after of each output that has fewer rows than before."""
    return {output: [rows, after[output]] for output, rows in before.items() if after[output] < rows}


def dropped_by_reason(metrics: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the records that a run dropped, by kind and reason."""
    rows = list(metrics)
    dropped = {kind: sum_by_reason(rows, name) for name, kind in DROPS.items()}
    return {kind: reasons for kind, reasons in dropped.items() if reasons}
