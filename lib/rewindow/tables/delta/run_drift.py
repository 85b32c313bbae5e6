"""Whether an output has the rows that some of its runs have published, before another job's feed takes them.

It costs the table's Delta log and the sizes of the files with rows of these runs. Files are read only if something else than
these runs has written some of their rows, as UPDATE, DELETE and OPTIMIZE do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow.compute as pc

from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import add_digests
from rewindow.tables.delta.check_published import lacking
from rewindow.tables.delta.commit import existing_table
from rewindow.tables.delta.content_hash import file_batches, table_files, table_schema
from rewindow.tables.delta.drift import Digest
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.run_counts import run_counts
from rewindow.tables.delta.unnamed_files import staged_by
from rewindow.tables.shared.drift import difference_of


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
    if (what := lacking(path, files)) is not None:
        return what
    wanted = Counter({run.spec.run: total.rows for run in runs if (total := run.commit.targets.get(target))})
    attempts = {run.commit.attempt for run in runs}
    folder, found, digests = Folder(path), Counter[int](), dict[int, list[str]]()
    if all(staged_by(file.path) in attempts and file.first_run == file.last_run for file in files):
        for file in files:
            found.update(run_counts(folder, file) or {})
    else:
        schema = table_schema(table)
        for rows in (batch for file in files for batch in file_batches(folder, file, schema)):
            for run in runs:
                own = rows.filter(pc.field("_run") == run.spec.run)
                found[run.spec.run] += own.num_rows
                if digest is not None and own.num_rows:
                    columns = [column.name for column in run.spec.binding.tables[target].columns]
                    digests.setdefault(run.spec.run, []).append(digest(own.select(columns)))
    if +found != +wanted:
        return difference_of(wanted, found, state)
    for run in runs:
        known = digests.get(run.spec.run)
        if known and add_digests(known) != run.commit.targets[target].digest:
            return f"has other rows of run {run.spec.name}"
    return None
