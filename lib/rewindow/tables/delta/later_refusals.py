"""What a run over files would refuse only after it has begun, so that `plan` can say it before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyarrow as pa

from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import RunSpec, TableSpec
from rewindow.control.plan.stored_rows import check_layout
from rewindow.control.run import Job
from rewindow.streams.assembly import check_suppliers
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.task_schedules import method_is_gone
from rewindow.tables.delta.check_published import check_state
from rewindow.tables.delta.claims import check_claim, check_log_claim, is_published
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.log_tables import more_landings
from rewindow.tables.delta.publish import check_not_lost
from rewindow.tables.delta.table_rows import table_files, table_schema
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import JOURNAL, log_path
from rewindow.tables.shared.publications import SHARED_TABLES, Due, Reports, due_tables, log_id


class FileRefusals:
    """The checks that `run` makes while it publishes, stages and restores. Each table is opened once for all of them."""

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
        """``check_published`` compares a branch's tables with the ledger; ``feed_now``, ``state_now`` read ledgers again."""
        self._warehouse, self._job, self._state = warehouse, job, state
        self._check_published, self._feed_now, self._state_now = check_published, feed_now, state_now
        self._reports, self._open = reports, cache(open_table)

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
                check_claim(self._warehouse, table, *where)
                if not is_published(table, *where):
                    self._check_not_lost(branch, due, "was created anew, and has no rows yet")
        path = self._path(JOURNAL)
        if (journal := self._open(path)) is not None:
            check_layout(path, table_schema(journal).names)
        self._check_published(self._job.name, self._state, branch)

    def check_run(self, spec: RunSpec) -> None:
        """Raise the error with which a planned run would stop: its tables (76), its state (74, 76), its schedules (76)."""
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
            # Otherwise another process has landed since.
            if published > last_landing and len(self._feed_now(name).landings) == len(feed.landings):
                raise more_landings(path, name, published, last_landing)

    def _check_columns(self, spec: RunSpec, target: str, table: TableSpec) -> None:
        path, wanted = self._path(table.path), arrow_schema(table.columns)
        existing = self._open(path)
        if existing is None or _types(table_schema(existing)) == _types(wanted):
            return
        where = (self._job.name, self._state, spec.branch, target, table.path)
        is_known = table.path in SHARED_TABLES or is_published(existing, *where)
        # Otherwise the run gives it the columns that it needs.
        if is_known or table_files(path, existing):
            create_table(path, wanted, table.partition_by)  # of a table that exists, it checks the columns

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
