"""What single runs published: a run's rows, how many rows of each run a file has, and the metrics of a chain of runs.

If a file has rows of one run, Delta's statistics state their number. A merged file states in its footer how many rows of each
run it has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun
from rewindow.errors import StorageError
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import existing_table, open_table, table_path
from rewindow.tables.delta.table_rows import TableFile, read_file, read_rows, rows_of, table_files, table_schema
from rewindow.tables.shared.arrow_tables import rows_with
from rewindow.tables.shared.audit import MEASURES, add_up_runs, reported
from rewindow.tables.shared.drift import publish_again
from rewindow.tables.shared.paths import METRICS
from rewindow.tables.shared.publications import Reports

_KEY = b"rewindow.runs"


def staged_batches(
    root: str, reports: Sequence[TaskReport], target: str, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the columns ``names`` of the rows that were staged for a target. ``root``: the table's folder.

    Raises `StorageError` (74).
    """
    folder = Folder(root)
    for report in reports:
        for file in report.files:
            if file.target == target:
                for batch in folder.read_batches(file.path, list(names)):
                    yield batch.select(list(names))


def run_batches(
    root: str, run: CommittedRun, reports: Sequence[TaskReport], target: str, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the columns ``names`` of a committed run's rows, from its staged files if all of them exist.

    If OPTIMIZE and VACUUM have replaced some of these files, the rows are read from the table. Raises `StorageError` (74) if
    the table lacks some of the rows.
    """
    folder = Folder(root)
    staged = [file for report in reports for file in report.files if file.target == target]
    if all(folder.facts(file.path) is not None for file in staged):
        yield from staged_batches(root, reports, target, names)
        return
    rows = pa.concat_tables(_published(root, run.spec.run))
    if rows.num_rows != sum(file.rows for file in staged):
        raise StorageError(
            "published-rows-missing",
            "{path} lacks rows of run {run}. {fix}",
            path=root,
            run=run.spec.name,
            fix=publish_again(run.spec.job, run.spec.branch),
        )
    yield from rows.select(list(names)).to_batches()


def _published(root: str, run: int) -> Iterator[pa.Table]:
    """Yield the rows of a run in a table. Only files that may have rows of the run are read."""
    table = existing_table(root)
    schema = table_schema(table)
    yield schema.empty_table()
    for file in table_files(root, table):
        if (file.first_run or 0) <= run <= (file.last_run or run):
            yield read_file(Folder(root), file, schema).filter(pc.field("_run") == run)


def with_run_counts(rows: pa.Table) -> pa.Table:
    """Add metadata to rows: how many of them each run has.

    When the rows are written to a file, the metadata is in its footer.
    """
    if "_run" not in rows.column_names:
        return rows
    counted = pc.value_counts(rows["_run"])
    counts = {str(entry["values"]): entry["counts"] for entry in counted.to_pylist() if entry["values"] is not None}
    return rows.replace_schema_metadata({_KEY: json.dumps(counts).encode()})


def run_counts(folder: Folder, file: TableFile) -> Counter[int] | None:
    """Return how many rows of each run a file has; None if neither Delta's log nor the footer states this."""
    if file.first_run is not None and file.first_run == file.last_run:
        return Counter({file.first_run: rows_of(folder, file)})
    if file.rows == 0:
        return Counter()
    if file.first_run is None:
        return None
    stated = folder.footer(file.path).get(_KEY)
    return None if stated is None else Counter({int(run): count for run, count in json.loads(stated).items()})


def measures(warehouse: str, runs: Sequence[CommittedRun], reports: Reports) -> list[dict[str, Any]]:
    """Return the metrics of a chain of runs of one job, added up by task; see `add_up_runs`.

    The metrics are read from the metrics table, where `gc` merges the metrics of many runs into one file. Only for runs whose
    metrics are not published yet, the reports are read. Raises `StorageError` (74) for a table that cannot be read.
    """
    parts = [*_published_measures(warehouse, runs)]
    published = {number for part in parts for number in pc.unique(part["_run"]).to_pylist()}
    if others := [run for run in runs if run.spec.run not in published]:
        parts.append(reported((run.spec.run, report) for run in others for report in reports(run)))
    return add_up_runs(pa.concat_tables(parts)) if parts else []


def _published_measures(warehouse: str, runs: Sequence[CommittedRun]) -> Iterator[pa.Table]:
    path = table_path(warehouse, METRICS)
    table = open_table(path) if runs else None
    if table is None:
        return
    numbers = [run.spec.run for run in runs]
    schema, folder = table_schema(table), Folder(path)
    values: dict[str, list[int] | list[str]] = {"job": [runs[0].spec.job], "_run": numbers}
    for file in table_files(path, table, runs=numbers):
        yield rows_with(read_file(folder, file, schema), values).select(MEASURES.names).cast(MEASURES)


_MEASURE = ("sub_topology", "level", "node", "partition", "name", "reason")


_SUMS = (("count", "sum"), ("total", "sum"), ("minimum", "min"), ("maximum", "max"))


def metric_totals(warehouse: str, chain: Sequence[CommittedRun]) -> pa.Table:
    """Return the sums and extrema of the metrics of a chain of runs, by task, node, name and reason."""
    head = chain[-1].spec
    runs = pa.array([run.spec.run for run in chain], pa.int64())
    rows = read_rows(table_path(warehouse, METRICS), where=(pc.field("job") == head.job) & pc.field("_run").isin(runs))
    return rows.group_by(list(_MEASURE), use_threads=False).aggregate(list(_SUMS))
