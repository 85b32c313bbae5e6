"""Stage a snapshot: all stores of a job after a run, as blocks of the journal that replace those of all earlier runs.

The journal holds them until the SNAPSHOT row takes them along, so both are one commit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import decide_snapshot
from rewindow.control.plan.spec import CHANGELOG
from rewindow.control.plan.stored_rows import stored_json
from rewindow.engine.worker.staging import StagingTarget
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.governed.blocks import file_row, journal_row
from rewindow.tables.governed.journal import SparkJournal, summary
from rewindow.tables.governed.own_table import REPORT
from rewindow.tables.governed.store_changes import store_changes
from rewindow.tables.shared.audit import totals
from rewindow.tables.shared.publications import Reports
from rewindow.tables.shared.store_rows import current_rows, snapshot_rows

BLOCK_ROWS = 250_000
"""The rows of a block of a snapshot."""


def stage_snapshot(
    journal: SparkJournal, state: JobState, run: CommittedRun, attempt: str, reports_of: Reports
) -> LedgerRow:
    """Let the journal hold a snapshot; return the ledger row that makes it count if it is the ledger's next row.

    Raises `StorageError` (74) if a block of a store is gone.
    """
    number = state.rows + 1  # the `_run` of its rows
    stores = sorted(run.spec.binding.stores)
    changes = store_changes(journal, run, state.basis(run.spec.run), stores, reports_of)
    files: list[StagedFile] = []
    with tempfile.TemporaryDirectory(prefix="rewindow-") as folder:
        for store in stores:
            rows = current_rows(changes.pop(store), run, store, reports_of(run))
            for file in _written(folder, run, store, rows, number, attempt):
                files.append(file)
                journal.hold(attempt, [file_row(0, file.partition, attempt, file, folder)])
    report = TaskReport(0, 0, tuple(files), {}, (), {})
    journal.hold(attempt, [journal_row(0, 0, REPORT, "", stored_json(report.as_json()), None)])
    return decide_snapshot(state, run, attempt, summary(attempt, [report]), totals([report]))


def _written(
    folder: str, run: CommittedRun, store: str, rows: pa.Table, number: int, attempt: str
) -> Iterator[StagedFile]:
    """Write a store's rows to local files, each of one partition."""
    target = f"{CHANGELOG}{store}"
    columns = run.spec.binding.tables[target].columns
    stored = [column for column in columns if column.name != PARTITION]
    for partition, own in snapshot_rows(rows, number, columns):
        where = StagingTarget(target, folder, attempt=attempt, partition=partition)
        for start in range(0, own.num_rows, BLOCK_ROWS):
            with where.file(stored, ["_run"], partition) as writer:
                block = own.slice(start, BLOCK_ROWS).select([column.name for column in stored])
                for batch in block.cast(writer.schema).to_batches():
                    writer.write(batch)
                staged = writer.close()
            if staged is not None:
                yield staged
