"""The formats that a warehouse's stored rows state, and whether this version reads them. Nothing is changed.

Ledgers and the journal state the format of each row. All other tables are read only as far as a ledger names their files, so
its format is theirs; a metrics table of format 1 is told by its columns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindow.app.project import Project
from rewindow.control.plan.stored_format import FORMAT, check_layout
from rewindow.errors import CheckpointError, ConfigError, StorageError
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.content_hash import table_files
from rewindow.tables.delta.files import Folder
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS

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
    """A table of rewindow's own: the number of its rows by format, and the jobs or feeds that have rows in other formats."""

    table: str
    path: str
    fit: Fit
    rows: Mapping[int, int]
    refused: Sequence[str] = ()


def stored_tables(project: Project) -> list[StoredTable]:
    """Return the tables that state a format. Reads every row of the ledgers and the journal.

    Raises `ConfigError` (78) for a governed warehouse, `StorageError` (74) for a table that cannot be read.
    """
    if project.target.catalog is not None:
        message = (
            f"`upgrade` reads tables without Spark, but target {project.target.target!r} has `commit: spark`. Every "
            "command on it refuses rows of another format: try `rewindow plan JOB`"
        )
        raise ConfigError(message)
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
        return StoredTable(name, path, Fit.OLDER, {OLDEST: rows})
    if column is None:  # the rows do not state their format, and the columns are those of the current one
        return StoredTable(name, path, Fit.READ, {FORMAT: rows})
    found: Counter[int] = Counter()
    refused = set()
    for file in files:
        for stated in _formats(path, file.path, column):
            found[stated] += 1
            if stated != FORMAT:
                refused.add(next(iter(file.partition.values()), name))
    newer, older = any(stated > FORMAT for stated in found), any(stated < FORMAT for stated in found)
    return StoredTable(
        name,
        path,
        Fit.NEWER if newer else Fit.OLDER if older else Fit.READ,
        dict(sorted(found.items())),
        sorted(refused),
    )


def _formats(path: str, file: str, column: str) -> Iterator[int]:
    """Yield the format that each row of a file states."""
    for text in Folder(path).read_table(file, [column])[column].to_pylist():
        try:
            stated = json.loads(text).get("format", OLDEST)
        except (ValueError, AttributeError) as error:
            message = f"{path} has a row in {file} that is no JSON object: restore the table from a copy"
            raise StorageError(message) from error
        if not isinstance(stated, int):
            message = f"{path} has a row in {file} of format {stated!r}, which no version wrote: restore the table from a copy"
            raise StorageError(message)
        yield stated
