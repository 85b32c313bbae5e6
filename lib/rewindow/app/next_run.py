"""Decide the next run of a branch as `run` would, without running it: with what `run` would refuse only after it has begun.

Of tables that a catalog governs, those later refusals come from `run`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow as pa

from rewindow.app.readers import replayed_removed
from rewindow.config.load import load_feed
from rewindow.control.heartbeat import this_attempt
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_diff import changes_since
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.planner import Alive, UpToDate, is_accepted_code, plan_run
from rewindow.control.plan.spec import RunRequest, RunSpec, TableSpec
from rewindow.control.plan.stored_rows import check_layout
from rewindow.control.run import Job
from rewindow.errors import RewindowError, naming
from rewindow.streams.assembly import check_suppliers
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.schedules import method_is_gone
from rewindow.tables.delta.check_published import check_state
from rewindow.tables.delta.claims import check_claim, check_log_claim, is_published
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.feeds import more_landings
from rewindow.tables.delta.publish import check_not_lost
from rewindow.tables.delta.table_rows import table_files, table_schema
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import JOURNAL, log_path
from rewindow.tables.shared.publications import SHARED_TABLES, Due, due_tables, log_id
from rewindow.tables.shared.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class UpToDateButChanged(UpToDate):
    """Nothing to run, but the job differs from its checkpoint.

    Its next run accepts that; if ``needs_option``, only with `--accept-changes`, as this call had.
    """

    since: str
    changed: tuple[str, ...]
    needs_option: bool = False

    @property
    def next_accepts(self) -> str:
        """What the next run makes of the changes, as the end of a sentence."""
        option = " only with `--accept-changes`, because nothing was run that accepts it" if self.needs_option else ""
        return f"its next run accepts that{option}"

    def told(self) -> str:
        """Return the reason and the changes as text without a full stop."""
        changes = "; ".join(self.changed)
        return f"{self.reason}. The job has changed since the checkpoint of run {self.since}, and {self.next_accepts}: {changes}"


def next_run(tables: Warehouse, job: Job, state: JobState, request: RunRequest, alive: Alive) -> RunSpec | UpToDate:
    """Return the next run. Changes nothing. Raises what `run` would raise before it executes."""
    later = LaterRefusals(tables, job, state) if isinstance(tables, DeltaTables) else None
    with naming(JOB=job.name, FEED=job.feed.definition.feed):
        if later:
            later.check_published(request.branch)
        else:
            tables.check_published(job.name, state, request.branch, brief=True)
    decision = plan_run(state, job.feed, request, job.binding, this_attempt(), alive)
    if not isinstance(decision, UpToDate):
        tables.check_targets(decision)
        if later:
            later.check_run(decision)
    return decision


def with_all_reasons(root: Path, tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, with what else the user should know of the branch and the feed."""
    return _with_refused_landing(
        root, job, _with_removed(root, tables, job, request, _with_changes(tables, job, request, done))
    )


def _with_changes(tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, with the changes since the checkpoint that the next run will accept."""
    known = tables.state(job.name).branch(request.branch)
    changed = changes_since(known, job.binding)
    if not changed or known.head is None or known.is_sealed:
        return done
    needs_option = not is_accepted_code(known, job.binding, changed, request)
    return UpToDateButChanged(done.reason, known.head.spec.name, tuple(changed), needs_option)


def _with_removed(root: Path, tables: Warehouse, job: Job, request: RunRequest, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, and whether the branch has replayed rows of runs that another job no longer has."""
    feed = job.feed.definition.feed
    of = replayed_removed(root, tables, feed, tables.state(job.name).branch(request.branch).last_epoch)
    if not of:
        return done
    told = f"The branch has replayed rows of runs that {of} no longer has: `rewindow land {feed}` says how to land them again"
    return replace(done, reason=f"{done.reason}. {told}")


def _with_refused_landing(root: Path, job: Job, done: UpToDate) -> UpToDate:
    """Return why there is nothing to run, and what is wrong with the feed's file: nothing more is landed until it is repaired."""
    feed = job.feed.definition.feed
    try:
        load_feed(root, feed)
    except RewindowError as error:
        return replace(done, reason=f"{done.reason}. The next landing of {feed} is refused: {error}")
    return done


class LaterRefusals:
    """The checks that `run` makes while it publishes, stages and restores. Each table is opened once for all of them."""

    def __init__(self, tables: DeltaTables, job: Job, state: JobState) -> None:
        self._tables, self._job, self._state = tables, job, state
        self._open = cache(open_table)

    def check_published(self, branch: str) -> None:
        """Raise what `run` would raise for landings or runs that are published, or are to be, and for the journal.

        A table that is gone is not refused if `run` can publish it again from what was staged. The same holds for one that an
        interrupted `republish` has created anew.
        """
        self._check_logs()
        for due in due_tables(self._state, branch):
            table = self._open(self._path(due.table.path))
            where = (self._job.name, self._state, branch, due.target, due.table.path)
            if table is None:
                self._check_not_lost(branch, due)
            elif due.publications and due.restart.epoch == 1:
                check_claim(self._tables.warehouse, table, *where)
                if not is_published(table, *where):
                    self._check_not_lost(branch, due, "was created anew, and has no rows yet")
        path = self._path(JOURNAL)
        if (journal := self._open(path)) is not None:
            check_layout(path, table_schema(journal).names)
        self._tables.check_published(self._job.name, self._state, branch, early=True, brief=True)

    def check_run(self, spec: RunSpec) -> None:
        """Raise the error with which a planned run would stop: its tables (76), its state (74, 76), its schedules (76)."""
        for target, table in spec.binding.tables.items():
            self._check_columns(spec, target, table)
        check_has_state(self._state, spec.parent)
        if (parent := self._state.find_run(spec.parent)) is not None:
            check_state(self._tables.warehouse, self._state, parent, self._tables.state, self._tables.reports)
        self._check_schedules(spec)

    def _check_not_lost(self, branch: str, due: Due, what: str = "is gone") -> None:
        tables = self._tables
        check_not_lost(tables.warehouse, self._job.name, self._state, branch, due, tables.reports, what)

    def _path(self, table: str) -> str:
        return table_path(self._tables.warehouse, table)

    def _check_logs(self) -> None:
        feed = self._job.feed
        name, generation = feed.definition.feed, feed.definition.generation
        known = max((one.number for one in feed.landings if one.generation == generation), default=feed.definition.kept)
        for topic in feed.definition.logs:
            path = self._path(log_path(name, topic))
            table = None if topic in feed.definition.source_offsets else self._open(path)
            if table is None:
                continue
            check_log_claim(path, table, feed.ledger, name)
            published = table.transaction_version(log_id(feed.ledger, name, generation)) or 0
            # Otherwise another process has landed since.
            if published > known and len(self._tables.feed(name).landings) == len(feed.landings):
                raise more_landings(path, name, published, known)

    def _check_columns(self, spec: RunSpec, target: str, table: TableSpec) -> None:
        path, wanted = self._path(table.path), arrow_schema(table.columns)
        existing = self._open(path)
        if existing is None or _types(table_schema(existing)) == _types(wanted):
            return
        where = (self._job.name, self._state, spec.branch, target, table.path)
        is_known = table.path in SHARED_TABLES or is_published(existing, *where)
        if is_known or table_files(path, existing):  # otherwise the run gives it the columns that it needs
            create_table(path, wanted, table.partition_by)  # of a table that exists, it checks the columns

    def _check_schedules(self, spec: RunSpec) -> None:
        """Raise `CheckpointError` (76) if a processor no longer has the method that one of its schedules calls."""
        parent = None if spec.parent is None else self._state.find_run(spec.parent)
        live = {
            (one["node"], one["method"])
            for report in (self._tables.reports(parent) if parent else ())
            for one in report.state.get("schedules", ())
            if not one["is_cancelled"]
        }
        for part in self._job.code.topology.sub_topologies() if live else ():
            check_suppliers(part)
            for node in part.nodes:
                for method in sorted(method for name, method in live if name == node.name):
                    if isinstance(node, ProcessorNode) and not hasattr(node.supplier(), method):
                        raise method_is_gone(node.name, method)


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
