"""What `run` would refuse only after it has begun, so that `plan`, `ls` and `status` say it before: nothing is changed.

Tables that a catalog governs are not looked at here: their refusals come from `run`.
"""

from __future__ import annotations

from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import RunSpec
from rewindow.control.plan.stored_format import check_layout
from rewindow.control.run import Job
from rewindow.errors import CheckpointError
from rewindow.streams.assembly import check_suppliers
from rewindow.streams.nodes import Node, ProcessorNode
from rewindow.tables.delta.claims import check_claim, check_log_claim, check_quarantine_claim, is_published
from rewindow.tables.delta.commit import create_table, open_table, table_path
from rewindow.tables.delta.content_hash import table_files
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_schema import arrow_schema
from rewindow.tables.shared.paths import JOURNAL, QUARANTINE, log_path
from rewindow.tables.shared.publications import SHARED_TABLES, due_tables, log_id, older_ledger
from rewindow.tables.shared.warehouse import Warehouse


def check_feed_tables(tables: Warehouse, feed: Feed) -> None:
    """Raise the `CheckpointError` (76) with which a feed's logs would not be published."""
    if not isinstance(tables, DeltaTables):
        return
    name, generation, ledger = feed.definition.feed, feed.definition.generation, feed.ledger
    known = max((one.number for one in feed.landings if one.generation == generation), default=feed.definition.kept)
    for topic in feed.definition.logs:
        path = table_path(tables.warehouse, log_path(name, topic))
        table = None if topic in feed.definition.source_offsets else open_table(path)
        if table is None:
            continue
        check_log_claim(path, table, ledger, name)
        published = table.transaction_version(log_id(ledger, name, generation)) or 0
        if published > known and len(tables.feed(name).landings) == len(feed.landings):  # otherwise `land` was faster
            raise older_ledger(path, name, published, known)
    path = table_path(tables.warehouse, QUARANTINE)
    if any((one.counts or {}).get("quarantined") for one in feed.landings) and (table := open_table(path)) is not None:
        check_quarantine_claim(path, table, ledger, name, range(generation + 1))


def check_own_tables(tables: Warehouse, job: str, state: JobState, branch: str) -> None:
    """Raise the `CheckpointError` (76) with which committed runs would not be published, or a run not be staged."""
    if not isinstance(tables, DeltaTables):
        return
    for due in due_tables(state, branch):
        table = open_table(table_path(tables.warehouse, due.table.path))
        if table is not None and due.publications and due.restart.epoch == 1:
            check_claim(tables.warehouse, table, job, state, branch, due.target, due.table.path)
    path = table_path(tables.warehouse, JOURNAL)
    if (journal := open_table(path)) is not None:
        check_layout(path, [field.name for field in journal.schema().fields])


def check_run(tables: Warehouse, job: Job, state: JobState, spec: RunSpec) -> None:
    """Raise the `CheckpointError` (76) with which a planned run would stop: in its tables, its state or its schedules."""
    if not isinstance(tables, DeltaTables):
        return
    for target, table in spec.binding.tables.items():
        path = table_path(tables.warehouse, table.path)
        existing = open_table(path)
        if existing is None:
            continue
        is_known = table.path in SHARED_TABLES or is_published(
            existing, job.name, state, spec.branch, target, table.path
        )
        if is_known or table_files(path, existing):  # otherwise the run gives it the columns that it needs
            create_table(path, arrow_schema(table.columns), table.partition_by)  # checks a table that exists
    check_has_state(state, spec.parent)
    _check_schedules(tables, job, state, spec)


def _check_schedules(tables: DeltaTables, job: Job, state: JobState, spec: RunSpec) -> None:
    """Raise `CheckpointError` (76) if a processor no longer has the method that one of its schedules calls."""
    parent = None if spec.parent is None else state.find_run(spec.parent)
    if parent is None:
        return
    live = {
        (one["node"], one["method"])
        for report in tables.reports(parent)
        for one in report.state.get("schedules", ())
        if not one["is_cancelled"]
    }
    for part in job.code.topology.sub_topologies() if live else ():
        check_suppliers(part)
        for node in part.nodes:
            for method in sorted(method for name, method in live if name == node.name):
                _check_method(node, method)


def _check_method(node: Node, method: str) -> None:
    if isinstance(node, ProcessorNode) and not hasattr(node.supplier(), method):
        message = (
            f"the checkpoint has a schedule of {node.name} that calls {method!r}, which is gone: keep the method, or "
            "start a new branch with --branch"
        )
        raise CheckpointError(message)
