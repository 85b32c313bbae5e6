"""Storage in memory, with the rules of Delta and the faults of a disk and a network: tables, files, processes.

A table is a list of versions. A handle sees those that were there when it was opened. A commit through it lands unless a
version came since under the same application id, or one that removed the same file; a fresh handle may land a version
again, as delta-rs does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from deltalake.exceptions import CommitFailedError

from rewindow.errors import StorageError
from rewindow.tables.delta.files import FileFacts

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

    def sizes(self) -> dict[str, int]:
        start = f"{self.root}/"
        return {path.removeprefix(start): 1 for path in here().world.files if path.startswith(start)}

    def write_table(self, path: str, rows: Any) -> FileFacts:
        process = here()
        process.faults.point(f"{self.root}: write")
        if process.faults.is_full():
            message = "no space left"
            raise StorageError(message)
        process.world.files[self.full_path(path)] = File(rows)
        return FileFacts(1, 0)

    def read_table(self, path: str, _columns: list[str] | None = None) -> Any:
        return whole(self.full_path(path)).rows

    def digest(self, path: str) -> str:
        file = here().world.files[self.full_path(path)]
        return blake2b(repr((file.rows, file.is_whole)).encode(), digest_size=16).hexdigest()

    def copy_from(self, other: MemoryFolder, path: str, _size: int) -> None:
        here().world.files.setdefault(self.full_path(path), whole(other.full_path(path)))


def whole(path: str) -> File:
    """Return a file whose bytes are those that were written."""
    file = here().world.files.get(path)
    if file is None or not file.is_whole:
        message = f"{path} is {'gone' if file is None else 'damaged'}"
        raise StorageError(message)
    return file
