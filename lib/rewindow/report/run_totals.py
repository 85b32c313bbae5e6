"""What runs added and dropped: rows by output, and records by the reason why they were dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.commit import Commit
from rewindow.control.plan.spec import OUTPUT, JobBinding
from rewindow.streams.metrics import DROPS, sum_by_reason


def records_from_feed(binding: JobBinding, consumed: Mapping[str, int]) -> int:
    """Return how many records a run took from its feed, given those of all topics: internal ones have them once more."""
    written = {node["sink"] for part in binding.topology for node in part["nodes"] if "sink" in node}
    internal = {topic for topic in written if OUTPUT + topic not in binding.tables}
    return sum(records for topic, records in consumed.items() if topic not in internal)


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
