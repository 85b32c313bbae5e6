"""Compare tables of files: key by key, or by the rows that were staged for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.spec import CHANGELOG
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.delta.content_hash import count_rows, read_batches
from rewindow.tables.delta.diff_partitions import partition_pairs
from rewindow.tables.delta.files import Folder
from rewindow.tables.shared.content_hash import sorted_rows
from rewindow.tables.shared.diff import TableDiff, check_keys, compare_pairs


def compare_tables(
    first: str, second: str, keys: Sequence[str], *, epochs: tuple[int, int], samples: int = 5
) -> TableDiff:
    """Compare the rows of two output tables with ``epochs[0] < _epoch <= epochs[1]``.

    One partition of the keys is in memory at a time. Raises `UsageError` (2) if the tables have different keys.
    """
    after, through = epochs
    is_compared = (pc.field("_epoch") > after) & (pc.field("_epoch") <= through)
    one, other = (read_batches(path, where=is_compared) for path in (first, second))
    check_keys(one.schema, other.schema, keys)
    rows = max(count_rows(path) for path in (first, second))
    with closing(partition_pairs(one, other, keys, rows)) as pairs:  # removes its temporary files even after an error
        return compare_pairs(pairs, keys, samples=samples)


def unstored_partition(target: str) -> list[str]:
    """Return the column that only some of the files of a target have: those of older changelogs are in its directories."""
    return [PARTITION] if target.startswith(CHANGELOG) else []


def staged_rows(root: str, reports: Sequence[TaskReport], target: str) -> pa.Table | None:
    """Return the rows that were staged for a target, in total order; None if there are none or a file is gone."""
    folder = Folder(root)
    files: list[StagedFile] = [file for report in reports for file in report.files if file.target == target]
    if not files or any(folder.facts(file.path) is None for file in files):
        return None
    return sorted_rows(pa.concat_tables([folder.read_table(file.path) for file in files]))
