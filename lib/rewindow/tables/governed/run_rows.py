"""Read the rows of one run of a target from its blocks in the journal, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rewindow.contracts.staged_files import TaskReport
from rewindow.tables.governed.blocks import batches_of_block, block_path
from rewindow.tables.governed.journal import SparkJournal


def block_batches(
    journal: SparkJournal, attempt: str, target: str, reports: Sequence[TaskReport], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of what an attempt staged for a target, in the order of the reports.

    Blocks come from memory or in one query, still encoded. Raises `StorageError` (74) if one is gone.
    """
    paths = [block_path(attempt, target, f.path) for report in reports for f in report.files if f.target == target]
    if not paths:
        return
    data = journal.block_data(paths)
    for path in paths:
        yield from batches_of_block(data[path], names)
