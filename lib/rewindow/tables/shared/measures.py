"""The metrics of several runs, added up by task: counts and totals are added, extrema taken, the newest value counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rewindow.contracts.staged_files import METRICS, TaskReport
from rewindow.tables.shared.arrow_schema import arrow_schema

MEASURE = ("sub_topology", "partition", "level", "node", "name", "reason")
_VALUES = ("count", "total", "minimum", "maximum", "current")
MEASURES = arrow_schema([column for column in METRICS if column.name in {"_run", *MEASURE, *_VALUES}])
"""The columns of the metrics table that sums are made from."""


def reported(reports: Iterable[tuple[int, TaskReport]]) -> pa.Table:
    """Return the metrics of reports, each with the number of its run, as rows of the metrics table."""
    rows = [
        {"_run": run, "sub_topology": report.sub_topology, "partition": report.partition, **measure}
        for run, report in reports
        for measure in report.metrics
    ]
    return pa.Table.from_pylist(rows, schema=MEASURES)


def add_up_runs(rows: pa.Table) -> list[dict[str, Any]]:
    """Return one dictionary for each measure of a task, with the columns of a report's metrics and its task."""
    rows = rows.select(MEASURES.names).sort_by("_run")
    kinds = {"minimum": "min", "maximum": "max", "current": "last"}
    wanted = [(name, kinds.get(name, "sum")) for name in _VALUES]
    summed = rows.group_by(list(MEASURE), use_threads=False).aggregate(wanted)
    names = {f"{name}_{function}": name for name, function in wanted}
    added: list[dict[str, Any]] = summed.rename_columns(
        [names.get(name, name) for name in summed.column_names]
    ).to_pylist()
    return added
