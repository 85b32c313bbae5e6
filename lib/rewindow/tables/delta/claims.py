"""Check that a table belongs to the job, and that it has only rows that the job's ledger published.

The application id of a publication contains the identity of its ledger. So a table in which a ledger has published nothing must
have no rows. If there are rows, they are of a ledger that was deleted, and adding others would mix two histories (ADR-75).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.compute as pc
from deltalake import DeltaTable

from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN, TableSpec
from rewindow.errors import ConfigError
from rewindow.tables.delta.create_table import OWNER
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import added_files, open_table, table_path
from rewindow.tables.delta.table_rows import files_of_job, read_file, table_files, table_schema
from rewindow.tables.shared.publications import (
    SHARED_TABLES,
    log_id,
    publication_id,
    unknown_landings,
    unknown_rows,
)


def is_published(table: DeltaTable, job: str, state: JobState, branch: str, target: str, path: str) -> bool:
    """Return whether the job's ledger has published a target to a table, in any publication epoch."""
    epochs = range(1, state.restart(branch, target, path).epoch + 1)
    return any(table.transaction_version(publication_id(state.ledger, job, target, epoch)) for epoch in epochs)


def check_claim(
    warehouse: str, table: DeltaTable, job: str, state: JobState, branch: str, target: str, path: str
) -> None:
    """Check that a table has no rows of the job if the job's ledger has published none. Raises `CheckpointError` (76)."""
    root = table_path(warehouse, path)
    if not is_published(table, job, state, branch, target, path) and _has_rows(root, table, path, job):
        reset = f"start over, which empties the job's tables: `rewindow reset {job}`"
        raise unknown_rows(root, job, fix=reset if branch == MAIN else "choose another branch name")


def is_of_another(table: DeltaTable | None, job: str) -> bool:
    """Return whether a table belongs to another job. A property of the table names the job that created it."""
    return table is not None and table.metadata().configuration.get(OWNER, job) != job


def check_owner(path: str, table: DeltaTable | None, job: str) -> None:
    """Raise `ConfigError` (78) if a table belongs to another job."""
    if table is not None and is_of_another(table, job):
        other = table.metadata().configuration[OWNER]
        raise ConfigError(
            "table-of-another-job",
            "the table {path} is written by the job {other!r}: name another table for {job!r}. If "
            "{other!r} was renamed, name it so again: its runs and its state have its name",
            path=path,
            other=other,
            job=job,
        )


def check_owners(warehouse: str, job: str, tables: Iterable[TableSpec]) -> None:
    """Raise `ConfigError` (78) if an existing table belongs to another job. Tables that were only created are ignored."""
    for spec in tables:
        path = table_path(warehouse, spec.path)
        table = open_table(path)
        if table is not None and (table.version() or table_files(path, table)):
            check_owner(path, table, job)


def _has_rows(root: str, table: DeltaTable, path: str, job: str) -> bool:
    """Return whether a table has files. If several jobs write the table, return whether it has rows of this job."""
    column = SHARED_TABLES.get(path)
    if column is None:
        return bool(table_files(root, table))
    schema, folder = table_schema(table), Folder(root)
    # A feed may have the same name as the job, but rows of feeds have no run.
    is_own = (pc.field(column) == job) & pc.field("_run").is_valid()
    files = files_of_job(root, table, column, job)
    return any(read_file(folder, file, schema).filter(is_own).num_rows for file in files)


def unknown_tables(warehouse: str, job: str, state: JobState, paths: Iterable[str]) -> list[str]:
    """Return the tables among ``paths`` with rows of the job that its ledger did not publish under any target."""
    unknown = []
    published = {(target, table.path) for run in state.committed for target, table in run.spec.binding.tables.items()}
    for path in paths:
        table = open_table(table_path(warehouse, path))
        if table is None:
            continue
        targets = [target for target, known_path in published if known_path == path]
        is_known = any(is_published(table, job, state, MAIN, target, path) for target in targets)
        if not is_known and _has_rows(table_path(warehouse, path), table, path, job):
            unknown.append(path)
    return unknown


def check_log_claim(path: str, table: DeltaTable, ledger: str, feed: str) -> None:
    """Check that the feed's ledger has published every generation that is in a log. Raises `CheckpointError` (76)."""
    actions = added_files(table)
    generations = pc.unique(actions["partition.generation"]).to_pylist() if actions.num_rows else []
    if any(table.transaction_version(log_id(ledger, feed, number)) is None for number in generations):
        raise unknown_landings(path, feed)
