"""The checkpoint that a run resumes from, as blocks of the journal: no store has a table of its own here."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import CHANGELOG
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.governed.blocks import ROOT, block_path
from rewindow.tables.shared.checkpoint import Checkpoint, since_last_added
from rewindow.tables.shared.publications import Reports


def find_checkpoint(head: CommittedRun | None, basis: Sequence[CommittedRun], reports: Reports) -> Checkpoint:
    """Return the checkpoint after ``head``; an empty one for None. ``basis``: the runs to read, see `JobState.basis`."""
    if head is None:
        return Checkpoint({}, {})
    states = {(report.sub_topology, report.partition): report.state for report in reports(head)}
    stores: dict[tuple[str, int], tuple[str, ...]] = {}
    rows = size = 0
    for store in head.spec.binding.stores:
        target = f"{CHANGELOG}{store}"
        for run in since_last_added(basis, target):
            files = [file for report in reports(run) for file in report.files if file.target == target]
            for file in files:
                key = store, int(file.partition_values[PARTITION])
                path = f"{ROOT}{block_path(run.commit.attempt, target, file.path)}"
                stores[key] = (*stores.get(key, ()), path)
                rows, size = rows + file.rows, size + file.bytes
    return Checkpoint(states, stores, rows, size)
