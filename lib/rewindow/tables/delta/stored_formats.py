"""The formats of the rows in rewindow's own tables, in a warehouse of files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from rewindow.control.plan.stored_rows import FORMAT, check_layout
from rewindow.errors import CheckpointError, StorageError
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import open_table, table_path
from rewindow.tables.delta.table_rows import table_files
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS
from rewindow.tables.shared.stored_formats import OLDEST, Fit, StoredTable, fit_of


def stored_tables(warehouse: str) -> list[StoredTable]:
    """Return the tables whose rows have a format. Raises `StorageError` (74) for a table that cannot be read."""
    texts = {LANDINGS: "body", RUNS: "body", JOURNAL: "report", METRICS: None}
    return [_look(table, table_path(warehouse, table), column) for table, column in texts.items()]


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
    formats: Counter[int] = Counter()
    refused = set()
    for file in files:
        for stated in _formats(path, file.path, column):
            formats[stated] += 1
            if stated != FORMAT:
                refused.add(next(iter(file.partition.values()), name))
    return StoredTable(name, path, fit_of(formats), dict(sorted(formats.items())), sorted(refused))


def _formats(path: str, file: str, column: str) -> Iterator[int]:
    """Yield the format that each row of a file states."""
    for text in Folder(path).read_table(file, [column])[column].to_pylist():
        try:
            stated = json.loads(text).get("format", OLDEST)
        except (ValueError, AttributeError) as error:
            raise StorageError(
                "stored-row-not-json",
                "{path} has a row in {file} that is not a JSON object: restore the table from a copy",
                path=path,
                file=file,
            ) from error
        if not isinstance(stated, int):
            raise StorageError(
                "stored-row-format-unknown",
                "{path} has a row in {file} of format {format!r}, which no version wrote: restore the "
                "table from a copy",
                path=path,
                file=file,
                format=stated,
            )
        yield stated
