"""Checkpoints and snapshots as blocks of the journal. In a catalog, stores have no tables of their own.

A snapshot replaces the changelog blocks of all earlier runs. The journal holds a snapshot in memory until the SNAPSHOT row is
appended, so that both are appended in one commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import decide_snapshot
from rewindow.control.plan.spec import CHANGELOG, totals
from rewindow.control.plan.stored_rows import stored_json
from rewindow.engine.worker.staging import StagingTarget
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.governed.journal import (
    ROOT,
    SparkJournal,
    block_path,
    file_row,
    journal_row,
    rows_of_block,
    summary,
)
from rewindow.tables.governed.own_table import REPORT
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.checkpoints import Checkpoint, current_rows, since_last_added, snapshot_rows
from rewindow.tables.shared.publications import Reports

BLOCK_ROWS = 250_000
"""A block of a snapshot has at most this many rows."""


def find_checkpoint(head: CommittedRun | None, basis: Sequence[CommittedRun], reports: Reports) -> Checkpoint:
    """Return the checkpoint after the run ``head``; an empty one if it is None.

    ``basis``: the runs to read (`JobState.basis`).
    """
    if head is None:
        return Checkpoint({}, {})
    states = {(report.sub_topology, report.partition): report.state for report in reports(head)}
    stores: dict[tuple[str, int], tuple[str, ...]] = {}
    rows = size = 0
    for store in head.spec.binding.stores:
        for path, file in changelog_files(basis, store, reports):
            key = store, int(file.partition_values[PARTITION])
            stores[key] = (*stores.get(key, ()), f"{ROOT}{path}")
            rows, size = rows + file.rows, size + file.bytes
    return Checkpoint(states, stores, rows, size)


def changelog_files(basis: Sequence[CommittedRun], store: str, reports: Reports) -> list[tuple[str, StagedFile]]:
    """Return the blocks of a store's changelog that a restore reads: pairs (path, file), in the order of the runs."""
    target = f"{CHANGELOG}{store}"
    return [
        (block_path(run.commit.attempt, target, file.path), file)
        for run in since_last_added(basis, target)
        for report in reports(run)
        for file in report.files
        if file.target == target
    ]


def store_rows(
    journal: SparkJournal, run: CommittedRun, basis: Sequence[CommittedRun], store: str, reports: Reports
) -> pa.Table:
    """Return a store's current keys and values after a run, with their partition. ``basis``: see `JobState.basis`."""
    changes = store_changes(journal, run, basis, [store], reports)[store]
    return current_rows(changes, run, store, reports(run))


def store_changes(
    journal: SparkJournal, run: CommittedRun, basis: Sequence[CommittedRun], stores: Sequence[str], reports: Reports
) -> dict[str, pa.Table]:
    """Return, by store, the changelog rows that a restore reads, in the order of the runs. ``basis``: see `JobState.basis`.

    One query reads all blocks. Raises `StorageError` (74) if a block is gone.
    """
    blocks_of = {store: changelog_files(basis, store, reports) for store in stores}
    data = journal.block_data([path for blocks in blocks_of.values() for path, _ in blocks])
    changes = {}
    for store, blocks in blocks_of.items():
        schema = arrow_schema(run.spec.binding.tables[f"{CHANGELOG}{store}"].columns)
        rows = [_filled(data[path], file.partition_values, schema) for path, file in blocks]
        changes[store] = pa.concat_tables([schema.empty_table(), *rows])
    return changes


def _filled(data: bytes, values: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Return a block's rows with all columns of the changelog. ``values``: the partition columns, which blocks lack."""
    rows = rows_of_block(data)
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.chunked_array([pa.repeat(pa.scalar(values.get(field.name)).cast(field.type), rows.num_rows)])
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def stage_snapshot(
    journal: SparkJournal, state: JobState, run: CommittedRun, attempt: str, reports_of: Reports
) -> LedgerRow:
    """Let the journal hold a snapshot; return the ledger row that makes the snapshot valid.

    The snapshot is valid only if this row is appended as the ledger's next row. Raises `StorageError` (74) if a block of a
    store is gone.
    """
    # The rows of the snapshot have the number of the SNAPSHOT row as their `_run`.
    number = state.rows + 1
    stores = sorted(run.spec.binding.stores)
    changes = store_changes(journal, run, state.basis(run.spec.run), stores, reports_of)
    files: list[StagedFile] = []
    with scratch_folder() as folder:
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
    """Write a store's rows to local files, each with rows of one partition; yield the files."""
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
