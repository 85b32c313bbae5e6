"""Checkpoints and snapshots. A checkpoint is the small state of each task, and the changelog files of each store.

The chain of a run is the run and those before it that it builds on. The state after a run is the last row of each key among
the runs of its chain. A rewind removes nothing from a changelog, because only files of the runs in the chain are read. A
snapshot contains all stores of a job after a run, as rows in the changelogs. For readers, these rows replace all earlier
rows, so a restore reads less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import SHARED, StagedFile, TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import decide_snapshot
from rewindow.control.plan.spec import CHANGELOG, totals
from rewindow.errors import StorageError
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.journal import Journal, audit_files
from rewindow.tables.delta.open_table import open_table, table_path, takes_shared_files
from rewindow.tables.delta.table_rows import TableFile, read_file, table_files
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.checkpoints import Checkpoint, current_rows, since_last_added, snapshot_rows
from rewindow.tables.shared.content_hash import hash_rows
from rewindow.tables.shared.drift import publish_again
from rewindow.tables.shared.paths import JOURNAL
from rewindow.tables.shared.publications import Reports

SHARED_ROWS = 32 * 1024
"""A snapshot of a store with at most this many rows is a single file, which each task reads as a whole."""


def find_checkpoint(
    warehouse: str,
    head: CommittedRun | None,
    basis: Sequence[CommittedRun],
    reports: Reports,
    *,
    as_staged: bool = False,
) -> Checkpoint:
    """Return the checkpoint after the run ``head``; an empty checkpoint if ``head`` is None.

    ``basis``: the runs to read (see `JobState.basis`). All of them must be published. ``as_staged``: read the files that the
    runs staged, even if the tables name other files. Raises `StorageError` (74) if a changelog lacks committed rows.
    """
    if head is None:
        return Checkpoint({}, {})
    binding = head.spec.binding
    states = {(report.sub_topology, report.partition): report.state for report in reports(head)}
    partitions = sorted({partition for _, partition in states if partition != SHARED})
    stores: dict[tuple[str, int], tuple[str, ...]] = {}
    read: list[TableFile] = []
    for store in sorted(binding.stores):
        target = f"{CHANGELOG}{store}"
        path = table_path(warehouse, binding.tables[target].path)
        files = changelog_files(path, target, basis, reports, as_staged=as_staged)
        located = [(_partition_of(file.path), f"{path}/{file.path}") for file in files]
        for partition in partitions:
            stores[store, partition] = tuple(name for own, name in located if own in (None, partition))
        read += files
    return Checkpoint(states, stores, sum(file.rows or 0 for file in read), sum(file.bytes for file in read))


def changelog_files(
    path: str, target: str, chain: Sequence[CommittedRun], reports: Reports, *, as_staged: bool = False
) -> list[TableFile]:
    """Return a changelog's files of these runs, in the order of the runs. A later row of a key replaces an earlier row.

    Raises `StorageError` (74) if the files have fewer or more rows than were committed.
    """
    chain = since_last_added(chain, target)
    table = None if as_staged else open_table(path)
    order = {run.spec.run: index for index, run in enumerate(chain)}
    listed = table_files(path, table, runs=order) if table else []
    attempts = {run.spec.run: run.commit.attempt for run in chain}
    if as_staged or any(not _is_staged(file, attempts) for file in listed):
        # If files of the table were rewritten (OPTIMIZE, UPDATE), the files that the runs staged still exist until VACUUM.
        own = [_as_table_file(file, run.spec.run) for run in chain for file in _staged(reports(run), target)]
        _check_present(path, own, chain)
    else:
        own = [file for file in listed if file.first_run in order]
    _check_complete(path, target, chain, own)
    return sorted(own, key=lambda file: (order[file.first_run or 0], file.path))


def _partition_of(path: str) -> int | None:
    """Return the partition whose directory contains a changelog's file; None for a file that tasks share.

    All tasks read a shared file. Delta's statistics also say which partitions a file has. They are not used, because the log
    has no checksum: a flipped bit in the statistics could make a task skip a file that it needs.
    """
    directory = path.rpartition("/")[0]
    return int(directory.removeprefix(f"{PARTITION}=")) if directory else None


def _is_staged(file: TableFile, attempts: Mapping[int, str]) -> bool:
    """Return whether a run staged this file.

    A staged file has rows of one run, and its name begins with that run's attempt, if the attempt is known.

    ``attempts``: maps each run that is read to its attempt.
    """
    if file.first_run is None or file.first_run != file.last_run:
        return False
    attempt = attempts.get(file.first_run)
    return attempt is None or file.path.rpartition("/")[2].startswith(f"{attempt}-")


def _staged(reports: Sequence[TaskReport], target: str) -> list[StagedFile]:
    return [file for report in reports for file in report.files if file.target == target]


def _as_table_file(file: StagedFile, run: int) -> TableFile:
    return TableFile(file.path, file.rows, file.bytes, dict(file.partition_values), run, run)


def _check_present(path: str, files: Sequence[TableFile], chain: Sequence[CommittedRun]) -> None:
    folder = Folder(path)
    for file in files:
        facts = folder.facts(file.path)
        if facts is None or facts.bytes != file.bytes:
            last = chain[-1].spec
            raise StorageError(
                "changelog-rewritten",
                "the changelog {path} was rewritten and its file {file} deleted (OPTIMIZE and VACUUM, or "
                "by hand). {fix}",
                path=path,
                file=file.path,
                fix=publish_again(last.job, last.branch),
            )


def _check_complete(path: str, target: str, chain: Sequence[CommittedRun], files: Sequence[TableFile]) -> None:
    rows_of_run: dict[int, int] = {}
    for file in files:
        rows_of_run[file.first_run or 0] = rows_of_run.get(file.first_run or 0, 0) + (file.rows or 0)
    for run in chain:
        due = run.commit.rows_in(target)
        if rows_of_run.get(run.spec.run, 0) != due:
            rows = rows_of_run.get(run.spec.run, 0)
            raise StorageError(
                "changelog-altered",
                "the changelog {path} has {rows} rows of run {run}, but {due} were committed: it was altered outside "
                "rewindow. {fix}",
                path=path,
                rows=rows,
                run=run.spec.name,
                due=due,
                fix=publish_again(run.spec.job, run.spec.branch),
            )


def store_rows(
    warehouse: str, head: CommittedRun, basis: Sequence[CommittedRun], store: str, reports: Reports
) -> pa.Table:
    """Return a store's current keys and values after a run, with their partition. ``basis``: see `JobState.basis`."""
    target = f"{CHANGELOG}{store}"
    binding = head.spec.binding
    table = binding.tables[target]
    path, schema = table_path(warehouse, table.path), arrow_schema(table.columns)
    files = changelog_files(path, target, basis, reports)
    rows = pa.concat_tables([schema.empty_table(), *(read_file(Folder(path), file, schema) for file in files)])
    return current_rows(rows, head, store, reports(head))


def stage_snapshot(warehouse: str, state: JobState, run: CommittedRun, attempt: str, reports_of: Reports) -> LedgerRow:
    """Stage the rows of a snapshot; return the ledger row that makes the snapshot valid.

    The snapshot is valid only if this row is appended as the ledger's next row. No table names the files yet. Raises
    `StorageError` (74) if a store cannot be read or a file cannot be written.
    """
    # The rows of the snapshot have the number of the SNAPSHOT row as their `_run`.
    number = state.rows + 1
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
    """Write a store's current rows to one file or, if they are many, to one file for each partition."""
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
