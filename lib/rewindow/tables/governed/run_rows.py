"""Read the rows of one run of a target from its blocks in the journal, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.staged_files import TaskReport
from rewindow.engine.spark.errors import mapped
from rewindow.errors import StorageError
from rewindow.tables.governed.journal import SparkJournal, batches_of_block, block_path


def block_batches(
    journal: SparkJournal, attempt: str, target: str, reports: Sequence[TaskReport], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of what an attempt staged for a target, in the order of the reports.

    One query collects the blocks, still encoded. Raises `StorageError` (74) if the journal lacks one.
    """
    paths = [block_path(attempt, target, f.path) for report in reports for f in report.files if f.target == target]
    if not paths:
        return
    with mapped():
        found = journal.blocks([attempt]).where(F.col("path").isin(paths)).collect()
    data = {row["path"]: row["data"] for row in found}
    for path in paths:
        if path not in data:
            message = (
                f"the journal {journal.table} lacks {path}, which attempt {attempt} staged: restore it from a copy"
            )
            raise StorageError(message)
        yield from batches_of_block(pa.py_buffer(data[path]), names)
