"""Merge the small files of runs into larger ones, in one Delta commit per table with ``dataChange`` false (ADR-110).

Each run adds a file to each table, and a commit costs more the more files a table has. Merged are the files of outputs and of the
tables that several jobs share, of this job only, and of the journal. Changelogs are bounded by snapshots, and read as they were
staged.

A merged file says in its footer how many rows of each run it has, so `check_published` still counts by run. The old files stay:
the ledger names them, and `republish`, `promote` and restores read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from rewindow.control.plan.compaction import due_neighbours
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import CHANGELOG
from rewindow.control.plan.stored_runs import attempts_of
from rewindow.tables.delta.actions import Actions, file_stats, removal
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.content_hash import TableFile, column_bounds, read_file, table_files, table_schema
from rewindow.tables.delta.features import direct_problem
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.merge_files import Merge, merge_files, write_merged
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
    """Yield the tables of a job whose files may be merged."""
    yield from (found for look in _looks(warehouse, job, state).values() if (found := look()) is not None)


def _looks(warehouse: str, job: str, state: JobState) -> dict[str, Callable[[], RunFiles | None]]:
    """Return, for each table by its path, what opens it and returns its files that may be merged."""
    found: dict[str, Callable[[], RunFiles | None]] = {}
    for branch in state.branches.values():
        for due in due_tables(state, branch.name) if branch.is_kept else ():
            if not due.target.startswith(CHANGELOG):
                fence = publication_id(state.ledger, job, due.target, due.restart.epoch)
                look = partial(_in_table, warehouse, job, due.table.path, fence, len(due.publications))
                found.setdefault(due.table.path, look)
    return found | {JOURNAL: partial(_in_journal, warehouse, job, state)}


def _in_table(warehouse: str, job: str, name: str, fence: str, publications: int) -> RunFiles | None:
    """Return a table's files of runs. None if it lags behind the ledger, or is ahead of it: the next call looks again."""
    path = table_path(warehouse, name)
    table = open_table(path)
    published = table.transaction_version(fence) if table else None
    if table is None or direct_problem(table) or not published or published != publications:
        return None
    return RunFiles(path, table, _own(path, table, SHARED_TABLES.get(name), job), {fence: published})


def _in_journal(warehouse: str, job: str, state: JobState) -> RunFiles | None:
    path = table_path(warehouse, JOURNAL)
    table = open_table(path)
    if table is None or direct_problem(table):
        return None
    fence = f"rewindow.gc/{job}"
    # Reports of dead attempts leave the journal one by one.
    ended = {f"job={job}/{attempt}.parquet" for attempt in attempts_of(state.committed)}
    merged = f"job={job}/{merged_by(job)}-"
    files = [file for file in table_files(path, table) if file.path in ended or file.path.startswith(merged)]
    return RunFiles(path, table, files, {fence: (table.transaction_version(fence) or 0) + 1})


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
    """Merge small files, table by table; see `merge_files`. Raises `StorageError` (74) for a file that was altered."""
    for name, look in _looks(warehouse, job, state).items():
        yield from merge_files(f"merge {name}", table_path(warehouse, name), partial(_decide, look, job, least))


def _decide(look: Callable[[], RunFiles | None], job: str, least: int) -> Merge | None:
    found = look()
    groups = due_merges(found, least) if found else []
    return Merge(found.table, found.fences, lambda: _write(found, groups, job)) if found and groups else None


def _write(found: RunFiles, groups: Iterable[Sequence[TableFile]], job: str) -> Actions:
    actions: list[AddAction | RemoveAction] = []
    for group in groups:
        actions.append(_merged(found, group, job))
        actions += [removal(file.path, file.partition, data_change=False) for file in group]
    return actions


def _merged(found: RunFiles, group: Sequence[TableFile], job: str) -> AddAction:
    """Write the rows of some files as one file, in the order of their runs."""
    folder, schema, values = Folder(found.path), table_schema(found.table), group[0].partition
    rows = pa.concat_tables([read_file(folder, file, schema) for file in group])
    stored = with_run_counts(rows.drop_columns(list(values)).combine_chunks())
    bounded = [name for name in stored.column_names if _has_bounds(stored[name])]
    return write_merged(folder, merged_by(job), values, stored, file_stats(stored, bounded))


def _has_bounds(column: pa.ChunkedArray) -> bool:
    if pa.types.is_string(column.type):
        return bool((pc.max(pc.utf8_length(column)).as_py() or 0) <= _TEXT_LIMIT)
    return bool(pa.types.is_integer(column.type))
