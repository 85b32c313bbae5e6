"""The check of every `run`, `show` and `verify`: do a branch's tables still contain what was published to them?

The check reads each table's Delta log once, and the size of each file that the log names. It opens only merged files and
files without statistics. It does not notice if rows were replaced by as many other rows; `rewindow republish` and `rewindow
verify` do notice. A process checks a table once. It checks the table again if the log has new commits that are not the job's
publications.

In a bucket, the size of each file costs a request, or a listing of the folder costs a request for each 1,000 files. So there,
`run` and `plan` check only files of the last run, and open no merged file (``brief``, ADR-135). The other commands check all
files.

`check_state` lets other commands than `run` report whether the next run can read its state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from deltalake import DeltaTable

from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG, OUTPUT
from rewindow.errors import StorageError
from rewindow.storage.locations import is_uri
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Mark, is_still_there, mark_of
from rewindow.tables.delta.open_table import open_table, table_path
from rewindow.tables.delta.run_rows import run_counts
from rewindow.tables.delta.table_rows import TableFile, rows_of, table_files
from rewindow.tables.shared.drift import Drift, difference_of, publish_again
from rewindow.tables.shared.paths import staged_by
from rewindow.tables.shared.publications import (
    SHARED_TABLES,
    Due,
    Reports,
    due_attempts,
    due_rows,
    due_tables,
    missing,
    older_ledger,
    planned_tables,
    publication_id,
    was_prepared,
)

_MOST_ASKED = 4
"""For a table in a bucket, `run` requests the sizes of at most this many files. A small run adds one file to each table."""


class Checked:
    """The tables that this process has checked and found to contain what was published."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Mark, int]] = {}

    def has(self, due: Due, table: DeltaTable | None, published: int) -> bool:
        """Return whether a table was checked, and all commits since that check are publications of the target.

        ``published``: how many publications the table has now.
        """
        mark, checked = mark_of(table), self._known.get((due.target, due.table.path))
        if mark is None or checked is None or not is_still_there(checked[0]):
            return False
        before, published_then = checked
        return mark.version - before.version == published - published_then

    def add(self, due: Due, table: DeltaTable | None, published: int) -> None:
        """Record that a table was checked."""
        mark = mark_of(table)
        if mark is not None:
            self._known[due.target, due.table.path] = mark, published


def check_published(
    warehouse: str,
    job: str,
    state: JobState,
    branch: str,
    now: Callable[[str], JobState],
    checked: Checked,
    *,
    early: bool = False,
    brief: bool = False,
) -> None:
    """Check that the tables of a branch contain what was published. ``now`` reads the ledger again.

    ``early``: whether publishing follows. If so, tables that are gone are ignored, because `publish` restores or refuses
    them. ``brief``: check only a few files of tables in a bucket (see the module).

    Raises `StorageError` (74), which names `republish`, if a table was altered. Raises `CheckpointError` (76) if a table has
    publications that the ledger lacks. In that case, the ledger was replaced by an older copy, which would give the same
    numbers to other publications.
    """
    check_ledger(warehouse, job, state, branch, now)
    is_partial = brief and is_uri(warehouse)
    for due, table, published in published_tables(warehouse, job, state, branch):
        if published > len(due.publications):
            # `check_ledger` has accepted the table. So another process has committed and published since this ledger was read.
            check_published(warehouse, job, now(job), branch, now, checked, early=early, brief=brief)
            return
        if checked.has(due, table, published) or (table is None and early):
            continue
        drift = _drift(warehouse, state, due, table, published, brief=is_partial)
        if drift is not None:
            raise StorageError(
                "published-table-changed",
                "{path} {change}: it was altered outside rewindow (RESTORE, DELETE, a rewrite, deleted files). {fix}",
                path=drift.path,
                change=drift.change,
                fix=publish_again(job, branch),
            )
        if not is_partial:
            checked.add(due, table, published)


def check_ledger(warehouse: str, job: str, state: JobState, branch: str, now: Callable[[str], JobState]) -> None:
    """Check that no table has publications that the ledger lacks. ``now`` reads the ledger again.

    Raises `CheckpointError` (76) if a table does. The ledger was then replaced by an older copy, or it lost commits.
    """
    # The tables of planned runs are included. If the ledger lost the commit of its only run, only the plan still names the
    # tables.
    planned = [
        (due, table, publications_of(table, job, state, due))
        for due in planned_tables(state, branch)
        if (table := open_table(table_path(warehouse, due.table.path))) is not None
    ]
    for due, _, published in [*published_tables(warehouse, job, state, branch), *planned]:
        # If the ledger has newer rows than ``state``, another process has committed since.
        if published > len(due.publications) and now(job).rows == state.rows:
            path = table_path(warehouse, due.table.path)
            raise older_ledger(path, job, published, len(due.publications))


def publications_of(table: DeltaTable, job: str, state: JobState, due: Due) -> int:
    """Return how many publications of a target a table contains in the current publication epoch."""
    return table.transaction_version(publication_id(state.ledger, job, due.target, due.restart.epoch)) or 0


def published_tables(
    warehouse: str, job: str, state: JobState, branch: str
) -> Iterator[tuple[Due, DeltaTable | None, int]]:
    """Yield ``(due, handle, published)`` for each table of a branch.

    ``due`` has the table's publications according to the ledger. ``handle`` is None if there is no table. ``published`` is
    the number of publications that the table contains.

    Tables that are about to be republished are left out. A table may contain more publications than ``state`` names. Then
    another process has published since, or the ledger is an older copy.
    """
    for due in due_tables(state, branch):
        table = open_table(table_path(warehouse, due.table.path))
        epoch = due.restart.epoch
        published = publications_of(table, job, state, due) if table else 0
        is_on_its_way = table is not None and epoch > 1 and published < due.restart.ordinal
        if not is_on_its_way:
            yield due, table, published


def lagging(warehouse: str, job: str, state: JobState, branch: str) -> dict[str, int]:
    """Return, by target, how many publications each table of a branch lacks. Complete tables are left out."""
    lacks = {}
    for due in due_tables(state, branch):
        table = open_table(table_path(warehouse, due.table.path))
        lacks[due.target] = len(missing(due, publications_of(table, job, state, due) if table else 0))
    return {target: count for target, count in lacks.items() if count}


def _drift(
    warehouse: str, state: JobState, due: Due, table: DeltaTable | None, published: int, *, brief: bool = False
) -> Drift | None:
    path = table_path(warehouse, due.table.path)
    if table is None:
        return Drift(due.target, path, "is gone") if was_prepared(state, due) else None
    files = table_files(path, table)
    change = lacking(path, _own_files(files, due, published), brief=brief)
    if change is None and due.target.startswith(OUTPUT):
        wanted = due_rows(due, published)
        if not (brief and _fit(files, wanted)):
            change = _counted(Folder(path), files, wanted, state)
    return None if change is None else Drift(due.target, path, change)


def lacking(path: str, files: Sequence[TableFile], *, brief: bool = False) -> str | None:
    """Describe files of a table that are missing or have another size; None if all are intact. ``brief``: check only a few."""
    checked = _of_last_run(files) if brief else files
    sizes = Folder(path).sizes([file.path for file in checked]) if checked else {}
    lost = {file.path for file in checked if sizes.get(file.path) != file.bytes}
    # Another process may have removed these files from the table and deleted them after the table was opened.
    if lost:
        table = open_table(path)
        lost &= {file.path for file in table_files(path, table)} if table else set()
    if not lost:
        return None
    least = "at least " if len(checked) < len(files) else ""
    return f"lacks {least}{len(lost)} of {len(files)} files, or they have another size: {min(lost)}"


def _of_last_run(files: Sequence[TableFile]) -> Sequence[TableFile]:
    """Return a few files with rows of the last run in a table. No earlier run can have checked these files."""
    last = max((file.last_run for file in files if file.last_run is not None), default=None)
    return [file for file in files if file.last_run == last][:_MOST_ASKED]


def _fit(files: Sequence[TableFile], wanted: Counter[int]) -> bool:
    """Return whether, according to its log, a table has the wanted number of rows of each run.

    For a merged file, the log states only the total number of rows of all runs.
    """
    counts, merged = Counter[int](), 0
    for file in files:
        if file.rows is None:
            return False
        if file.first_run is not None and file.first_run == file.last_run:
            counts[file.first_run] += file.rows
        else:
            merged += file.rows
    return counts <= wanted and (wanted - counts).total() == merged


def _own_files(files: Sequence[TableFile], due: Due, published: int) -> Sequence[TableFile]:
    """Return the files of a table that the job must not lose: all or, if several jobs write the table, those of its runs."""
    if due.table.path not in SHARED_TABLES:
        return files
    attempts = due_attempts(due, published)
    return [file for file in files if staged_by(file.path) in attempts]


def _counted(folder: Folder, files: Sequence[TableFile], wanted: Counter[int], state: JobState) -> str | None:
    """Describe how the number of rows of each run in an output differs from what was published; None if none differs."""
    counts = [run_counts(folder, file) for file in files]
    total = Counter[int]()
    for file, counted in zip(files, counts, strict=True):
        total.update(Counter({file.first_run or 0: rows_of(folder, file)}) if counted is None else counted)
    total = +total
    unknown = [file.path for file in files if file.rows is None]
    if unknown and total.total() != wanted.total():
        return f"has {total.total()} rows, {wanted.total()} were published; rewindow did not add {unknown[0]}"
    # DELETE has rewritten a file with rows of several runs. The new file does not state how many rows each run has in it.
    if any(counted is None for counted in counts):
        is_equal = total.total() == wanted.total()
        return None if is_equal else f"has {total.total()} rows, {wanted.total()} were published"
    return None if total == wanted else difference_of(wanted, total, state)


def check_state(
    warehouse: str, state: JobState, head: CommittedRun, now: Callable[[str], JobState], reports: Reports
) -> None:
    """Check that the changelog files of the stores after ``head`` exist and have the right sizes.

    ``now`` reads the ledger again. Raises `StorageError` (74), which names `republish`, as `find_checkpoint` does.
    """
    try:
        for store in sorted(head.spec.binding.stores):
            _check_store(warehouse, state, head, f"{CHANGELOG}{store}", reports)
    except StorageError:
        # The ledger may have newer rows than ``state``. Then `gc` may have replaced the files by a snapshot.
        if now(head.spec.job).rows == state.rows:
            raise


def _check_store(warehouse: str, state: JobState, head: CommittedRun, target: str, reports: Reports) -> None:
    spec, table = head.spec, head.spec.binding.tables[target]
    path, table_now = table_path(warehouse, table.path), open_table(table_path(warehouse, table.path))
    due = Due(target, table, state.shared(table.path), state.restart(spec.branch, target, table.path))
    app_id = publication_id(state.ledger, spec.job, target, due.restart.epoch)
    from rewindow.tables.delta.checkpoints import changelog_files  # noqa: PLC0415 - `show` restores nothing

    published = (table_now.transaction_version(app_id) or 0) if table_now else 0
    # A run publishes before it restores. So if publications are missing, the staged files are checked instead.
    is_behind = bool(missing(due, published))
    files = changelog_files(path, target, state.basis(spec.run), reports, as_staged=is_behind)
    if (change := lacking(path, files)) is not None:
        raise StorageError(
            "restored-state-behind",
            "{path} {change}. The next run restores its state from them. {fix}",
            path=path,
            change=change,
            fix=publish_again(spec.job, spec.branch),
        )
