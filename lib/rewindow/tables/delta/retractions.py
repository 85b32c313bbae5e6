"""Remove the rows of runs, jobs and feeds from tables.

A file contains the rows of one run, unless files were merged (by `gc` or OPTIMIZE). From a merged file, rows are removed by
writing the remaining rows to a new file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import partial

import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from rewindow.errors import DamagedFileError
from rewindow.tables.delta.commit import Actions, Retract, file_stats, partition_values, removal
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.run_rows import with_run_counts
from rewindow.tables.delta.table_rows import (
    TableFile,
    column_bounds,
    files_of_job,
    files_without_runs,
    may_have,
    read_file,
    table_files,
    table_schema,
)
from rewindow.tables.shared.paths import QUARANTINE
from rewindow.tables.shared.publications import SHARED_TABLES, quarantine_id


def retract_all(path: str, table: DeltaTable) -> Actions:
    """Return the actions that remove every file that a table has at the handle's version."""
    return [_removal(file) for file in table_files(path, table)]


def retract_runs(path: str, table: DeltaTable, *, runs: AbstractSet[int]) -> Actions:
    """Return the actions that remove the rows of these runs from a table, as of the handle's version.

    Raises `StorageError` (74) if a file that may have rows of several runs cannot be read.
    """
    actions: list[AddAction | RemoveAction] = []
    files = table_files(path, table)
    without_runs = files_without_runs(table) if any(file.first_run is None for file in files) else set()
    for file in files:
        if file.first_run is not None and file.first_run == file.last_run:
            if file.first_run in runs:
                actions.append(_removal(file))
        elif file.path not in without_runs and _may_have(file, runs):
            actions += _without(path, table, file, pc.field("_run").isin(list(runs)))
    return actions


def retract_job(path: str, table: DeltaTable, *, column: str, job: str) -> Actions:
    """Return the actions that remove one job's rows from a shared table. ``column``: the column with the job of a row."""
    actions: list[AddAction | RemoveAction] = []
    bounds = column_bounds(table, column)
    # A feed may have the same name as the job, but a feed's rows have no run.
    is_own = (pc.field(column) == job) & pc.field("_run").is_valid()
    for file in files_of_job(path, table, column, job):
        smallest, largest = bounds.get(file.path, (None, None))
        if smallest is not None and smallest == largest and file.first_run is not None:
            # All rows of the file belong to this job. The file need not be read, and may even be gone.
            actions.append(_removal(file))
        else:
            actions += _without(path, table, file, is_own, is_only=smallest == largest == job)
    return actions


def _retract_feed(path: str, table: DeltaTable, *, feed: str) -> Actions:
    """Return the actions that remove a feed's rows from the quarantine."""
    column = SHARED_TABLES[QUARANTINE]
    bounds = column_bounds(table, column)
    # A job may have the same name as the feed, but a job's rows have a run.
    is_own = (pc.field(column) == feed) & pc.field("_run").is_null()
    actions: list[AddAction | RemoveAction] = []
    for file in table_files(path, table):
        smallest, largest = bounds.get(file.path, (None, None))
        if may_have((smallest, largest), [feed]):
            actions += _without(path, table, file, is_own, is_only=smallest == largest == feed)
    return actions


def removals(path: str, table: DeltaTable, names: AbstractSet[str]) -> Actions:
    """Return the actions that remove those of the files ``names`` that the table has at the handle's version."""
    return [_removal(file) for file in table_files(path, table) if file.path in names]


def _may_have(file: TableFile, runs: AbstractSet[int]) -> bool:
    if file.first_run is None or file.last_run is None:
        return True
    return any(file.first_run <= run <= file.last_run for run in runs)


def _without(
    path: str, table: DeltaTable, file: TableFile, removed: pc.Expression, *, is_only: bool = False
) -> Actions:
    """Return the actions that remove some rows of a file. ``is_only``: whether no row of the file would remain."""
    try:
        rows = read_file(Folder(path), file, table_schema(table))
    except DamagedFileError:
        if not is_only:
            raise
        # The rows of the file are lost already. As long as the table names the file, nobody can read or repair the table.
        return [_removal(file)]
    # The condition may be null for rows with a null. Such rows stay.
    is_kept = pc.invert(pc.coalesce(removed, pc.scalar(value=False)))
    kept = rows.filter(is_kept)
    if kept.num_rows == rows.num_rows:
        return []
    if kept.num_rows == 0:
        return [_removal(file)]
    stored = with_run_counts(kept.drop_columns(list(file.partition)))
    name, facts = Folder(path).write_digested("kept", stored)
    stats = json.dumps(file_stats(stored.select(["_run"]), ["_run"]))
    added = AddAction(name, facts.bytes, partition_values(file.partition), facts.modified_ms, True, stats)
    return [_removal(file), added]


def _removal(file: TableFile) -> RemoveAction:
    return removal(file.path, file.partition, data_change=True)


def retract_of_deleted(table: DeltaTable, ledger: str, feed: str, generations: Iterable[int]) -> Retract | None:
    """Return a function that removes from the quarantine a feed's rows that come from a deleted ledger.

    Returns None if this ledger has published rows of these generations there. The feed's rows are then its own.
    """
    if any(table.transaction_version(quarantine_id(ledger, feed, number)) for number in generations):
        return None
    return partial(_retract_feed, feed=feed)
