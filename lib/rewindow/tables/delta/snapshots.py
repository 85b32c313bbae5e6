"""Stage a snapshot: all stores of a job after a run, as rows in the changelogs that replace all earlier rows for readers."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import decide_snapshot
from rewindow.control.plan.spec import CHANGELOG
from rewindow.streams.serde.meta_columns import PARTITION
from rewindow.tables.delta.audit import audit_files
from rewindow.tables.delta.branch_hash import store_rows
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.journal import Journal
from rewindow.tables.shared.audit import totals
from rewindow.tables.shared.content_hash import hash_rows
from rewindow.tables.shared.paths import JOURNAL
from rewindow.tables.shared.publications import Reports
from rewindow.tables.shared.store_rows import snapshot_rows


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
    """Write a store's current rows, one file for each partition."""
    target = f"{CHANGELOG}{store}"
    table = run.spec.binding.tables[target]
    folder = Folder(table_path(warehouse, table.path))
    for partition, own in snapshot_rows(rows, number, table.columns):
        path, facts = folder.write_staged(f"{PARTITION}={partition}", attempt, uuid4().hex, own)
        bounds = {"_run": number}
        stats = {"numRecords": own.num_rows, "minValues": bounds, "maxValues": bounds, "nullCount": {"_run": 0}}
        yield StagedFile(
            target,
            partition,
            path,
            own.num_rows,
            facts.bytes,
            {PARTITION: str(partition)},
            stats,
            hash_rows(own, exclude=("_run",)),
            folder.digest(path),
        )
