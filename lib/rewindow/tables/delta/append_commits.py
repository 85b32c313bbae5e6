"""Append commits: those that only add files and record transactions. They are written and read here (ADR-124, ADR-126).

Nearly all commits are of this kind. delta-rs lists the log twice for each, and builds the table's state twice, which costs more
the more commits and files a table has. A commit is one file with the next number, which is put there only if it is absent:
with link(2) on a local disk, with a conditional put in a bucket, as delta-rs does. In a bucket, where opening a table costs
dozens of requests, commits that also remove files are written here, too.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4
from zlib import crc32

from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from rewindow.storage.locations import is_uri
from rewindow.storage.objects import Objects

CHECKPOINT_INTERVAL = "delta.checkpointInterval"
CLEANED_EVERY = 100
"""Delta lists the whole log to find expired commits, so only every so many commits do, as far as the table wants it."""

_DEFAULT_INTERVAL = 100  # of delta-rs
_INTERVAL, _BUCKET_INTERVAL = "10", "3"
"""Opening a table reads the commits since its last checkpoint: 4 ms with 10, 15 and more with delta-rs' 100.

In a bucket each commit is a request, and a checkpoint two.
"""
_LAST_WRITER, _ONLY_READER = 2, 1
"""The protocol versions without anything that an append has to respect."""
_HARMLESS = {
    CHECKPOINT_INTERVAL,
    "delta.appendOnly",
    "delta.logRetentionDuration",
    "delta.deletedFileRetentionDuration",
    "delta.enableExpiredLogCleanup",
}
"""The properties of Delta that concern neither an append nor its files."""
_SIMPLE_PATH = re.compile(r"[\w./=-]+", re.ASCII)
"""Paths that are the same URL-encoded."""
_SIMPLE = {"commitInfo", "txn", "add"}


class AppendCommit(NamedTuple):
    """What an append commit says: the versions of application ids, and the ``add`` actions of its files."""

    transactions: dict[str, int]
    adds: list[dict[str, Any]]


def read_appends(path: str, first: int) -> list[AppendCommit] | None:
    """Return the commits of a log on disk from a version on; None if one is not an append commit, or unreadable."""
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
    """Return whether a commit may be written by `append_commit`: otherwise delta-rs writes it.

    That is the case where a feature or property of the table may concern the commit, and where the removal of expired commits
    is due with it; on a disk also for files that leave the table, and where a checkpoint is due.
    """
    # In a bucket, where delta-rs needs dozens of requests, commits that remove files are written here, too.
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
    """Return after how many commits a new table of ours gets a checkpoint, as a property of the table."""
    return _BUCKET_INTERVAL if is_uri(path) else _INTERVAL


def is_checkpoint_due(path: str, table: DeltaTable) -> bool:
    """Return whether a checkpoint is due with the commit after the version that a handle has read.

    In a bucket not at the same versions for all tables, because otherwise one run would write the checkpoints of all.
    """
    interval = int(table.metadata().configuration.get(CHECKPOINT_INTERVAL, _DEFAULT_INTERVAL))
    shift = crc32(path.encode()) if is_uri(path) else 0
    return (table.version() + 2 + shift) % interval == 0


def append_commit(
    path: str, table: DeltaTable, actions: Sequence[AddAction | RemoveAction], transactions: Mapping[str, int]
) -> None:
    """Write the commit after the version that a handle has read.

    Raises FileExistsError if another commit has that number, OSError if it cannot be written. Only the log says
    whether it landed.
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
    """Write a file that appears complete, unless there is one. A process that dies leaves a hidden draft, which is ignored."""
    folder, name = os.path.split(path)
    draft = f"{folder}/.{name}.{uuid4().hex}.tmp"
    try:
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        # A link fails if the name exists, and shows the whole file at once. A rename would replace another commit.
        os.link(draft, path)
    finally:
        with suppress(OSError):
            os.unlink(draft)  # noqa: PTH108 - several times in a run


def _file(path: str, version: int) -> str:
    return f"{path}/_delta_log/{version:020}.json"
