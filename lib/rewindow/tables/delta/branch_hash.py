"""The content hashes of a branch (L2): of each output table, each store and the metrics.

For a store the current keys and values count, for metrics the totals and extrema over the branch. The number of runs does
not: one run and a thousand runs over the same epochs have the same hashes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG, OUTPUT
from rewindow.tables.delta.checkpoints import changelog_files
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.content_hash import content_hash, read_file, read_rows
from rewindow.tables.delta.files import Folder
from rewindow.tables.shared.arrow_schema import arrow_schema
from rewindow.tables.shared.content_hash import hash_rows
from rewindow.tables.shared.paths import METRICS
from rewindow.tables.shared.publications import Reports
from rewindow.tables.shared.store_rows import current_rows

_MEASURE = ("sub_topology", "level", "node", "partition", "name", "reason")
_SUMS = (("count", "sum"), ("total", "sum"), ("minimum", "min"), ("maximum", "max"))


def branch_hashes(warehouse: str, state: JobState, name: str, reports: Reports) -> dict[str, str]:
    """Return the content hash of each target of a branch, by target. Everything must be published.

    A dropped branch has no hashes; neither has a store whose state was forgotten.

    Raises `StorageError` (74) if a table cannot be read or a changelog was altered.
    """
    branch = state.branch(name)
    if branch.head is None or not branch.is_kept:
        return {}
    hashes = {}
    for target, table in sorted(branch.tables.items()):
        if target.startswith(OUTPUT):
            hashes[target] = content_hash(table_path(warehouse, table.path))
        elif target.startswith(CHANGELOG) and state.has_state(branch.head.spec.run):
            store = target.removeprefix(CHANGELOG)
            basis = state.basis(branch.head.spec.run)
            hashes[target] = hash_rows(store_rows(warehouse, branch.head, basis, store, reports))
        elif table.path == METRICS:
            hashes[target] = hash_rows(metric_totals(warehouse, branch.runs))
    return hashes


def store_rows(
    warehouse: str, head: CommittedRun, basis: Sequence[CommittedRun], store: str, reports: Reports
) -> pa.Table:
    """Return a store's current keys and values after a run, with their partition. ``basis``: see `JobState.basis`."""
    target = f"{CHANGELOG}{store}"
    binding = head.spec.binding
    table = binding.tables[target]
    path, schema = table_path(warehouse, table.path), arrow_schema(table.columns)
    files = changelog_files(path, target, basis, reports)
    rows = pa.concat_tables([schema.empty_table(), *(read_file(Folder(path), file, schema) for file in files)])
    return current_rows(rows, head, store, reports(head))


def metric_totals(warehouse: str, chain: Sequence[CommittedRun]) -> pa.Table:
    """Return the metrics of a chain of runs: counts and totals added up, extrema taken; by task, node, name, reason."""
    head = chain[-1].spec
    runs = pa.array([run.spec.run for run in chain], pa.int64())
    rows = read_rows(table_path(warehouse, METRICS), where=(pc.field("job") == head.job) & pc.field("_run").isin(runs))
    return rows.group_by(list(_MEASURE), use_threads=False).aggregate(list(_SUMS))
