"""Delta in memory, with its rules and its faults: the production ledger, journal, commits, publishing and runner on top.

A table is a list of versions. A handle sees those that were there when it was opened. A commit through it lands unless a
version came since under the same application id, or one that removed the same file; a fresh handle may land a version
again, as delta-rs does. What is replaced is the storage alone, so that what is simulated is the code that ships.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any
from unittest import mock

from deltalake.exceptions import CommitFailedError

from rewindow.core.staging import StagedFile, TaskReport
from rewindow.delta import checkpoints, damage, journal, ledger, publish, tables, warehouse
from rewindow.delta.contents import TableFile
from rewindow.delta.files import FileFacts
from rewindow.delta.journal import Journal
from rewindow.delta.ledger import Ledger
from rewindow.delta.warehouse import DeltaTables
from rewindow.errors import StorageError
from rewindow.plan.landings import Feed
from rewindow.plan.lineage import LedgerRow
from rewindow.plan.spec import RunSpec

ROOT = "/memory"


class Faults:
    """What can go wrong, asked at each point. This one: nothing."""

    def point(self, name: str) -> None:
        """Pass a point: others may go on, the process may die."""

    def answer(self, name: str) -> str:
        """Return what becomes of a commit: ``ok``, ``lost``, ``refused``, ``made up``, ``delayed``."""
        return "ok"

    def staleness(self, name: str) -> int:
        """Return how many versions a listing lacks."""
        return 0

    def later(self, send: Callable[[], None]) -> None:
        """Keep a commit that is still under way."""

    def is_full(self) -> bool:
        """Whether the disk takes nothing more."""
        return False


@dataclass(frozen=True)
class Version:
    """One commit."""

    transactions: Mapping[str, int]
    adds: tuple[Any, ...]
    removes: frozenset[str]


@dataclass
class File:
    """A file: its rows, and whether its bytes are those that were written."""

    rows: Any
    size: int = 1
    is_whole: bool = True


@dataclass
class World:
    """The storage: tables by path, files by path."""

    tables: dict[str, list[Version]] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)


_here = threading.local()


def here() -> Process:
    """Return the process that this thread plays."""
    process: Process = _here.process
    return process


@dataclass
class Process:
    """Who is running: the world it sees and the faults that befall it."""

    world: World
    faults: Faults
    name: str = "one"

    def enter(self) -> None:
        """Play this process in this thread."""
        _here.process = self


@dataclass
class Handle:
    """A table as it was when it was opened."""

    path: str
    versions: tuple[Version, ...]

    def transaction_version(self, app_id: str) -> int | None:
        for version in reversed(self.versions):
            if app_id in version.transactions:
                return version.transactions[app_id]
        return None

    def metadata(self) -> Any:
        return SimpleNamespace(configuration={}, partition_columns=[])

    def files(self) -> list[Any]:
        there: dict[str, Any] = {}
        for version in self.versions:
            for path in version.removes:
                there.pop(path, None)
            there |= {add.path: add for add in version.adds}
        return list(there.values())


@dataclass(frozen=True)
class Add:
    """A file that joins a table."""

    path: str
    file: Any


@dataclass(frozen=True)
class Remove:
    """A file that leaves a table."""

    path: str


def open_table(path: str, _options: object = None) -> Handle | None:
    """Stand for `tables.open_table`."""
    process = here()
    process.faults.point(f"{path}: open")
    versions = process.world.tables.get(path)
    if versions is None:
        return None
    lacks = process.faults.staleness(path)
    return Handle(path, tuple(versions[: max(0, len(versions) - lacks)]))


def create_table(path: str, *_args: object, **_options: object) -> Handle:
    """Stand for `tables.create_table`."""
    process = here()
    process.faults.point(f"{path}: create")
    process.world.tables.setdefault(path, [])
    found = open_table(path)
    assert found is not None
    return found


def commit_actions(
    table: Handle, actions: Sequence[Add | Remove], app_id: str, version: int, closes: Sequence[str] = ()
) -> None:
    """Stand for `tables.commit_actions`: one commit, and whatever the storage answers."""
    process = here()
    process.faults.point(f"{table.path}: commit")
    made = Version(
        {app_id: version, **dict.fromkeys(closes, 2**62)},
        tuple(action for action in actions if isinstance(action, Add)),
        frozenset(action.path for action in actions if isinstance(action, Remove)),
    )
    kind = process.faults.answer(table.path)
    if kind in ("ok", "lost"):
        _land(process.world, table, made)
    elif kind == "delayed":
        process.faults.later(lambda: _land(process.world, table, made))
    process.faults.point(f"{table.path}: answer")
    if kind in ("lost", "refused", "delayed"):
        message = "no answer"
        raise OSError(message)


def _land(world: World, table: Handle, made: Version) -> None:
    versions = world.tables[table.path]
    for since in versions[len(table.versions) :]:
        if since.transactions.keys() & made.transactions.keys() or since.removes & made.removes:
            message = "Concurrent transaction failed"
            raise CommitFailedError(message)
    versions.append(made)


class MemoryFolder:
    """Stands for `files.Folder`."""

    def __init__(self, root: str) -> None:
        self.root = root

    def full_path(self, path: str) -> str:
        return f"{self.root}/{path}"

    def facts(self, path: str) -> FileFacts | None:
        file = here().world.files.get(self.full_path(path))
        return None if file is None else FileFacts(file.size, 0)

    def write_table(self, path: str, rows: Any) -> FileFacts:
        process = here()
        process.faults.point(f"{self.root}: write")
        if process.faults.is_full():
            message = "no space left"
            raise StorageError(message)
        process.world.files[self.full_path(path)] = File(rows)
        return FileFacts(1, 0)

    def read_table(self, path: str, _columns: list[str] | None = None) -> Any:
        return _whole(self.full_path(path)).rows

    def digest(self, path: str) -> str:
        file = here().world.files[self.full_path(path)]
        return blake2b(repr((file.rows, file.is_whole)).encode(), digest_size=16).hexdigest()

    def copy_from(self, other: MemoryFolder, path: str, _size: int) -> None:
        here().world.files.setdefault(self.full_path(path), _whole(other.full_path(path)))


def _whole(path: str) -> File:
    file = here().world.files.get(path)
    if file is None or not file.is_whole:
        message = f"{path} is {'gone' if file is None else 'damaged'}"
        raise StorageError(message)
    return file


class Rows(list[tuple[Any, ...]]):
    """Stands for the journal's Arrow table: equal if its rows are."""

    def equals(self, other: Any) -> bool:
        return self == other


class MemoryJournal(Journal):
    """The production journal; its file holds the reports as they are."""

    def __init__(self, path: str, job: str) -> None:
        super().__init__(path, job)
        self._folder = MemoryFolder(path)  # type: ignore[assignment]


def _as_table(attempt: str, reports: Sequence[TaskReport]) -> Rows:
    return Rows((attempt, report) for report in sorted(reports, key=lambda one: (one.stage, one.partition)))


def _as_reports(rows: Rows, attempt: str) -> list[TaskReport]:
    return [report for owner, report in rows if owner == attempt]


class MemoryLedger(Ledger):
    """The production ledger's `append`; a row of it is a file's only one."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)

    def _look(self) -> Any:
        self._seen = None
        table = ledger.open_table(self.path, None)
        if table is None:
            return None
        if len(table.files()) < len(self._known):  # type: ignore[attr-defined]
            message = "listed as it was before"
            raise StorageError(message)
        cells = sorted((add.file for add in table.files()), key=lambda cell: cell[0].seq)  # type: ignore[attr-defined]
        numbers = [(row.seq, row.kind, text, 0) for row, text in cells]
        self._check(numbers, table.transaction_version(self._app_id) or 0)
        texts, rows = (
            (tuple(part) for part in zip(*((text, row) for row, text in cells), strict=True)) if cells else ((), ())
        )
        self._known = list(texts)  # type: ignore[arg-type]
        self._seen = SimpleNamespace(table=table, paths=(), texts=texts, rows=rows)  # type: ignore[assignment]
        return self._seen

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
    """The production tables, over the world of the process that uses them."""

    def __init__(self, feed_of: Callable[[], Feed]) -> None:
        super().__init__(ROOT)
        self._feed_of = feed_of

    def ledger(self, job: str) -> Ledger:
        return self._ledgers.setdefault(job, MemoryLedger(f"{ROOT}/{tables.RUNS}", job))

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
        return MemoryJournal(f"{ROOT}/{tables.JOURNAL}", job)


def _add_actions(folder: MemoryFolder, files: Sequence[StagedFile]) -> list[Add]:
    for file in files:
        if folder.facts(file.path) is None:
            message = f"the staged file {folder.full_path(file.path)} is gone"
            raise StorageError(message)
    return [Add(file.path, file) for file in files]


def _audit_files(reports: Sequence[TaskReport], roots: Mapping[str, str]) -> None:
    for report in reports:
        for file in report.files:
            if file.target in roots:
                _whole(f"{roots[file.target]}/{file.path}")


def _staged_rows(root: str, reports: Sequence[TaskReport], target: str) -> list[Any]:
    files = [file for report in reports for file in report.files if file.target == target]
    return sorted(repr(_whole(f"{root}/{file.path}").rows[1]) for file in files)


def _first_difference(first: list[Any], second: list[Any], **_: object) -> str | None:
    return None if first == second else f"{first} / {second}"


def _table_files(_path: str, table: Handle) -> list[TableFile]:
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
    """Put the storage of this module under the production code."""
    folders = [(module, "Folder", MemoryFolder) for module in (tables, publish, journal, ledger, checkpoints)]
    opens = [(module, "open_table", open_table) for module in (tables, publish, journal, ledger, checkpoints, damage)]
    creates = [(module, "create_table", create_table) for module in (publish, journal, ledger)]
    writable = [(module, "check_writable", lambda *_: None) for module in (tables, publish, ledger)]
    commits = [(module, "commit_actions", commit_actions) for module in (tables, ledger)]
    sleeping = SimpleNamespace(sleep=lambda _seconds: here().faults.point("sleep"), time_ns=lambda: 0)
    others = [
        (tables, "add_actions", _add_actions),
        (tables, "time", sleeping),
        (ledger, "time", sleeping),
        (warehouse, "audit_files", _audit_files),
        (warehouse, "staged_rows", _staged_rows),
        (warehouse, "first_difference", _first_difference),
        (checkpoints, "table_files", _table_files),
        (damage, "table_files", _table_files),
        (publish, "retract_all", _retract_all),
        (publish, "retract_runs", _retract_runs),
        (publish, "_make", lambda _warehouse, _job, table: create_table(f"{ROOT}/{table.path}")),
        (journal, "_as_table", _as_table),
        (journal, "_as_reports", _as_reports),
    ]
    with ExitStack() as stack:
        for module, name, stand_in in (*folders, *opens, *creates, *writable, *commits, *others):
            stack.enter_context(mock.patch.object(module, name, stand_in))
        yield
