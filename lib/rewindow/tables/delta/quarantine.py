"""The quarantine as files. A feed's landing ledger names each landing's files, so those of replaced landings are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.control.ingest.feed_progress import landing_bodies
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.ingest.protocols import LostRows
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import DamagedFileError
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import open_table
from rewindow.tables.delta.table_rows import (
    TableFile,
    column_bounds,
    may_have,
    read_file,
    rows_of,
    table_files,
    table_schema,
)
from rewindow.tables.shared.quarantine import IN_ORDER, Chosen


@dataclass(frozen=True)
class FileQuarantine:
    """The files of a warehouse's quarantine. ``files``: the files to read. ``replaced``: the files of replaced landings.

    ``names``: for each file, the first and the last name of a feed or job in it. ``lost``: see `Quarantine`.
    """

    folder: Folder
    schema: pa.Schema
    files: Sequence[TableFile]
    replaced: Sequence[TableFile]
    names: Mapping[str, tuple[str | None, str | None]]
    lost: list[LostRows] = field(default_factory=list)

    def batches(self, chosen: Chosen) -> Iterator[pa.Table]:
        """Yield the chosen rows, file by file. Lost files are left out: no command can restore lost files of landings."""
        conditions = [*_conditions(chosen)]
        self.lost.clear()
        for file in self.files:
            if chosen.name is not None and not may_have(self.names.get(file.path, (None, None)), [chosen.name]):
                continue
            try:
                rows = read_file(self.folder, file, self.schema)
            except DamagedFileError:
                self.lost.append(LostRows(self.folder.full_path(file.path), file.rows or 0))
                continue
            yield rows.filter(reduce(and_, conditions)) if conditions else rows

    def first(self, chosen: Chosen, limit: int, *, last: bool) -> tuple[int, pa.Table]:
        """Return the number of chosen rows, and the first (``last``: the last) ``limit`` of them in the order `IN_ORDER`."""
        count, kept = 0, self.schema.empty_table()
        by = [(name, "descending" if last else "ascending") for name in IN_ORDER]
        for rows in self.batches(chosen):
            count += rows.num_rows
            kept = pa.concat_tables([kept, rows]).sort_by(by).slice(0, limit)
        return count, kept.take(pa.array(range(kept.num_rows - 1, -1, -1), pa.int64())) if last else kept

    @property
    def replaced_rows(self) -> int:
        """The number of rows of replaced landings."""
        return sum(rows_of(self.folder, file) for file in self.replaced)


def open_quarantine(path: str, ledgers: Iterable[Sequence[LedgerRow]]) -> FileQuarantine | None:
    """Return the quarantine without rows of replaced landings; None if there is no quarantine.

    ``ledgers``: the rows of the landing ledger of each feed.
    """
    table = open_table(path)
    if table is None:
        return None
    gone = {name for rows in ledgers for name in _replaced(rows)}
    files = table_files(path, table)
    return FileQuarantine(
        Folder(path),
        table_schema(table),
        [file for file in files if file.path not in gone],
        [file for file in files if file.path in gone],
        column_bounds(table, "name"),
    )


def _replaced(rows: Sequence[LedgerRow]) -> set[str]:
    """Return the quarantine files that were added only by landings of a feed's earlier generations."""
    if sum(row.kind == GENERATION for row in rows) < 2:
        return set()
    return _files(row.body for row in rows if row.kind == LANDING) - _files(landing_bodies(rows))


def _files(bodies: Iterable[Mapping[str, Any]]) -> set[str]:
    return {file["path"] for body in bodies for files in body["quarantine"].values() for file in files}


def _conditions(chosen: Chosen) -> Iterator[pc.Expression]:
    if chosen.name is not None:
        yield pc.field("name") == chosen.name
    if chosen.is_landing:
        yield pc.field("node").is_null()
    if chosen.runs is not None:
        yield pc.field("_run").isin(pa.array(list(chosen.runs), pa.int64()))
    if chosen.nodes is not None:
        yield pc.field("node").isin(pa.array(list(chosen.nodes), pa.string()))
    if chosen.times is not None:
        yield (pc.field("timestamp") >= chosen.times[0]) & (pc.field("timestamp") <= chosen.times[1])
    for text in chosen.texts:
        yield pc.match_substring(pc.field("record"), text)
