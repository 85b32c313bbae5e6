"""Read the rows of one run of a target, batch by batch, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import existing_table
from rewindow.tables.delta.content_hash import read_file, table_files, table_schema
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
    """Yield some columns of a committed run's rows. OPTIMIZE and VACUUM may have replaced its files: then the table has them.

    Raises `StorageError` (74) if neither has all of them.
    """
    folder = Folder(root)
    staged = [file for report in reports for file in report.files if file.target == target]
    if all(folder.facts(file.path) is not None for file in staged):
        yield from staged_batches(root, reports, target, names)
        return
    found = pa.concat_tables(_published(root, run.spec.run))
    if found.num_rows != sum(file.rows for file in staged):
        message = f"{root} lacks rows of run {run.spec.name}: publish them again, `rewindow republish {run.spec.job}`"
        raise StorageError(message)
    yield from found.select(list(names)).to_batches()


def _published(root: str, run: int) -> Iterator[pa.Table]:
    """Yield the rows of a run from the table's files that may have some."""
    table = existing_table(root)
    schema = table_schema(table)
    yield schema.empty_table()
    for file in table_files(root, table):
        if (file.first_run or 0) <= run <= (file.last_run or run):
            yield read_file(Folder(root), file, schema).filter(pc.field("_run") == run)
