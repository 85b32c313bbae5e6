"""Stage a snapshot: all stores of a job after a run, as rows in the changelogs that replace all earlier rows for readers."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import SHARED, StagedFile, TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import decide_snapshot
from rewindow.control.plan.spec import CHANGELOG
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.delta.audit import audit_files
from rewindow.tables.delta.branch_hash import store_rows
from rewindow.tables.delta.commit import table_path, takes_shared_files
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.journal import Journal
from rewindow.tables.shared.audit import totals
from rewindow.tables.shared.content_hash import hash_rows
from rewindow.tables.shared.paths import JOURNAL
from rewindow.tables.shared.publications import Reports
from rewindow.tables.shared.store_rows import snapshot_rows

SHARED_ROWS = 32 * 1024
"""The most rows of a snapshot that is one file. Each task reads such a file as a whole."""


def stage_snapshot(warehouse: str, state: JobState, run: CommittedRun, attempt: str, reports_of: Reports) -> LedgerRow:
    """Stage the rows of a snapshot; return the ledger row that makes them count if it is the ledger's next row.

    No table names the files yet. Raises `StorageError` (74) if a store cannot be read or a file cannot be written.
    """
    number = state.rows + 1  # the `_run` of its rows
    basis, stores = state.basis(run.spec.run), sorted(run.spec.binding.stores)
    files = tuple(
        file
        for store in stores
        for file in _files(warehouse, run, store, store_rows(warehouse, run, basis, store, reports_of), number, attempt)
    )
    reports = [TaskReport(0, 0, files, {}, (), {})]
    roots = {target: table_path(warehouse, table.path) for target, table in run.spec.binding.tables.items()}
    journal = Journal(table_path(warehouse, JOURNAL), run.spec.job).append(attempt, reports)
    audit_files(reports, roots)
    return decide_snapshot(state, run, attempt, journal, totals(reports))


def _files(
    warehouse: str, run: CommittedRun, store: str, rows: pa.Table, number: int, attempt: str
) -> Iterator[StagedFile]:
    """Write a store's current rows: a few in one file, more in one file for each partition."""
    target = f"{CHANGELOG}{store}"
    table = run.spec.binding.tables[target]
    path = table_path(warehouse, table.path)
    parts = list(snapshot_rows(rows, number, table.columns))
    if len(parts) > 1 and rows.num_rows <= SHARED_ROWS and takes_shared_files(path):
        parts = [(SHARED, pa.concat_tables([own for _, own in parts]))]
    for partition, own in parts:
        directory = "" if partition == SHARED else f"{PARTITION}={partition}"
        name, facts = Folder(path).write_staged(directory, attempt, uuid4().hex, own)
        bounds = pc.min_max(own[PARTITION]).as_py()
        stats = {
            "numRecords": own.num_rows,
            "minValues": {"_run": number, PARTITION: bounds["min"]},
            "maxValues": {"_run": number, PARTITION: bounds["max"]},
            "nullCount": {"_run": 0, PARTITION: 0},
        }
        yield StagedFile(
            target,
            partition,
            name,
            own.num_rows,
            facts.bytes,
            {} if partition == SHARED else {PARTITION: str(partition)},
            stats,
            hash_rows(own, exclude=("_run",)),
            Folder(path).digest(name),
        )
