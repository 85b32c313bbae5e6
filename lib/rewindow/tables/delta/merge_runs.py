"""Merge the small files of runs into larger ones, in one Delta commit per table with ``dataChange`` false (ADR-110).

Each run adds a file to each table, and a commit costs more the more files a table has. Merged are the files of outputs and of the
tables that several jobs share, of this job only, and of the journal. Changelogs are bounded by snapshots, and read as they were
staged.

A merged file says in its footer how many rows of each run it has, so `check_published` still counts by run. The old files stay:
the ledger names them, and `republish`, `promote` and restores read them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from rewindow.control.plan.branches import JobState
from rewindow.control.plan.compaction import due_neighbours
from rewindow.control.plan.spec import CHANGELOG
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.content_hash import TableFile, column_bounds, read_file, table_files, table_schema
from rewindow.tables.delta.features import direct_problem
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.run_counts import with_run_counts
from rewindow.tables.shared.paths import JOURNAL
from rewindow.tables.shared.publications import SHARED_TABLES, due_tables, publication_id

SMALL_BYTES = 1 << 20
"""Larger files are not merged."""

_TEXT_LIMIT = 32  # as in staged files: no bounds for longer texts


class RunFiles(NamedTuple):
    """The files of a job in a table that may be merged.

    ``fences``: application ids with their versions, under which rows leave the table. A merge is committed under them too, so
    Delta refuses whichever of the two comes second: it was decided on files that are not there any more.
    """

    path: str
    table: DeltaTable
    files: list[TableFile]
    fences: dict[str, int]


def merged_by(job: str) -> str:
    """Return what stands for the attempt in the names of merged files of a job."""
    return f"merged-{job}"


def run_files(warehouse: str, job: str, state: JobState) -> Iterator[RunFiles]:
    """Yield the tables of a job whose files may be merged. A table that lags behind the ledger is left to the next call."""
    seen = set()
    for branch in state.branches.values():
        for due in due_tables(state, branch.name) if branch.is_kept else ():
            if due.target.startswith(CHANGELOG) or due.table.path in seen:
                continue
            seen.add(due.table.path)
            path = table_path(warehouse, due.table.path)
            table = open_table(path)
            fence = publication_id(state.ledger, job, due.target, due.restart.epoch)
            published = table.transaction_version(fence) if table else None
            if table is None or direct_problem(table) or not published or published != len(due.publications):
                continue
            column = SHARED_TABLES.get(due.table.path)
            yield RunFiles(path, table, _own(path, table, column, job), {fence: published})
    path = table_path(warehouse, JOURNAL)
    table = open_table(path)
    if table is not None and not direct_problem(table):
        fence = f"rewindow.gc/{job}"
        # Reports of dead attempts leave the journal one by one.
        ended = {f"job={job}/{run.commit.attempt}.parquet" for run in state.committed}
        files = [
            file
            for file in table_files(path, table)
            if file.path in ended or file.path.startswith(f"job={job}/{merged_by(job)}-")
        ]
        yield RunFiles(path, table, files, {fence: (table.transaction_version(fence) or 0) + 1})


def _own(path: str, table: DeltaTable, column: str | None, job: str) -> list[TableFile]:
    """Return a table's files with rows of known runs; of a table that several jobs write, those of this job."""
    bounds = column_bounds(table, column) if column else {}
    return [
        file
        for file in table_files(path, table)
        if file.rows and file.first_run is not None and (column is None or bounds.get(file.path) == (job, job))
    ]


def due_merges(found: RunFiles, least: int) -> list[list[TableFile]]:
    """Return the groups of at least ``least`` files that a merge would turn into one file each."""
    small = [file for file in found.files if file.bytes <= SMALL_BYTES]
    small.sort(key=lambda file: (file.first_run or 0, file.path))
    return due_neighbours(small, least)


def merge(warehouse: str, job: str, state: JobState, least: int) -> Iterator[str | tuple[int, int]]:
    """Merge small files. Yield the name of each step before it, then for each table how many files became how many.

    If another commit comes first, the table is left to the next call. Raises `StorageError` (74) for a file that was altered.
    """
    for found in run_files(warehouse, job, state):
        groups = due_merges(found, least)
        if not groups:
            continue
        name = found.path.removeprefix(f"{warehouse}/")
        yield f"merge {name}"
        actions: list[AddAction | RemoveAction] = []
        new = set()
        for group in groups:
            added = _merged(found, group, job)
            actions += [added, *(_removal(file) for file in group)]
            new.add(added.path)
        yield f"merge {name}: written"
        _commit(found, actions)
        after = open_table(found.path)
        if after is not None and new <= {file.path for file in table_files(found.path, after)}:
            yield len(actions) - len(new), len(new)


def _merged(found: RunFiles, group: Sequence[TableFile], job: str) -> AddAction:
    """Write the rows of some files as one file, in the order of their runs."""
    folder, schema = Folder(found.path), table_schema(found.table)
    rows = pa.concat_tables([read_file(folder, file, schema) for file in group])
    values = {name: None if value is None else str(value) for name, value in group[0].partition.items()}
    stored = with_run_counts(rows.drop_columns(list(values)).combine_chunks())
    directory = "/".join(f"{name}={value}" for name, value in values.items())
    name, facts = folder.write_staged(directory, merged_by(job), uuid4().hex, stored)
    if not folder.read_table(name).equals(stored):
        message = f"{folder.full_path(name)} does not contain what was written: check that disk"
        raise StorageError(message)
    return AddAction(name, facts.bytes, values, facts.modified_ms, False, json.dumps(_stats(stored)))


def _stats(rows: pa.Table) -> dict[str, Any]:
    bounds = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        is_short = pa.types.is_string(column.type) and (pc.max(pc.utf8_length(column)).as_py() or 0) <= _TEXT_LIMIT
        if (is_short or pa.types.is_integer(column.type)) and column.null_count < len(column):
            bounds[name] = pc.min_max(column).as_py()
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: bound["min"] for name, bound in bounds.items()},
        "maxValues": {name: bound["max"] for name, bound in bounds.items()},
        "nullCount": {name: column.null_count for name, column in zip(rows.column_names, rows.columns, strict=True)},
    }


def _removal(file: TableFile) -> RemoveAction:
    values = {name: None if value is None else str(value) for name, value in file.partition.items()}
    return RemoveAction(file.path, False, time.time_ns() // 1_000_000, None, values)


def _commit(found: RunFiles, actions: Sequence[AddAction | RemoveAction]) -> None:
    """Try to commit through the handle on which the merge was decided. The caller reads the log to see whether it landed."""
    fences = [Transaction(fence, version) for fence, version in found.fences.items()]
    try:
        found.table.create_write_transaction(
            list(actions),
            mode="append",
            schema=found.table.schema(),
            partition_by=found.table.metadata().partition_columns,
            commit_properties=CommitProperties(app_transactions=fences, max_commit_retries=0),
        )
    except Exception:  # noqa: BLE001 - the commit may have landed: the log decides
        time.sleep(0.01)
