"""Find drift: published tables that were altered outside rewindow (RESTORE, DELETE, a drop, rewritten or deleted files).

A table holds the rows of the runs that were published to it, and each COMMIT row has their number. `find_drift` reads files
where it must, so it also finds an UPDATE that keeps every count; `check_published` is the cheap check of every command.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.planned_tasks import Restored
from rewindow.control.plan.spec import CHANGELOG, OUTPUT, RunSpec, TargetTotal, add_digests
from rewindow.errors import StorageError
from rewindow.tables.delta.check_published import check_ledger, published_tables
from rewindow.tables.delta.checkpoints import find_checkpoint
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.diff import staged_rows
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.journal import audit_files
from rewindow.tables.delta.table_rows import TableFile, read_file, table_files, table_schema
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_tables import sorted_rows
from rewindow.tables.shared.audit import INTERNAL, audit_counts, totals
from rewindow.tables.shared.diff import first_difference
from rewindow.tables.shared.drift import Drift, difference_of, lost_runs, repeatable
from rewindow.tables.shared.paths import internal_path
from rewindow.tables.shared.publications import SHARED_TABLES, Due, Reports, due_rows, net

Digest = Callable[[pa.Table], str]
"""Returns the digest of rows, as in `StagedFile.rows_digest`."""


class Files:
    """The staged files of runs, and whether each is unchanged. Each file is checked once.

    ``digest`` compares the rows of runs whose files are gone. Without it, only their number is compared.
    """

    def __init__(self, warehouse: str, reports: Reports, digest: Digest | None = None) -> None:
        self.digest = digest
        self._warehouse, self._reports = warehouse, reports
        self._known: dict[int, Sequence[TaskReport] | None] = {}
        self._whole: dict[tuple[str, str], bool] = {}

    def reports(self, run: CommittedRun) -> Sequence[TaskReport] | None:
        """Return what a run's tasks reported; None if the journal has lost it."""
        if run.spec.run not in self._known:
            try:
                self._known[run.spec.run] = self._reports(run)
            except StorageError:
                self._known[run.spec.run] = None
        return self._known[run.spec.run]

    def of(self, run: CommittedRun, target: str) -> list[StagedFile]:
        """Return what a run staged for a target."""
        return [file for report in self.reports(run) or () for file in report.files if file.target == target]

    def are_whole(self, run: CommittedRun, target: str, path: str) -> bool:
        """Return whether a run's files for a table at ``path`` are intact: in its folder, or where they were staged."""
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
    """Yield the tables of a branch that are not what was published. Reads files."""
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
    """Describe why a table that lags cannot follow: it lacks files of a run that nothing repeats, because nobody needs it.

    An interrupted `republish`, or a dropped branch, leaves such a table, which was created anew.
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
    # Rows are read only from files that no run staged, as those of OPTIMIZE. For the others, the digest of the file decides.
    staged = {file.path: (run, file) for run in runs for file in files.of(run, due.target)}
    counts, others = Counter[int](), []
    for file in table_files(path, table):
        if file.path in staged:
            run, staged_file = staged.pop(file.path)
            if not files.are_whole(run, due.target, due.table.path) and not _is_as_staged(folder, staged_file):
                return f"lacks the file {file.path}, or the file was altered"
            counts[run.spec.run] += staged_file.rows
        elif due.table.path not in SHARED_TABLES or file.rows != 0:
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
    """Return whether rows of a run have another digest than those that were in some of its files."""
    columns = run.spec.binding.tables.get(due.target, due.table).columns
    # Values of other types have other digests, so a table whose columns have changed since then is not compared.
    if digest is None or not all(column in due.table.columns for column in columns):
        return False
    own = rows.filter(pc.field("_run") == run.spec.run).select([column.name for column in columns])
    return digest(own) != add_digests(file.rows_digest for file in staged)


def _rows_of(folder: Folder, files: Sequence[TableFile], schema: pa.Schema, due: Due, job: str) -> pa.Table:
    """Return the rows of files that no attempt staged; of a table that several jobs write, this job's rows."""
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


class Repair:
    """The tables of one job, checked for drift."""

    def __init__(self, tables: DeltaTables, digest: Digest | None = None) -> None:
        """Bind to a warehouse. Nothing is read. ``digest``: see `Files`."""
        self._tables = tables
        self._files = Files(tables.warehouse, tables.reports, digest)

    def published(self, state: JobState, branch: str) -> list[str]:
        """Return the targets of a branch that have tables."""
        return [*state.branch(branch).tables]

    def check_ledger(self, job: str, state: JobState, branch: str) -> None:
        """Check that no table has publications that the ledger lacks. Raises `CheckpointError` (76)."""
        check_ledger(self._tables.warehouse, job, state, branch, self._tables.state)

    def drift(self, job: str, state: JobState, branch: str) -> list[Drift]:
        """Return the tables of a branch that are not what was published."""
        return list(find_drift(self._tables.warehouse, job, state, branch, self._files))

    def lost(self, state: JobState, branch: str, targets: Sequence[str]) -> tuple[list[CommittedRun], list[int]]:
        """Return the runs whose files for these targets are gone or altered, in ledger order.

        First those that are needed, with all runs that their state depends on; then the numbers of the others.
        """
        return lost_runs(state, branch, targets, self._files.are_whole)

    def known_reports(self, run: CommittedRun) -> Sequence[TaskReport]:
        """Return what a run's tasks reported; nothing if the journal lost it."""
        return self._files.reports(run) or ()

    def restore(self, state: JobState, spec: RunSpec) -> Restored:
        """Return the checkpoint that a run resumed from, read from staged files because the tables may have drifted."""
        check_has_state(state, spec.parent)
        head = state.chain_to(spec.parent)[-1:]
        basis = state.basis(spec.parent)
        return find_checkpoint(
            self._tables.warehouse, head[0] if head else None, basis, self._tables.reports, as_staged=True
        )

    def audit(self, spec: RunSpec, feed: Feed, reports: Sequence[TaskReport]) -> None:
        """Read back what was staged. Raises as `DeltaTables.audit` does."""
        audit_counts(spec, feed, reports)
        audit_files(reports, self._roots(spec))

    def totals(self, reports: Sequence[TaskReport]) -> Mapping[str, TargetTotal]:
        """Return what was made for each target."""
        return totals(reports)

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target that differs from the earlier rows that still exist."""
        reports_before = self.known_reports(run)
        before = [file for report in reports_before for file in report.files if file.target == target]
        roots = self._roots(spec)
        old, new = roots.get(target), roots.get(target)
        if target.startswith(INTERNAL):
            topic = target.removeprefix(INTERNAL)
            old, new = (
                table_path(self._tables.warehouse, internal_path(spec.job, attempt, topic))
                for attempt in (run.commit.attempt, spec.attempt.id)
            )
        now = staged_rows(new, reports, target) if new else None
        for file in before:
            rows = self._rows(old, file)
            different = first_difference(rows, now) if rows is not None else None
            if different is not None and different.startswith("before"):
                return different
        if before and all(self._rows(old, file) is not None for file in before):
            rows = staged_rows(old or "", reports_before, target)
            return first_difference(rows, now) or "the rows are equal, their digests are not"
        first_row = now.slice(0, 1).to_pylist() if now is not None else []
        return f"the rows it made before are gone; the first row is now {first_row[0] if first_row else 'none'}"

    def _rows(self, root: str | None, file: StagedFile) -> pa.Table | None:
        """Return a staged file's rows; None if the file is gone or damaged."""
        try:
            return staged_rows(root, [TaskReport(0, 0, (file,), {}, (), {})], file.target) if root else None
        except StorageError:
            return None

    def _roots(self, spec: RunSpec) -> dict[str, str]:
        return {target: table_path(self._tables.warehouse, table.path) for target, table in spec.binding.tables.items()}
