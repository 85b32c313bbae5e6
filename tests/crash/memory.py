"""Simulated storage in memory, with Delta's rules and the faults of disks and networks: tables, files, processes.

A table is a list of versions. A handle sees the versions that existed when it was opened. A commit through it fails if a
later version has the same application id or removes the same file. As in delta-rs, a fresh handle may commit an id's version
again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from deltalake.exceptions import CommitFailedError

from rewindow.errors import StorageError
from rewindow.tables.delta.files import FileFacts, Whole

ROOT = "/memory"


class Faults:
    """What can go wrong at each point. This base class has no faults."""

    def point(self, name: str) -> None:
        """Pass a point, at which the process may be paused or die."""

    def answer(self, name: str) -> str:
        """Return the fate of a commit: ``ok``, ``lost``, ``refused``, ``made up`` or ``delayed``."""
        return "ok"

    def staleness(self, name: str) -> int:
        """Return how many of the newest versions a listing omits."""
        return 0

    def later(self, send: Callable[[], None]) -> None:
        """Keep a delayed commit, to send it later."""

    def is_full(self) -> bool:
        """Return whether the disk is full."""
        return False


@dataclass(frozen=True)
class Version:
    """One commit."""

    transactions: Mapping[str, int]
    adds: tuple[Any, ...]
    removes: frozenset[str]


@dataclass
class File:
    """A file: its rows, and whether its bytes are still as written."""

    rows: Any
    size: int = 1
    is_whole: bool = True


@dataclass
class World:
    """The storage: tables by path, files by path."""

    tables: dict[str, list[Version]] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    snapshots: int = 0


_here = threading.local()


def here() -> Process:
    """Return the simulated process of this thread."""
    process: Process = _here.process
    return process


@dataclass
class Process:
    """A simulated process: the storage that it uses, and its faults."""

    world: World
    faults: Faults
    name: str = "one"

    def enter(self) -> None:
        """Make this the process of the current thread."""
        _here.process = self


@dataclass
class Handle:
    """A table at the version at which it was opened."""

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
    """The action that adds a file to a table."""

    path: str
    file: Any


@dataclass(frozen=True)
class Remove:
    """The action that removes a file from a table."""

    path: str


def open_table(path: str, _options: object = None, **_how: object) -> Handle | None:
    """Replace `tables.open_table`."""
    process = here()
    process.faults.point(f"{path}: open")
    versions = process.world.tables.get(path)
    if versions is None:
        return None
    lacks = process.faults.staleness(path)
    return Handle(path, tuple(versions[: max(0, len(versions) - lacks)]))


def create_table(path: str, *_args: object, **_options: object) -> Handle:
    """Replace `tables.create_table`."""
    process = here()
    process.faults.point(f"{path}: create")
    process.world.tables.setdefault(path, [])
    found = open_table(path)
    assert found is not None
    return found


def commit_actions(
    table: Handle, actions: Sequence[Add | Remove], app_id: str, version: int, closes: Sequence[str] = ()
) -> None:
    """Replace `tables.commit_actions`: one commit, whose answer the faults decide."""
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
    """Replaces `files.Folder`."""

    def __init__(self, root: str) -> None:
        self.root = root

    def full_path(self, path: str) -> str:
        return f"{self.root}/{path}"

    def facts(self, path: str) -> FileFacts | None:
        file = here().world.files.get(self.full_path(path))
        return None if file is None else FileFacts(file.size, 0)

    def sizes(self, _paths: Collection[str] | None = None) -> dict[str, int]:
        start = f"{self.root}/"
        return {path.removeprefix(start): 1 for path in here().world.files if path.startswith(start)}

    def write_table(self, path: str, rows: Any) -> FileFacts:
        process = here()
        process.faults.point(f"{self.root}: write")
        if process.faults.is_full():
            raise StorageError("memory-disk-full", "no space left")
        process.world.files[self.full_path(path)] = File(rows)
        return FileFacts(1, 0)

    def read_table(self, path: str, _columns: list[str] | None = None) -> Any:
        return whole(self.full_path(path)).rows

    def read_whole(self, path: str, columns: list[str]) -> Whole | None:
        facts = self.facts(path)
        return None if facts is None else Whole(facts.bytes, self.digest(path), lambda: self.read_table(path, columns))

    def digest(self, path: str) -> str:
        file = here().world.files[self.full_path(path)]
        return blake2b(repr((file.rows, file.is_whole)).encode(), digest_size=16).hexdigest()

    def copy_from(self, other: MemoryFolder, path: str, _size: int) -> None:
        here().world.files.setdefault(self.full_path(path), whole(other.full_path(path)))


def whole(path: str) -> File:
    """Return a file. Raises `StorageError` if it is gone or its bytes have changed."""
    file = here().world.files.get(path)
    if file is None or not file.is_whole:
        fault = "gone" if file is None else "damaged"
        raise StorageError("memory-file-broken", "{path} is {fault}", path=path, fault=fault)
    return file
