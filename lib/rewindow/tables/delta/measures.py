"""The metrics of a chain of runs, from the table `rewindow/metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.control.plan.job_state import CommittedRun
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.content_hash import read_rows
from rewindow.tables.shared.measures import MEASURES, add_up_runs, reported
from rewindow.tables.shared.paths import METRICS
from rewindow.tables.shared.publications import Reports


def measures(warehouse: str, runs: Sequence[CommittedRun], reports: Reports) -> list[dict[str, Any]]:
    """Return the metrics of a chain of runs of one job, by task; see `add_up_runs`.

    The report of a run is read only if the table lacks its metrics, because they are not published yet. A table has the
    metrics of many runs in one file, since `gc` merges its files. Raises `StorageError` (74) for a table that cannot be read.
    """
    published = _published(warehouse, runs)
    known = set(pc.unique(published["_run"]).to_pylist())
    others = [run for run in runs if run.spec.run not in known]
    rest = reported((run.spec.run, report) for run in others for report in reports(run))
    return add_up_runs(pa.concat_tables([published, rest]))


def _published(warehouse: str, runs: Sequence[CommittedRun]) -> pa.Table:
    path = table_path(warehouse, METRICS)
    if not runs or open_table(path) is None:
        return MEASURES.empty_table()
    numbers = pa.array([run.spec.run for run in runs], pa.int64())
    own = (pc.field("job") == runs[0].spec.job) & pc.field("_run").isin(numbers)
    return read_rows(path, MEASURES.names, own).cast(MEASURES)
