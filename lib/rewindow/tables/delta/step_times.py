"""When the steps of runs ended, from the Delta logs alone: the execution, the entry in the journal, the last publication."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewindow.control.health.inputs import StepTimes
from rewindow.control.plan.job_state import CommittedRun
from rewindow.storage.locations import filesystem_of
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.shared.paths import JOURNAL, METRICS

MOST_COMMITS = 200
"""So many commits of each table are read, the newest first: other jobs of the warehouse write to both."""


def step_times(warehouse: str, runs: Sequence[CommittedRun]) -> Mapping[int, StepTimes]:
    """Return the times of some runs by run id. A time is None if the newest commits do not have it."""
    attempts = {run.commit.attempt: run for run in runs}
    staged: dict[str, int] = {}
    for at_ms, files in _commits(table_path(warehouse, JOURNAL)):
        named = [path.rpartition("/")[2].removesuffix(".parquet") for path, _ in files]
        staged |= {attempt: at_ms for attempt in named if attempt in attempts}
        if len(staged) == len(attempts):
            break
    # The metrics are the last file that a run stages, and among the last that it publishes.
    published: dict[str, tuple[int, int]] = {}
    for at_ms, files in _commits(table_path(warehouse, METRICS)):
        named_at = [(path.rpartition("/")[2].partition("-")[0], modified_ms) for path, modified_ms in files]
        published |= {attempt: (modified_ms, at_ms) for attempt, modified_ms in named_at if attempt in attempts}
        if len(published) == len(attempts):
            break
    return {
        run.spec.run: StepTimes(
            executed_ms=published[attempt][0] if attempt in published else None,
            staged_ms=staged.get(attempt),
            published_ms=published[attempt][1] if attempt in published else None,
        )
        for attempt, run in attempts.items()
    }


def _commits(path: str) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """Yield the time of each commit of a table, and the files that it adds with their times, the newest commit first."""
    table = open_table(path)
    newest = -1 if table is None else table.version()
    for version in range(newest, max(newest - MOST_COMMITS, -1), -1):
        system, location = filesystem_of(f"{path}/_delta_log/{version:020d}.json")
        try:
            with system.open_input_stream(location) as file:
                actions: list[dict[str, Any]] = [json.loads(line) for line in file.read().splitlines()]
        except (FileNotFoundError, ValueError):
            # Delta has cleaned up: a checkpoint replaced what came before.
            return
        at_ms = next((action["commitInfo"].get("timestamp", 0) for action in actions if "commitInfo" in action), 0)
        yield (
            at_ms,
            [(action["add"]["path"], action["add"]["modificationTime"]) for action in actions if "add" in action],
        )
