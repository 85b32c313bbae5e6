"""Let the tables follow the ledger: each committed run becomes one Delta commit of each table it wrote.

What a table gets as its k-th commit is a function of the ledger alone, so anyone may publish, at any time, as often as
they like, several at once: a commit that is there is left alone, and the next one can only be its successor.

A lineage publishes the tables that its own runs name: so a table that somebody lost stops the lineages that have it,
and no other. Where lineages share a table, each publishes the rows of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from deltalake import DeltaTable

from rewindow.core.staging import StagedFile, TaskReport
from rewindow.delta.tables import (
    METRICS,
    QUARANTINE,
    arrow_schema,
    check_writable,
    commit_files,
    create_table,
    open_table,
    table_path,
)
from rewindow.errors import ConfigError
from rewindow.plan.fold import CommittedRun, JobState
from rewindow.plan.spec import TableSpec

OUTPUT = "output/"
"""How the targets of output tables begin: each lineage has its own. All other tables are shared."""

Reports = Callable[[CommittedRun], Sequence[TaskReport]]
"""Reads a run's reports from the journal."""

_EPOCH = 1
"""The publication epoch: a table that is published anew from the start gets a new one, and so a new application id."""

_OWNER = "rewindow.job"
"""The table property that names the one job that writes the table."""

_EVERYBODYS = (METRICS, QUARANTINE)


def publish(warehouse: str, job: str, state: JobState, lineage: str, reports: Reports) -> Iterator[str]:
    """Publish what a lineage's tables lack of what is committed; yield the name of each commit before it is made.

    Raises `StorageError` (74) if a staged file is gone or a commit does not land; what was published by then stays.
    """
    for target, table, runs in _publications(state, lineage):
        path, app_id = table_path(warehouse, table.path), publication_id(job, target)
        opened = open_table(path) or _make(warehouse, job, table)
        published = opened.transaction_version(app_id) or 0
        handle: DeltaTable | None = opened
        for ordinal, run in enumerate(runs[published:], start=published + 1):
            yield f"publish {target} {ordinal}"
            commit_files(path, _files(reports(run), target), app_id=app_id, version=ordinal, table=handle)
            handle = None  # it does not see what was committed through it


def publication_id(job: str, target: str) -> str:
    """Return the application id under which a job publishes a target."""
    return f"rewindow.pub/{job}/{target}/{_EPOCH}"


def prepare(warehouse: str, job: str, tables: Mapping[str, TableSpec]) -> None:
    """Make the tables that a run is going to write, where they are missing, and see that it may write them.

    Raises `ConfigError` (78) for another job's table, `CheckpointError` (76) for other columns, `StorageError` (74) for
    a table that cannot be made or has features which a direct commit would not honour.
    """
    for table in tables.values():
        _make(warehouse, job, table)


def _make(warehouse: str, job: str, table: TableSpec) -> DeltaTable:
    path = table_path(warehouse, table.path)
    owner = {} if table.path in _EVERYBODYS else {_OWNER: job}
    made = create_table(path, arrow_schema(table.columns), table.partition_by, configuration=owner)
    found = made.metadata().configuration.get(_OWNER, job)
    if found != job:
        message = f"the table {path} is written by the job {found!r}: name another table for {job!r}"
        raise ConfigError(message)
    check_writable(path, made)
    return made


def _publications(state: JobState, lineage: str) -> Iterator[tuple[str, TableSpec, Sequence[CommittedRun]]]:
    """Yield each table of a lineage and the runs that it gets, in the order of its publication ordinals 1, 2, 3 ..."""
    own = state.lineage(lineage).runs
    tables = own[-1].spec.binding.tables if own else {}
    for target in sorted(tables, key=lambda target: (not target.startswith(OUTPUT), target)):
        table = tables[target]
        runs = own if target.startswith(OUTPUT) else [run for run in state.committed if _names(run, target, table)]
        yield target, table, runs


def _names(run: CommittedRun, target: str, table: TableSpec) -> bool:
    named = run.spec.binding.tables.get(target)
    return named is not None and named.path == table.path


def _files(reports: Sequence[TaskReport], target: str) -> list[StagedFile]:
    return [file for report in reports for file in report.files if file.target == target]
