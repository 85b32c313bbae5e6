"""Read and write the log of a Delta table without delta-rs, where that is faster.

A look at single files is enough to see whether a log has changed, so the log's folder is not listed. `LogCopy` copies the end
of a bucket's log to a local folder: the last checkpoint and the commits since. delta-rs reads the copy like any log on a
disk. From the bucket, it would request each commit two or three times (ADR-126).

Append commits only add files and record transactions. Nearly all commits are of this kind. This module writes and reads them
itself, because delta-rs lists the log twice for each commit, and builds the table's state twice (ADR-124). A commit is a file
whose name is the next number. As in delta-rs, the file is created only if it is absent: with link(2) on a local disk, and
with a conditional put in a bucket. In a bucket, this module also writes commits that remove files, because opening a table
with delta-rs costs dozens of requests.
"""

from __future__ import annotations

import json
import os
import re
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4
from zlib import crc32

from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.storage.objects import Objects
from rewindow.storage.scratch import make_folder, remove_folder
from rewindow.tables.delta.broken_log import COMMIT_FILE, HINT, broken_commit

FileMark = tuple[int, int, int]
"""The identity of a file: its inode, when it was last modified (epoch ns), its size in bytes."""

_IN_BUCKET: FileMark = (0, 0, 0)
_WHOLE_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_OTHER_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\..+")


def is_in_bucket(path: str, version: int) -> bool:
    """Return whether a log in a bucket has the commit of a version. Raises OSError if the request fails."""
    system, location = filesystem_of(path)
    try:
        system.open_input_file(f"{location}/_delta_log/{version:020}.json").close()
    except FileNotFoundError:
        return False
    return True


def transactions_of(path: str, versions: range) -> dict[str, int | None] | None:
    """Return the last version of each application id in the commits ``versions``; None if one of them is unreadable.

    This is faster than delta-rs, which would search the whole log for an id.
    """
    system, location = filesystem_of(path)
    transactions: dict[str, int | None] = {}
    try:
        for version in versions:
            with system.open_input_file(f"{location}/_delta_log/{version:020}.json") as file:
                lines = file.read().splitlines()
            for action in (json.loads(line) for line in lines if b'"txn"' in line):
                if "txn" in action:
                    transactions[action["txn"]["appId"]] = action["txn"]["version"]
    except (OSError, ValueError, KeyError):
        return None
    return transactions


def oldest_commit(path: str) -> int:
    """Return the oldest version whose commit is in a log's folder. Raises `StorageError` (74) if a commit is an empty file."""
    try:
        with os.scandir(f"{path}/_delta_log") as entries:
            commits = {int(entry.name[:20]): entry for entry in entries if COMMIT_FILE.fullmatch(entry.name)}
            empty = [version for version in commits if commits[version].stat().st_size == 0]
    except (FileNotFoundError, NotADirectoryError):  # no table
        return 0
    if empty:
        raise broken_commit(path, min(empty), "is empty", is_newest=min(empty) == max(commits))
    return min(commits, default=0)


def has_newer(path: str, version: int) -> bool:
    """Return whether a log has a newer commit than ``version``.

    Raises `StorageError` (74) if a newer commit is an empty file.
    """
    newer = version
    while (mark := file_mark(path, newer + 1)) is not None:
        newer += 1
        if mark[2] == 0:
            # A power failure may leave an empty file behind. Delta would read it without an error, and the commit would be lost.
            raise broken_commit(path, newer, "is empty", is_newest=file_mark(path, newer + 1) is None)
    return newer > version


def changed_at(path: str) -> int:
    """Return when the log's folder last changed (epoch ns); 0 if the folder does not exist."""
    try:
        return os.stat(f"{path}/_delta_log").st_mtime_ns  # noqa: PTH116 - called hundreds of times in a run
    except (FileNotFoundError, NotADirectoryError):
        return 0


def file_mark(path: str, version: int) -> FileMark | None:
    """Return the identity of a commit's file; None if it does not exist. In a bucket, every file is assumed to exist."""
    if is_uri(path):
        return _IN_BUCKET
    try:
        status = os.stat(f"{path}/_delta_log/{version:020}.json")  # noqa: PTH116 - called hundreds of times in a run
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


class LogCopy:
    """A copy of the end of one table's log, in a temporary folder that lasts as long as this object."""

    def __init__(self, path: str) -> None:
        """Bind to a table in a bucket. Nothing is read."""
        self._path, self._objects = path, Objects(path)
        self.root = make_folder()
        self._removal = weakref.finalize(self, remove_folder, self.root)
        self._log = Path(self.root) / "_delta_log"
        self._log.mkdir()
        self._is_sent = False

    @property
    def is_there(self) -> bool:
        """Whether the folder still exists. If the copy and a handle are collected in one cycle, the folder may go first."""
        return self._removal.alive

    def begin(self) -> bool:
        """Copy the last checkpoint and the commits after it.

        Return False if commits are missing or a checkpoint has several files.

        Raises `StorageError` (74) if a commit before the newest one is gone, OSError if a request fails.
        """
        hint = self._hint()
        # The hint (`_last_checkpoint`) may be outdated, and commits after its checkpoint may have been cleaned up. A listing
        # shows newer checkpoints.
        names = list(self._objects.names_after("_delta_log", f"{hint:020}." if hint is not None else ""))
        if any(_OTHER_CHECKPOINT.fullmatch(name) and not _WHOLE_CHECKPOINT.fullmatch(name) for name in names):
            return False
        checkpoints = [int(match[1]) for name in names if (match := _WHOLE_CHECKPOINT.fullmatch(name))]
        start = max(checkpoints) + 1 if checkpoints else 0
        commits = [int(match[1]) for name in names if (match := COMMIT_FILE.fullmatch(name)) and int(match[1]) >= start]
        begin = start if checkpoints else min(commits, default=0)
        if gaps := set(range(begin, max(commits, default=0))) - set(commits):
            raise broken_commit(self._path, min(gaps), "is gone", is_newest=False)
        if begin != start or not (commits or checkpoints):
            return False
        try:
            if checkpoints:
                self._copy(_checkpoint_file(start - 1))
            for version in commits:
                self._copy(_commit_file(version))
        except FileNotFoundError:
            # Delta has cleaned up the file after it was listed.
            return False
        return True

    def note_sent(self) -> None:
        """Record that this process has sent a commit. The next `read_on` requests only that commit, and none after it."""
        self._is_sent = True

    def read_on(self, version: int) -> None:
        """Copy the commits from a version on. Raises OSError."""
        is_last, self._is_sent = self._is_sent, False
        with suppress(FileNotFoundError):
            self._copy(_commit_file(version))
            while not is_last:
                version += 1
                self._copy(_commit_file(version))

    def publish_checkpoint(self, version: int) -> None:
        """Copy a checkpoint that delta-rs wrote in this folder to the bucket, then `_last_checkpoint`. Raises OSError."""
        for name in (_checkpoint_file(version), HINT):
            self._objects.put(f"_delta_log/{name}", (self._log / name).read_bytes())

    def _hint(self) -> int | None:
        """Return the version of the checkpoint that `_last_checkpoint` names; None if the checkpoint is not a single file."""
        try:
            said = json.loads(self._read(HINT))
            return int(said["version"]) if said.get("parts") is None else None
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _copy(self, name: str) -> None:
        (self._log / name).write_bytes(self._read(name))

    def _read(self, name: str) -> bytes:
        data = self._objects.get(f"_delta_log/{name}")
        return data.to_pybytes() if data is not None else b""


def _commit_file(version: int) -> str:
    return f"{version:020}.json"


def _checkpoint_file(version: int) -> str:
    return f"{version:020}.checkpoint.parquet"


CHECKPOINT_INTERVAL = "delta.checkpointInterval"
CLEANED_EVERY = 100
"""Delta lists the whole log to find expired commits, so they are removed at most once in this many commits."""

_DEFAULT_INTERVAL = 100  # the interval of delta-rs
_INTERVAL, _BUCKET_INTERVAL = "10", "3"
"""After how many commits a new table gets a checkpoint, on a disk and in a bucket.

Opening a table reads the commits since its last checkpoint. With an interval of 10 commits, that takes 4 ms. With the
interval of delta-rs, 100 commits, it takes 15 ms or more. In a bucket, each commit takes one request, and a checkpoint two.
"""
_LAST_WRITER, _ONLY_READER = 2, 1
"""The highest writer version and the only reader version without features that an append has to respect."""
_HARMLESS = {
    CHECKPOINT_INTERVAL,
    "delta.appendOnly",
    "delta.logRetentionDuration",
    "delta.deletedFileRetentionDuration",
    "delta.enableExpiredLogCleanup",
}
"""The properties of Delta that concern neither an append nor its files."""
_SIMPLE_PATH = re.compile(r"[\w./=-]+", re.ASCII)
"""Matches paths that URL encoding does not change."""
_SIMPLE = {"commitInfo", "txn", "add"}


class AppendCommit(NamedTuple):
    """The content of an append commit: the version of each application id, and the ``add`` actions of its files."""

    transactions: dict[str, int]
    adds: list[dict[str, Any]]


def read_appends(path: str, first: int) -> list[AppendCommit] | None:
    """Return the commits of a log on disk from version ``first`` on; None if one of them is no append or is unreadable."""
    commits: list[AppendCommit] = []
    while True:
        try:
            text = Path(_file(path, first + len(commits))).read_bytes()
        except FileNotFoundError:
            return commits
        except OSError:
            return None
        commit = _parse(text)
        if commit is None:
            return None
        commits.append(commit)


def _parse(text: bytes) -> AppendCommit | None:
    if not text:
        return None
    transactions, adds = {}, []
    try:
        for action in (json.loads(line) for line in text.splitlines()):
            if not action.keys() <= _SIMPLE:
                return None
            if "txn" in action:
                transactions[action["txn"]["appId"]] = action["txn"]["version"]
            elif "add" in action:
                if action["add"].get("deletionVector"):
                    return None
                adds.append(action["add"])
    except (ValueError, KeyError, AttributeError):
        return None
    return AppendCommit(transactions, adds)


def is_append(actions: Sequence[AddAction | RemoveAction], path: str, table: DeltaTable) -> bool:
    """Return whether `append_commit` may write a commit. Otherwise delta-rs must write it.

    delta-rs must write a commit if a feature or property of the table may concern the commit, or if expired commits must be
    removed after it. On a disk, delta-rs must also write commits that remove files, and commits after which a checkpoint is
    due.
    """
    # In a bucket, delta-rs needs dozens of requests, so commits that remove files are written here, too.
    written = (AddAction, RemoveAction) if is_uri(path) else AddAction
    if not all(isinstance(action, written) and _SIMPLE_PATH.fullmatch(action.path) for action in actions):
        return False
    protocol, configuration = table.protocol(), table.metadata().configuration
    has_features = protocol.reader_features is not None or protocol.writer_features is not None
    if has_features or protocol.min_reader_version > _ONLY_READER or protocol.min_writer_version > _LAST_WRITER:
        return False
    if any(key.startswith("delta.") and key not in _HARMLESS for key in configuration):
        return False
    number, interval = table.version() + 1, configuration.get(CHECKPOINT_INTERVAL, str(_DEFAULT_INTERVAL))
    if not interval.isdigit() or not int(interval) or number % CLEANED_EVERY == 0:
        return False
    return is_uri(path) or not is_checkpoint_due(path, table)


def checkpoint_interval(path: str) -> str:
    """Return after how many commits a new table of rewindow gets a checkpoint, as the value of a table property."""
    return _BUCKET_INTERVAL if is_uri(path) else _INTERVAL


def is_checkpoint_due(path: str, table: DeltaTable) -> bool:
    """Return whether a checkpoint is due after the next commit, which follows the version that a handle has read."""
    interval = int(table.metadata().configuration.get(CHECKPOINT_INTERVAL, _DEFAULT_INTERVAL))
    # In a bucket, the versions that get a checkpoint differ from table to table. So no run writes the checkpoints of all
    # tables.
    shift = crc32(path.encode()) if is_uri(path) else 0
    return (table.version() + 2 + shift) % interval == 0


def append_commit(
    path: str, table: DeltaTable, actions: Sequence[AddAction | RemoveAction], transactions: Mapping[str, int]
) -> None:
    """Write a commit as the version after the one that a handle has read.

    Raises FileExistsError if another commit has that version, OSError if the write fails. After an OSError, only the log
    shows whether the commit landed.
    """
    info = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": json.dumps(table.metadata().partition_columns)},
        "engineInfo": "rewindow",
    }
    actions_of_commit: list[dict[str, Any]] = [
        {"commitInfo": info},
        *(
            {"add": _add(action)} if isinstance(action, AddAction) else {"remove": _remove(action)}
            for action in actions
        ),
        *({"txn": {"appId": app_id, "version": version}} for app_id, version in transactions.items()),
    ]
    data = "".join(f"{json.dumps(action)}\n" for action in actions_of_commit).encode()
    if is_uri(path):
        Objects(path).put(_file("", table.version() + 1).lstrip("/"), data, only_if_absent=True)
    else:
        _link_if_absent(_file(path, table.version() + 1), data)


def _add(action: AddAction) -> dict[str, Any]:
    return {
        "path": action.path,
        "partitionValues": dict(action.partition_values),
        "size": action.size,
        "modificationTime": action.modification_time,
        "dataChange": action.data_change,
        "stats": action.stats,
    }


def _remove(action: RemoveAction) -> dict[str, Any]:
    return {
        "path": action.path,
        "deletionTimestamp": action.deletion_timestamp,
        "dataChange": action.data_change,
        "partitionValues": dict(action.partition_values or {}),
    }


def _link_if_absent(path: str, data: bytes) -> None:
    """Create a file that appears with all its bytes. Raises FileExistsError. A process that dies leaves a hidden draft."""
    folder, name = os.path.split(path)
    draft = f"{folder}/.{name}.{uuid4().hex}.tmp"
    try:
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        # A link fails if the name exists, and the file appears with all its bytes. A rename would replace another commit.
        os.link(draft, path)
    finally:
        with suppress(OSError):
            os.unlink(draft)  # noqa: PTH108 - several times in a run


def _file(path: str, version: int) -> str:
    return f"{path}/_delta_log/{version:020}.json"
