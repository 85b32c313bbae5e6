"""Find drift: published tables that were altered outside rewindow (RESTORE, DELETE, a drop, rewritten or deleted files).

A table should contain the rows of the runs that were published to it, and the COMMIT row of each run states their number.
`find_drift` compares files and, where that is not enough, rows. So it also finds an UPDATE that changes no number of rows.
`check_published` is the cheap check that every command makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG, OUTPUT, add_digests
from rewindow.errors import StorageError
from rewindow.tables.delta.check_published import published_tables
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import TableFile, files_of_job, read_file, table_files, table_schema
from rewindow.tables.shared.content_hash import sorted_rows
from rewindow.tables.shared.diff import first_difference
from rewindow.tables.shared.drift import Drift, difference_of, repeatable
from rewindow.tables.shared.publications import SHARED_TABLES, Due, Reports, due_rows, net

Digest = Callable[[pa.Table], str]
"""A function that returns the digest of rows, as in `StagedFile.rows_digest`."""


class Files:
    """The staged files of runs, and whether each file is unchanged. Each file is checked once.

    ``digest`` is used to compare the rows of runs whose staged files are gone. If it is None, only the number of these rows
    is compared.
    """

    def __init__(self, warehouse: str, reports: Reports, digest: Digest | None = None) -> None:
        self.digest = digest
        self._warehouse, self._reports = warehouse, reports
        self._known: dict[int, Sequence[TaskReport] | None] = {}
        self._whole: dict[tuple[str, str], bool] = {}

    def reports(self, run: CommittedRun) -> Sequence[TaskReport] | None:
        """Return the reports of a run's tasks; None if the journal has lost them."""
        if run.spec.run not in self._known:
            try:
                self._known[run.spec.run] = self._reports(run)
            except StorageError:
                self._known[run.spec.run] = None
        return self._known[run.spec.run]

    def of(self, run: CommittedRun, target: str) -> list[StagedFile]:
        """Return the files that a run staged for a target."""
        return [file for report in self.reports(run) or () for file in report.files if file.target == target]

    def are_whole(self, run: CommittedRun, target: str, path: str) -> bool:
        """Return whether the files that a run staged for a target are intact.

        A file must be in the folder of the table at ``path`` or, if it is missing there, in the folder where it was staged.
        """
        if self.reports(run) is None:
            return False
        staged = run.spec.binding.tables[target].path if target in run.spec.binding.tables else path
        return all(self._is_whole(path, file) or self._absent(path, file, staged) for file in self.of(run, target))

    def _absent(self, path: str, file: StagedFile, staged: str) -> bool:
        here = Folder(table_path(self._warehouse, path))
        return staged != path and here.facts(file.path) is None and self._is_whole(staged, file)

    def _is_whole(self, path: str, file: StagedFile) -> bool:
        key = (path, file.path)
        if key not in self._whole:
            folder = Folder(table_path(self._warehouse, path))
            facts = folder.facts(file.path)
            is_there = facts is not None and facts.bytes == file.bytes
            self._whole[key] = is_there and file.file_digest in ("", folder.digest(file.path))
        return self._whole[key]


def find_drift(warehouse: str, job: str, state: JobState, branch: str, files: Files) -> Iterator[Drift]:
    """Yield the tables of a branch that differ from what was published. Reads files."""
    for due, table, published in published_tables(warehouse, job, state, branch):
        if published > len(due.publications):
            continue
        path = table_path(warehouse, due.table.path)
        if table is None:
            if due.publications:
                yield Drift(due.target, path, "is gone")
            continue
        change = _drift(path, job, due, table, published, files, state) or _stuck(state, due, published, files)
        if change is not None:
            yield Drift(due.target, path, change)


def _stuck(state: JobState, due: Due, published: int, files: Files) -> str | None:
    """Describe why the publications that a table lacks can never be made; None if they can be made.

    They cannot be made if the files of a run are gone, and `republish` does not repeat the run, because no branch needs it.
    There are such tables if a `republish` that created the table again was interrupted, or if the table's branch was dropped.
    """
    if published == len(due.publications):
        return None
    repeated = repeatable(state)
    for publication in due.publications[published:]:
        for run in publication.adds:
            if run.spec.run not in repeated and not files.are_whole(run, due.target, due.table.path):
                lacks = f"has only {published} of {len(due.publications)} publications"
                return f"{lacks}, and what run {run.spec.name} had staged is gone"
    return None


def _drift(
    path: str, job: str, due: Due, table: DeltaTable, published: int, files: Files, state: JobState
) -> str | None:
    folder, schema = Folder(path), table_schema(table)
    runs = net(due.publications[:published]).adds
    # Rows are read only from files that no run staged, such as files of OPTIMIZE. Staged files are compared by digest.
    staged = {file.path: (run, file) for run in runs for file in files.of(run, due.target)}
    counts, others = Counter[int](), []
    column = SHARED_TABLES.get(due.table.path)
    for file in files_of_job(path, table, column, job) if column else table_files(path, table):
        if file.path in staged:
            run, staged_file = staged.pop(file.path)
            if not files.are_whole(run, due.target, due.table.path) and not _is_as_staged(folder, staged_file):
                return f"lacks the file {file.path}, or the file was altered"
            counts[run.spec.run] += staged_file.rows
        elif column is None or file.rows != 0:
            others.append(file)
    try:
        rows = _rows_of(folder, others, schema, due, job)
    except StorageError as error:
        return f"cannot be read ({error})"
    counts.update(rows["_run"].to_pylist())
    wanted = due_rows(due, published)
    if counts != wanted:
        return difference_of(wanted, counts, state)
    for run in runs:
        own = [staged_file for staging_run, staged_file in staged.values() if staging_run.spec.run == run.spec.run]
        if own and all(_is_as_staged(folder, staged_file) for staged_file in own):
            different = _first_difference(folder, own, rows.filter(pc.field("_run") == run.spec.run))
            if different is not None:
                return f"has other rows of run {run.spec.name}: {different}"
        elif own and due.target.startswith(CHANGELOG):
            return f"was rewritten, and what run {run.spec.name} had staged is gone"
        elif own and due.target.startswith(OUTPUT) and _is_other(run, due, own, rows, files.digest):
            return f"has other rows of run {run.spec.name}, and what the run had staged is gone"
    return None


def _is_other(run: CommittedRun, due: Due, staged: Sequence[StagedFile], rows: pa.Table, digest: Digest | None) -> bool:
    """Return whether a run's rows in ``rows`` have another digest than those it staged in files that are gone (``staged``)."""
    columns = run.spec.binding.tables.get(due.target, due.table).columns
    # Values of other types have other digests. So if the table's columns have changed since the run, no digests are compared.
    if digest is None or not all(column in due.table.columns for column in columns):
        return False
    own = rows.filter(pc.field("_run") == run.spec.run).select([column.name for column in columns])
    return digest(own) != add_digests(file.rows_digest for file in staged)


def _rows_of(folder: Folder, files: Sequence[TableFile], schema: pa.Schema, due: Due, job: str) -> pa.Table:
    """Return the rows of these files. If several jobs write the table, return only this job's rows."""
    rows = pa.concat_tables([schema.empty_table(), *(read_file(folder, file, schema) for file in files)])
    column = SHARED_TABLES.get(due.table.path)
    if column is None:
        return rows
    return rows.filter((pc.field(column) == job) & pc.field("_run").is_valid())


def _first_difference(folder: Folder, staged: Sequence[StagedFile], now: pa.Table) -> str | None:
    before = sorted_rows(pa.concat_tables([folder.read_table(file.path) for file in staged]))
    return first_difference(before, now.select(before.column_names))


def _is_as_staged(folder: Folder, file: StagedFile) -> bool:
    facts = folder.facts(file.path)
    is_there = facts is not None and facts.bytes == file.bytes
    return is_there and file.file_digest in ("", folder.digest(file.path))
