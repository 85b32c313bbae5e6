"""Bring tables up to date with the ledger. A row that changes what is published becomes one commit per affected table.

The k-th publication of a table is computed from the ledger alone. So any process may publish at any time, repeatedly and
concurrently. A publication that is already in the table is skipped, and only the next one can follow it.

A branch publishes the tables that its own runs name, so a lost table stops only the branches that use it. If branches share a
table, each publishes the rows of all of them. Rows are removed from a shared table only when no branch needs them any more
(FORGET). Until then they do no harm, because readers of a shared table select the runs that count. In an output table, rows
are added and removed run by run.

After a reset, a job first empties its tables, with one commit each; their history stays readable. `FileRefusals` makes those
checks of a run that planning does not make, so that `plan` can report what a run would refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial

import pyarrow as pa
from deltalake import DeltaTable

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_state import CommittedRun, JobState, Publication
from rewindow.control.plan.spec import OUTPUT, RunSpec, TableSpec
from rewindow.control.plan.stored_rows import check_layout
from rewindow.control.run import Job
from rewindow.errors import CheckpointError, ConfigError, StorageError
from rewindow.streams.assembly import check_suppliers
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.task_schedules import method_is_gone
from rewindow.tables.delta.check_published import check_ledger, check_state
from rewindow.tables.delta.commit import Retract, check_writable, commit_files
from rewindow.tables.delta.create_table import (
    OWNER,
    SHORT_LOG,
    adopt_table,
    check_claim,
    check_owner,
    create_table,
    is_of_another,
    is_published,
    unknown_tables,
)
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.log_tables import check_log_claim, more_landings
from rewindow.tables.delta.open_table import existing_table, open_table, table_path
from rewindow.tables.delta.retractions import retract_all, retract_job, retract_runs
from rewindow.tables.delta.table_rows import table_files, table_schema
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.drift import publish_again, repeat_run
from rewindow.tables.shared.paths import EXPECTATIONS, JOURNAL, METRICS, QUARANTINE, log_path, safe_name
from rewindow.tables.shared.publications import (
    SHARED_TABLES,
    Due,
    Reports,
    due_tables,
    log_id,
    missing,
    net,
    planned_tables,
    publication_id,
    reset_id,
    was_prepared,
)


def finish_reset(warehouse: str, job: str, state: JobState) -> Iterator[str]:
    """Empty the tables that the last RESET names; yield the name of each commit before making it.

    Each commit also closes the application ids of the former ledger identity, so that a process that still publishes under these
    ids cannot add rows. Any process may do this at any time, repeatedly. A table of another job is never emptied.
    """
    if state.reset is None:
        return
    app_id = reset_id(state.ledger)
    for path, targets in sorted(state.reset.tables.items()):
        root = table_path(warehouse, path)
        table = open_table(root)
        if table is None or is_of_another(table, job) or table.transaction_version(app_id):
            continue
        yield f"empty {path}"
        closes = _ids(state.reset.ledger, job, targets)
        commit_files(root, [], app_id=app_id, version=1, table=table, retract=_retract_all_of(path, job), closes=closes)


def unknown(warehouse: str, job: str, state: JobState, outputs: Sequence[str]) -> list[str]:
    """Return the tables that have rows of the job which its ledger did not publish.

    The tables that are checked are ``outputs``, the job's changelogs, and the tables that several jobs write. Raises
    `ConfigError` (78) for an output of another job.
    """
    for path in outputs:
        table = open_table(table_path(warehouse, path))
        check_owner(table_path(warehouse, path), table, job)
    stores = f"state/{safe_name(job, 'job')}"
    changelogs = {"/".join(name.split("/")[:2]) for name, _, _ in Folder(table_path(warehouse, stores)).files()}
    paths = [*outputs, *(f"{stores}/{name}" for name in sorted(changelogs)), METRICS, QUARANTINE, EXPECTATIONS]
    return unknown_tables(warehouse, job, state, paths)


def _retract_all_of(path: str, job: str) -> Retract:
    if path in SHARED_TABLES:
        return partial(retract_job, column=SHARED_TABLES[path], job=job)
    return retract_all


def _ids(ledger: str, job: str, targets: Mapping[str, int]) -> list[str]:
    return [
        publication_id(ledger, job, target, epoch)
        for target, epochs in sorted(targets.items())
        for epoch in range(1, epochs + 1)
    ]


def publish(
    warehouse: str, job: str, state: JobState, branch: str, reports: Reports, now: Callable[[str], JobState]
) -> Iterator[str]:
    """Publish the committed runs that a branch's tables lack; yield the name of each commit before making it.

    ``now`` reads the ledger again. Raises `StorageError` (74) if a table or a staged file is gone or a commit does not land,
    `CheckpointError` (76) for a table with rows of another ledger or with publications that the ledger lacks, `ConfigError`
    (78) for another job's table. Commits that were made before the error stay.
    """
    yield from finish_reset(warehouse, job, state)
    if any(planned_tables(state, branch)):
        check_ledger(warehouse, job, state, branch, now)
    for due in due_tables(state, branch):
        path, epoch = table_path(warehouse, due.table.path), due.restart.epoch
        app_id = publication_id(state.ledger, job, due.target, due.restart.epoch)
        table = open_table(path, may_lag=True)
        if table is None:
            check_not_lost(warehouse, job, state, branch, due, reports)
            table = _create(warehouse, job, state, branch, due.target, due.table)
        published = table.transaction_version(app_id) or 0
        if published > len(due.publications):
            check_ledger(warehouse, job, state, branch, now)
        ordinals = missing(due, published)
        # A table of another job is refused, unless a failed attempt left the table empty.
        if ordinals and is_of_another(table, job):
            table = _create(warehouse, job, state, branch, due.target, due.table)
        # A table to which this ledger has published nothing must have no rows from a ledger that was deleted.
        if not published and epoch == 1:
            check_claim(warehouse, table, job, state, branch, due.target, due.table.path)
        handle: DeltaTable | None = table
        for ordinal in ordinals:
            yield f"publish {due.target} {ordinal}"
            publication, is_restart = _publication(due, ordinal)
            removed = frozenset(run.spec.run for run in publication.removes)
            commit_files(
                path,
                [file for run in publication.adds for file in _files(warehouse, run, due, reports)],
                app_id=app_id,
                version=ordinal,
                after=due.restart.ordinal - 1 if is_restart else 0,
                table=handle,
                retract=_retract(job, due, removed, is_restart=is_restart),
                fix=repeat_run(job, branch),
                # Without closing these ids, a writer with a stale view of the ledger could append rows that the republication
                # removed.
                closes=[publication_id(state.ledger, job, due.target, before) for before in range(1, epoch)]
                if is_restart
                else (),
            )
            # A handle must not be used after its commit.
            handle = None


def _retract(job: str, due: Due, removed: AbstractSet[int], *, is_restart: bool) -> Retract | None:
    """Return a function that removes the rows of these runs or, in a restart, all rows; None if there are none to remove.

    In a table that several jobs write, a restart removes only this job's rows.
    """
    if is_restart and due.table.path in SHARED_TABLES:
        return partial(retract_job, column=SHARED_TABLES[due.table.path], job=job)
    if is_restart:
        return retract_all
    return partial(retract_runs, runs=removed) if removed else None


def prepare(warehouse: str, job: str, state: JobState, branch: str, tables: Mapping[str, TableSpec]) -> None:
    """Create missing tables that a run will write, and check that it may write all of them.

    Raises `ConfigError` (78) for another job's table, `CheckpointError` (76) for other columns or rows of another ledger,
    `StorageError` (74) for a table that cannot be created or has features that a direct commit would not respect.
    """
    for target, table in tables.items():
        created = _create(warehouse, job, state, branch, target, table)
        if state.restart(branch, target, table.path).epoch == 1:
            check_claim(warehouse, created, job, state, branch, target, table.path)


def check_targets(warehouse: str, job: str, state: JobState, branch: str, tables: Mapping[str, TableSpec]) -> None:
    """Check the existing tables of a run as `prepare` does, without changing anything. Raises the same errors."""
    for target, spec in tables.items():
        path = table_path(warehouse, spec.path)
        table = open_table(path)
        if table is None or _is_leftover(table, path, job, state, branch, target, spec):
            continue
        check_owner(path, table, job)
        check_writable(path, table)
        if state.restart(branch, target, spec.path).epoch == 1:
            check_claim(warehouse, table, job, state, branch, target, spec.path)


def check_not_lost(
    warehouse: str, job: str, state: JobState, branch: str, due: Due, reports: Reports, change: str = "is gone"
) -> None:
    """Raise `StorageError` (74) for a missing table that was written, unless all files of its publications still exist.

    Without this check, `publish` would create an empty table, as if no run had ever been published to it.
    """
    if due.restart.epoch == 1 and not was_prepared(state, due):
        return
    sizes = cache(lambda path: Folder(table_path(warehouse, path)).sizes())
    for run in (run for ordinal in missing(due, 0) for run in _publication(due, ordinal)[0].adds):
        paths = {due.table.path, run.spec.binding.tables.get(due.target, due.table).path}
        if all(any(sizes(path).get(file.path) == file.bytes for path in paths) for file in _staged(run, due, reports)):
            continue
        lost = table_path(warehouse, due.table.path)
        raise StorageError(
            "published-table-altered",
            "the table {table} {change}. {fix}",
            table=lost,
            change=change,
            fix=publish_again(job, branch),
        )


def _publication(due: Due, ordinal: int) -> tuple[Publication, bool]:
    """Return a publication of a table, and whether it replaces all rows, as the first publication of a new epoch does."""
    is_restart = due.restart.epoch > 1 and ordinal == due.restart.ordinal
    return net(due.publications[:ordinal]) if is_restart else due.publications[ordinal - 1], is_restart


def _create(warehouse: str, job: str, state: JobState, branch: str, target: str, table: TableSpec) -> DeltaTable:
    path, schema = table_path(warehouse, table.path), arrow_schema(table.columns)
    owner = {} if table.path in SHARED_TABLES else {OWNER: job}
    configuration = owner if target.startswith(OUTPUT) else {**SHORT_LOG, **owner}
    try:
        created = create_table(path, schema, table.partition_by, configuration=configuration)
        check_owner(path, created, job)
    except (CheckpointError, ConfigError):
        existing = existing_table(path)
        if not _is_leftover(existing, path, job, state, branch, target, table):
            raise
        adopt_table(path, existing, schema, owner)
        created = create_table(path, schema, table.partition_by, configuration=owner)
        check_owner(path, created, job)
    check_writable(path, created)
    return created


def _is_leftover(
    table: DeltaTable, path: str, job: str, state: JobState, branch: str, target: str, spec: TableSpec
) -> bool:
    """Return whether a failed attempt created a table or a reset emptied it, and no run was published to it since."""
    if spec.path in SHARED_TABLES or is_published(table, job, state, branch, target, spec.path):
        return False
    return (not is_of_another(table, job) or table.version() == 0) and not table_files(path, table)


def _files(warehouse: str, run: CommittedRun, due: Due, reports: Reports) -> list[StagedFile]:
    """Return a run's files for a table. Files staged for the table of another branch are first copied to this table."""
    files = _staged(run, due, reports)
    staged_for = run.spec.binding.tables.get(due.target, due.table)
    if staged_for.path != due.table.path:
        folder, branch = Folder(table_path(warehouse, due.table.path)), Folder(table_path(warehouse, staged_for.path))
        for file in files:
            folder.copy_from(branch, file.path, file.bytes)
    return files


def _staged(run: CommittedRun, due: Due, reports: Reports) -> list[StagedFile]:
    return [file for report in reports(run) for file in report.files if file.target == due.target]


class FileRefusals:
    """The checks that `run` makes while it publishes, stages and restores. Each table is opened once for all checks."""

    def __init__(
        self,
        warehouse: str,
        job: Job,
        state: JobState,
        check_published: Callable[[str, JobState, str], None],
        feed_now: Callable[[str], Feed],
        state_now: Callable[[str], JobState],
        reports: Reports,
    ) -> None:
        """``check_published`` compares a branch's tables with the ledger. ``feed_now`` and ``state_now`` read ledgers again."""
        self._warehouse, self._job, self._state = warehouse, job, state
        self._check_published, self._feed_now, self._state_now = check_published, feed_now, state_now
        self._reports, self._open = reports, cache(open_table)

    def check_published(self, branch: str) -> None:
        """Check the journal, and the landings and runs that are published or still to be published. Raises as `run` would.

        Two things are accepted: a table that is gone, if `run` can publish it again from staged files, and a table
        that an interrupted `republish` has created again.
        """
        self._check_logs()
        for due in due_tables(self._state, branch):
            table = self._open(self._path(due.table.path))
            where = (self._job.name, self._state, branch, due.target, due.table.path)
            if table is None:
                self._check_not_lost(branch, due)
            elif due.publications and due.restart.epoch == 1:
                check_claim(self._warehouse, table, *where)
                if not is_published(table, *where):
                    self._check_not_lost(branch, due, "was created anew, and has no rows yet")
        path = self._path(JOURNAL)
        if (journal := self._open(path)) is not None:
            check_layout(path, table_schema(journal).names)
        self._check_published(self._job.name, self._state, branch)

    def check_ledgers(self, branch: str) -> None:
        """Raise `CheckpointError` (76) if a log has landings, or a table has publications, that the ledgers lack."""
        self._check_logs()
        check_ledger(self._warehouse, self._job.name, self._state, branch, self._state_now)

    def check_run(self, spec: RunSpec) -> None:
        """Raise the error with which a planned run would stop because of its tables (76), state (74, 76) or schedules (76)."""
        for target, table in spec.binding.tables.items():
            self._check_columns(spec, target, table)
        check_has_state(self._state, spec.parent)
        if (parent := self._state.find_run(spec.parent)) is not None:
            check_state(self._warehouse, self._state, parent, self._state_now, self._reports)
        self._check_schedules(spec)

    def _check_not_lost(self, branch: str, due: Due, change: str = "is gone") -> None:
        check_not_lost(self._warehouse, self._job.name, self._state, branch, due, self._reports, change)

    def _path(self, table: str) -> str:
        return table_path(self._warehouse, table)

    def _check_logs(self) -> None:
        feed = self._job.feed
        name, generation = feed.definition.feed, feed.definition.generation
        last_landing = max(
            (landing.number for landing in feed.landings if landing.generation == generation),
            default=feed.definition.kept,
        )
        for topic in feed.definition.logs:
            path = self._path(log_path(name, topic))
            table = None if topic in feed.definition.source_offsets else self._open(path)
            if table is None:
                continue
            check_log_claim(path, table, feed.ledger, name)
            published = table.transaction_version(log_id(feed.ledger, name, generation)) or 0
            # If the feed has more landings by now, another process has landed them.
            if published > last_landing and len(self._feed_now(name).landings) == len(feed.landings):
                raise more_landings(path, name, published, last_landing)

    def _check_columns(self, spec: RunSpec, target: str, table: TableSpec) -> None:
        path, wanted = self._path(table.path), arrow_schema(table.columns)
        existing = self._open(path)
        if existing is None or _types(table_schema(existing)) == _types(wanted):
            return
        where = (self._job.name, self._state, spec.branch, target, table.path)
        is_known = table.path in SHARED_TABLES or is_published(existing, *where)
        # An empty table to which nothing was published gets its columns from the run. So it is not refused for other columns.
        if is_known or table_files(path, existing):
            create_table(path, wanted, table.partition_by)  # checks the columns of an existing table

    def _check_schedules(self, spec: RunSpec) -> None:
        """Raise `CheckpointError` (76) if a processor no longer has the method that one of its schedules calls."""
        parent = None if spec.parent is None else self._state.find_run(spec.parent)
        live = {
            (schedule["node"], schedule["method"])
            for report in (self._reports(parent) if parent else ())
            for schedule in report.state.get("schedules", ())
            if not schedule["is_cancelled"]
        }
        for part in self._job.code.topology.sub_topologies() if live else ():
            check_suppliers(part)
            for node in part.nodes:
                for method in sorted(method for name, method in live if name == node.name):
                    if isinstance(node, ProcessorNode) and not hasattr(node.supplier(), method):
                        raise method_is_gone(node.name, method)


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
