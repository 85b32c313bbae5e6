"""The formats that a warehouse's stored rows state, and whether this version reads them. Nothing is changed.

Ledgers and the journal state the format of each row. All other tables are read only as far as a ledger names their files, so
its format is theirs; a metrics table of format 1 is told by its columns. In a catalog, ledgers, journal and metrics are rows of
one table, each of which states its format.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from rewindow.app.open_project import OpenProject
from rewindow.control.health.phrases import counted
from rewindow.control.plan.stored_rows import FORMAT, check_layout
from rewindow.errors import CheckpointError, StorageError
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.table_rows import table_files
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS

if TYPE_CHECKING:
    from rewindow.tables.governed.warehouse import CatalogTables

OLDEST = 1
"""The format of 0.1, whose rows do not state it."""


class Fit(StrEnum):
    """What this version makes of a table's format."""

    READ = "read as is"
    OLDER = "refused: written by an older version"
    NEWER = "refused: written by a newer version"
    ABSENT = "does not exist yet"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of rewindow's own: the number of its rows by format, and the jobs or feeds that have rows in other formats.

    Rows that state no format have None: their table is told by its columns.
    """

    table: str
    path: str
    fit: Fit
    rows: Mapping[int | None, int]
    refused: Sequence[str] = ()


def stored_tables(project: OpenProject) -> list[StoredTable]:
    """Return the tables that have a format. Reads every row of the ledgers and the journal; in a catalog, Spark does.

    Raises `ConfigError` (78) if there is no Spark session, `StorageError` (74) for a table that cannot be read.
    """
    if not isinstance(project.tables, DeltaTables):
        return _governed(cast("CatalogTables", project.tables))
    texts = {LANDINGS: "body", RUNS: "body", JOURNAL: "report", METRICS: None}
    return [_look(table, table_path(project.warehouse, table), column) for table, column in texts.items()]


def _look(name: str, path: str, column: str | None) -> StoredTable:
    table = open_table(path)
    if table is None:
        return StoredTable(name, path, Fit.ABSENT, {})
    files = table_files(path, table)
    rows = sum(file.rows or 0 for file in files)
    try:
        check_layout(path, [field.name for field in table.schema().fields])
    except CheckpointError:
        return StoredTable(name, path, Fit.OLDER, {None if column is None else OLDEST: rows})
    if column is None:
        return StoredTable(name, path, Fit.READ, {None: rows})
    found: Counter[int] = Counter()
    refused = set()
    for file in files:
        for stated in _formats(path, file.path, column):
            found[stated] += 1
            if stated != FORMAT:
                refused.add(next(iter(file.partition.values()), name))
    return StoredTable(name, path, _fit(found), dict(sorted(found.items())), sorted(refused))


def _fit(found: Collection[int]) -> Fit:
    """Return what this version makes of a table whose rows state some formats."""
    newer, older = any(stated > FORMAT for stated in found), any(stated < FORMAT for stated in found)
    return Fit.NEWER if newer else Fit.OLDER if older else Fit.READ


def _governed(tables: CatalogTables) -> list[StoredTable]:
    """Return the parts of the table of rewindow's own rows, by the names that they have as tables of files."""
    from rewindow.tables.governed.own_rows import stated_formats  # noqa: PLC0415 - Spark only where it is needed

    own, parts = tables.own.table, {name: list[tuple[str, int, int]]() for name in (LANDINGS, RUNS, JOURNAL, METRICS)}
    if not own.exists():
        return [StoredTable(name, str(own.name), Fit.ABSENT, {}) for name in parts]
    for one in stated_formats(own):
        if not one.stated.isdigit():
            raise StorageError(
                "own-rows-format-unknown",
                "{table} has {rows} of {part} (kind {kind}) of format {format}, which no version wrote: "
                "RESTORE an earlier version of the table",
                table=own.name,
                rows=counted(one.rows, "row"),
                part=one.name,
                kind=one.kind,
                format=one.stated or "unknown",
            )
        parts[one.part].append((one.name, int(one.stated), one.rows))
    return [_of_part(name, str(own.name), found) for name, found in parts.items()]


def _of_part(part: str, path: str, found: Sequence[tuple[str, int, int]]) -> StoredTable:
    rows: Counter[int] = Counter()
    for _name, stated, count in found:
        rows[stated] += count
    refused = {name for name, stated, _count in found if stated != FORMAT}
    return StoredTable(part, path, _fit(rows), dict(sorted(rows.items())), sorted(refused))


def _formats(path: str, file: str, column: str) -> Iterator[int]:
    """Yield the format that each row of a file states."""
    for text in Folder(path).read_table(file, [column])[column].to_pylist():
        try:
            stated = json.loads(text).get("format", OLDEST)
        except (ValueError, AttributeError) as error:
            raise StorageError(
                "own-row-not-json",
                "{table} has a row in {file} that is no JSON object: restore the table from a copy",
                table=path,
                file=file,
            ) from error
        if not isinstance(stated, int):
            raise StorageError(
                "own-row-format-unknown",
                "{table} has a row in {file} of format {format!r}, which no version wrote: restore the "
                "table from a copy",
                table=path,
                file=file,
                format=stated,
            )
        yield stated
