"""The production tables on the storage of `memory`: journal, ledger, commits, publishing and runner.

Only the storage is replaced, so the simulation tests the code that ships.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import RunSpec
from rewindow.control.plan.stored_rows import StoredRows
from rewindow.errors import StorageError
from rewindow.tables.delta import (
    check_published,
    checkpoints,
    commit,
    drift,
    journal,
    ledger,
    publish,
)
from rewindow.tables.delta import (
    create_table as table_creation,
)
from rewindow.tables.delta import diff as file_diff
from rewindow.tables.delta import open_table as opening
from rewindow.tables.delta.journal import Journal
from rewindow.tables.delta.ledger import Ledger, check_complete
from rewindow.tables.delta.table_rows import TableFile
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared import diff, paths
from tests.crash.memory import (
    ROOT,
    Add,
    Handle,
    MemoryFolder,
    Remove,
    commit_actions,
    create_table,
    here,
    open_table,
    whole,
)


class Rows(list[tuple[Any, ...]]):
    """Replaces the journal's Arrow table, with the comparison that the journal needs."""

    def equals(self, other: Any) -> bool:
        return self == other


class MemoryJournal(Journal):
    """The production journal. Its files contain the reports as Python objects."""

    def __init__(self, path: str, job: str) -> None:
        super().__init__(path, job)
        self._folder = MemoryFolder(path)  # type: ignore[assignment]


def _as_table(attempt: str, reports: Sequence[TaskReport]) -> Rows:
    return Rows((attempt, report) for report in sorted(reports, key=lambda one: (one.sub_topology, one.partition)))


def _as_reports(rows: Rows, attempt: str, _table: str) -> list[TaskReport]:
    return [report for owner, report in rows if owner == attempt]


class MemoryLedger(Ledger):
    """The production ledger's `append`. Each row is a separate file."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)

    def _look(self) -> Any:
        self._snapshot = None
        table = ledger.open_table(self.path, None)  # type: ignore[attr-defined,call-arg,arg-type]
        if table is None:
            return None
        if len(table.files()) < len(self._known):  # type: ignore[attr-defined]
            raise StorageError("memory-listing-stale", "listed as it was before")
        stored = sorted((add.file for add in table.files()), key=lambda row: row[0].seq)  # type: ignore[attr-defined]
        numbered = [(row.seq, row.kind, text, row.recorded_at) for row, text in stored]
        check_complete(self.path, self.name, numbered, 1, table.transaction_version(self._app_id) or 0)
        self._known = [(text, row) for row, text in stored]
        rows = StoredRows([row for row, _ in stored])
        self._snapshot = SimpleNamespace(table=table, small=(), known=self._known, rows=rows)  # type: ignore[assignment]
        return self._snapshot

    def _look_or_create(self) -> Any:
        seen = self._look()
        if seen is None:
            create_table(self.path)
            seen = self._look()
        return seen

    def _write(self, rows: Sequence[LedgerRow], texts: Sequence[str]) -> Any:
        MemoryFolder(self.path).write_table(texts[0], (rows[0], texts[0]))
        return Add(texts[0], (rows[0], texts[0]))


class MemoryTables(DeltaTables):
    """The production tables on the simulated storage of the current process."""

    def __init__(self, feed_of: Callable[[], Feed]) -> None:
        super().__init__(ROOT)
        self._feed_of = feed_of

    def ledger(self, job: str) -> Ledger:
        return self._ledgers.setdefault(job, MemoryLedger(f"{ROOT}/{paths.RUNS}", job))

    def feed(self, feed: str) -> Feed:
        return self._feed_of()

    def log_files(self, *_args: object) -> Sequence[Any]:
        return ()

    def log_table(self, *_args: object) -> None:
        return None

    def roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        for table in spec.binding.tables.values():
            create_table(f"{ROOT}/{table.path}")
        return self._roots(spec, internal)

    def _journal(self, job: str) -> Journal:
        return MemoryJournal(f"{ROOT}/{paths.JOURNAL}", job)


def _add_actions(folder: MemoryFolder, files: Sequence[StagedFile], _columns: object, _fix: str) -> list[Add]:
    for file in files:
        if folder.facts(file.path) is None:
            raise StorageError("memory-file-gone", "the staged file {path} is gone", path=folder.full_path(file.path))
    return [Add(file.path, file) for file in files]


def _audit_files(reports: Sequence[TaskReport], roots: Mapping[str, str]) -> None:
    for report in reports:
        for file in report.files:
            if file.target in roots:
                whole(f"{roots[file.target]}/{file.path}")


def _staged_rows(root: str, reports: Sequence[TaskReport], target: str) -> list[Any]:
    files = [file for report in reports for file in report.files if file.target == target]
    return sorted(repr(whole(f"{root}/{file.path}").rows[1]) for file in files)


def _first_difference(first: list[Any], second: list[Any], **_: object) -> str | None:
    return None if first == second else f"{first} / {second}"


def _table_files(_path: str, table: Handle, **_: object) -> list[TableFile]:
    found = []
    for add in table.files():
        run = here().world.files[f"{_path}/{add.path}"].rows[0]
        found.append(TableFile(add.path, add.file.rows, 1, {"_partition": add.file.partition}, run, run))
    return sorted(found, key=lambda file: file.path)


def _retract_all(_path: str, table: Handle) -> list[Remove]:
    return [Remove(add.path) for add in table.files()]


def _retract_runs(path: str, table: Handle, *, runs: frozenset[int]) -> list[Remove]:
    return [Remove(file.path) for file in _table_files(path, table) if file.first_run in runs]


@contextmanager
def in_memory() -> Iterator[None]:
    """Replace the storage of the production code by that in memory."""
    folders = [(module, "Folder", MemoryFolder) for module in (commit, publish, journal, ledger, checkpoints)]
    opens = [(module, "open_table", open_table) for module in (opening, commit, publish, journal, ledger, checkpoints)]
    creates = [(module, "create_table", create_table) for module in (publish, journal, ledger)]
    writable = [(module, "check_writable", lambda *_: None) for module in (commit, publish, ledger)]
    commits = [(module, "commit_actions", commit_actions) for module in (commit, ledger)]
    sleeping = SimpleNamespace(sleep=lambda _seconds: here().faults.point("sleep"), time_ns=lambda: 0)
    others = [
        (commit, "add_actions", _add_actions),
        (commit, "time", sleeping),
        (ledger, "time", sleeping),
        (journal, "audit_files", _audit_files),
        (file_diff, "staged_rows", _staged_rows),
        (diff, "first_difference", _first_difference),
        (checkpoints, "table_files", _table_files),
        (drift, "table_files", _table_files),
        (check_published, "table_files", _table_files),
        (check_published, "Folder", MemoryFolder),
        (check_published, "open_table", open_table),
        (publish, "retract_all", _retract_all),
        (publish, "retract_runs", _retract_runs),
        (publish, "_create", lambda *of: create_table(f"{ROOT}/{of[-1].path}")),
        (table_creation, "table_files", _table_files),
        (publish, "table_files", _table_files),
        (journal, "_as_table", _as_table),
        (journal, "_as_reports", _as_reports),
    ]
    with ExitStack() as stack:
        for module, name, stand_in in (*folders, *opens, *creates, *writable, *commits, *others):
            stack.enter_context(mock.patch.object(module, name, stand_in))
        yield
