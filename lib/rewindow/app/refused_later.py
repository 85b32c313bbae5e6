"""What `run` would refuse only after it has begun, so that `plan`, `ls` and `status` say it before: nothing is changed.

Tables that a catalog governs are not looked at here: their refusals come from `run`.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import RunSpec, TableSpec
from rewindow.control.plan.stored_format import check_layout
from rewindow.control.run import Job
from rewindow.streams.assembly import check_suppliers
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.schedules import method_is_gone
from rewindow.tables.delta.check_state import check_state
from rewindow.tables.delta.claims import check_claim, check_log_claim, is_published
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.content_hash import table_files, table_schema
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.lost_landings import more_landings
from rewindow.tables.delta.publish import check_not_lost
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_schema import arrow_schema
from rewindow.tables.shared.paths import JOURNAL, log_path
from rewindow.tables.shared.publications import SHARED_TABLES, Due, due_tables, log_id


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
