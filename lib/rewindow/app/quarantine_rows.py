"""The rows of the quarantine, without those of landings that a later generation of their feed replaced.

The table keeps such rows, and no column tells them apart. Each landing names its own files in the ledger of its feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.control.ingest.feed_progress import landing_bodies
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.table_rows import TableFile, read_file, rows_of, table_files, table_schema
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import QUARANTINE


@dataclass(frozen=True)
class Quarantine:
    """The files of a warehouse's quarantine: those with rows, and those of landings that were replaced."""

    folder: Folder
    schema: pa.Schema
    files: Sequence[TableFile]
    replaced: Sequence[TableFile]

    def batches(self, where: pc.Expression | None = None) -> Iterator[pa.Table]:
        """Yield the rows, or those that fulfil a condition, a file at a time. Raises `StorageError` (74) for a lost file."""
        for file in self.files:
            rows = read_file(self.folder, file, self.schema)
            yield rows if where is None else rows.filter(where)

    def first(
        self, limit: int, order: Iterable[str], *, last: bool, where: pc.Expression | None = None
    ) -> tuple[int, pa.Table]:
        """Return the number of rows, and the ``limit`` first ones in an order of columns, or the last ones of it."""
        count, kept = 0, self.schema.empty_table()
        by = [(name, "descending" if last else "ascending") for name in order]
        for rows in self.batches(where):
            count += rows.num_rows
            kept = pa.concat_tables([kept, rows]).sort_by(by).slice(0, limit)
        return count, kept.take(pa.array(range(kept.num_rows - 1, -1, -1), pa.int64())) if last else kept

    @property
    def replaced_rows(self) -> int:
        """The number of rows of replaced landings."""
        return sum(rows_of(self.folder, file) for file in self.replaced)


def open_quarantine(tables: DeltaTables, feeds: Iterable[str]) -> Quarantine | None:
    """Return the quarantine without the replaced landings of some feeds; None if there is none."""
    path = table_path(tables.warehouse, QUARANTINE)
    table = open_table(path)
    if table is None:
        return None
    gone = {name for feed in feeds for name in _replaced(tables, feed)}
    files = table_files(path, table)
    return Quarantine(
        Folder(path),
        table_schema(table),
        [file for file in files if file.path not in gone],
        [file for file in files if file.path in gone],
    )


def _replaced(tables: DeltaTables, feed: str) -> set[str]:
    """Return the files that landings put into the quarantine and that no landing of the present generation has."""
    rows = tables.feed_rows(feed)
    if sum(row.kind == GENERATION for row in rows) < 2:
        return set()
    return _files(row.body for row in rows if row.kind == LANDING) - _files(landing_bodies(rows))


def _files(bodies: Iterable[Mapping[str, Any]]) -> set[str]:
    return {file["path"] for body in bodies for files in body["quarantine"].values() for file in files}
