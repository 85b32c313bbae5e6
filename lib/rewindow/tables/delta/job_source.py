"""Another job's output as a source: its epochs are what arrives, one landing each, with the watermark of the epoch.

Only the published branch counts. A producer whose landed epochs are no longer the same runs' is another source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from rewindow.contracts.ingest import LogSpec, Piece, SourceLook
from rewindow.errors import SourceError
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.drift import Digest
from rewindow.tables.delta.features import check_writable
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.foreign_log import full_path
from rewindow.tables.delta.run_drift import difference_from_runs
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.job_source import altered, new_epochs

JOB = "job"
"""The kind of position that such sources have: the last epoch that is landed, and the run that made it."""


def look_at_output(
    warehouse: str, spec: LogSpec, position: Mapping[str, Any] | None, digest: Digest | None = None
) -> SourceLook:
    """Return a job's output as it is now, compared with the landed position (None: nothing is landed).

    Raises `SourceError` (66) if the job never ran, has no such output, or was rewound behind the landed position, and
    `StorageError` (74) if rows that are not landed yet are not those that were published. ``digest``: see `difference_from_runs`.
    """
    found = new_epochs(DeltaTables(warehouse), spec, position)
    path = table_path(warehouse, found.table.path)
    fresh, schema, last = _files(path, position["epoch"] if position else 0)
    if (what := difference_from_runs(path, found.target, found.runs, found.state, digest)) is not None:
        raise altered(found.job, path, what)
    epochs = tuple(replace(epoch, may_have_rows=last is None or epoch.number <= last) for epoch in found.epochs)
    return SourceLook({}, fresh, schema=found.marked(schema), epochs=epochs, on_hold=found.on_hold, keys=found.keys)


def _files(path: str, landed: int) -> tuple[tuple[Piece, ...], str, int | None]:
    """Return a table's files, its schema, and the last epoch with rows, None if unknown.

    Check the files with epochs that are not landed yet: they are read next.
    """
    table = open_table(path)
    if table is None:
        message = f"the table {path} is gone: run its job again, which creates it"
        raise SourceError(message)
    check_writable(path, table)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    paths = actions["path"]
    lasts = actions.get("max._epoch", [None] * len(paths))
    folder = Folder(path)
    for name, last in zip(paths, lasts, strict=True):
        if last is None or last > landed:
            folder.check(unquote(name))  # Spark checks pages, but neither their headers nor the footer
    last = None if None in lasts else max(lasts, default=0)
    return tuple(Piece(full_path(path, name)) for name in sorted(paths)), table.schema().to_json(), last
