"""Read the rows of one run of a target, batch by batch, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.branches import CommittedRun
from rewindow.tables.delta.content_hash import read_batches
from rewindow.tables.delta.files import Folder


def staged_batches(
    root: str, reports: Sequence[TaskReport], target: str, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the rows that were staged for a target below a folder. Raises `StorageError` (74)."""
    folder = Folder(root)
    for report in reports:
        for file in report.files:
            if file.target == target:
                for batch in folder.read_batches(file.path, list(names)):
                    yield batch.select(list(names))


def run_batches(
    root: str, run: CommittedRun, reports: Sequence[TaskReport], target: str, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a committed run's rows. OPTIMIZE and VACUUM may have replaced its files: then the table has them."""
    folder = Folder(root)
    files = [file for report in reports for file in report.files if file.target == target]
    if all(folder.facts(file.path) is not None for file in files):
        yield from staged_batches(root, reports, target, names)
        return
    for batch in read_batches(root, where=pc.field("_run") == run.spec.run):
        yield batch.select(list(names))
