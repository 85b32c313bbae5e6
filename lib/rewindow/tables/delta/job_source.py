"""Another job's output as a source: its epochs are what arrives, one landing each, with the watermark of the epoch.

Only the published branch counts. A producer whose landed epochs are no longer the same runs' is another source.

Before epochs are landed, their rows are counted in the output. That costs the table's Delta log and the sizes of the files with
rows of these runs. Files are read only if something else than these runs has written some of their rows, as UPDATE, DELETE and
OPTIMIZE do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.compute as pc

from rewindow.contracts.ingest import LogSpec, Piece, SourceLook
from rewindow.control.plan.spec import add_digests
from rewindow.tables.delta.check_published import lacking
from rewindow.tables.delta.commit import added_files, check_writable, existing_table, open_table, table_path
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.run_rows import run_counts
from rewindow.tables.delta.source_table import full_path
from rewindow.tables.delta.table_rows import file_batches, table_files, table_schema
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.drift import difference_of
from rewindow.tables.shared.job_source import altered, new_epochs, output_gone
from rewindow.tables.shared.paths import staged_by

if TYPE_CHECKING:
    from rewindow.control.plan.job_state import CommittedRun, JobState
    from rewindow.tables.delta.drift import Digest

JOB = "job"
"""The kind of position that such sources have: the last epoch that is landed, and the run that made it."""


def look_at_output(
    warehouse: str, spec: LogSpec, position: Mapping[str, Any] | None, digest: Digest | None = None
) -> SourceLook:
    """Return a job's output as it is now, compared with the landed position (None: nothing is landed).

    Raises `SourceError` (66) if the job never ran, has no such output, or was rewound behind the landed position, and
    `StorageError` (74) if rows that are not landed yet are not those that were published. ``digest``: see `difference_from_runs`.
    """
    new = new_epochs(DeltaTables(warehouse), spec, position)
    path = table_path(warehouse, new.table.path)
    fresh, schema, last = _files(path, position["epoch"] if position else 0)
    if (change := difference_from_runs(path, new.target, new.runs, new.state, digest)) is not None:
        raise altered(new.job, path, change)
    epochs = tuple(replace(epoch, may_have_rows=last is None or epoch.number <= last) for epoch in new.epochs)
    return SourceLook({}, fresh, schema=new.marked(schema), epochs=epochs, on_hold=new.on_hold, keys=new.keys)


def _files(path: str, landed: int) -> tuple[tuple[Piece, ...], str, int | None]:
    """Return a table's files, its schema, and the last epoch with rows, None if unknown.

    Check the files with epochs that are not landed yet: they are read next.
    """
    table = open_table(path)
    if table is None:
        raise output_gone(path)
    check_writable(path, table)
    actions = added_files(table).to_pydict()
    paths = actions["path"]
    lasts = actions.get("max._epoch", [None] * len(paths))
    folder = Folder(path)
    for name, last in zip(paths, lasts, strict=True):
        if last is None or last > landed:
            # Spark checks pages, but neither their headers nor the footer.
            folder.check(unquote(name))
    last = None if None in lasts else max(lasts, default=0)
    return tuple(Piece(full_path(path, name)) for name in sorted(paths)), table.schema().to_json(), last


def difference_from_runs(
    path: str, target: str, runs: Sequence[CommittedRun], state: JobState, digest: Digest | None
) -> str | None:
    """Describe how the rows of some published runs differ from what the runs wrote; None if they do not.

    Without ``digest``, rows are only counted.
    """
    if not runs:
        return None
    table, numbers = existing_table(path), {run.spec.run for run in runs}
    files = table_files(path, table, runs=numbers)
    if (change := lacking(path, files)) is not None:
        return change
    wanted = Counter({run.spec.run: total.rows for run in runs if (total := run.commit.targets.get(target))})
    attempts = {run.commit.attempt for run in runs}
    folder, counts, digests = Folder(path), Counter[int](), dict[int, list[str]]()
    if all(staged_by(file.path) in attempts and file.first_run == file.last_run for file in files):
        for file in files:
            counts.update(run_counts(folder, file) or {})
    else:
        schema = table_schema(table)
        for rows in (batch for file in files for batch in file_batches(folder, file, schema)):
            for run in runs:
                own = rows.filter(pc.field("_run") == run.spec.run)
                counts[run.spec.run] += own.num_rows
                if digest is not None and own.num_rows:
                    columns = [column.name for column in run.spec.binding.tables[target].columns]
                    digests.setdefault(run.spec.run, []).append(digest(own.select(columns)))
    if +counts != +wanted:
        return difference_of(wanted, counts, state)
    for run in runs:
        parts = digests.get(run.spec.run)
        if parts and add_digests(parts) != run.commit.targets[target].digest:
            return f"has other rows of run {run.spec.name}"
    return None
