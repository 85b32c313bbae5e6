"""What the folder of a table's log says without being listed: whether a commit is there, and which file it is."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.tables.delta.unreadable_log import broken_commit

FileMark = tuple[int, int, int]
"""The identity of a file: its inode, when it was last modified (epoch ns), its size in bytes."""

_COMMIT = re.compile(r"\d{20}\.json")
_IN_BUCKET: FileMark = (0, 0, 0)


def is_in_bucket(path: str, version: int) -> bool:
    """Return whether a log in a bucket has a commit. Raises OSError if the bucket does not answer."""
    system, location = filesystem_of(path)
    try:
        system.open_input_file(f"{location}/_delta_log/{version:020}.json").close()
    except FileNotFoundError:
        return False
    return True


def transactions_of(path: str, versions: range) -> dict[str, int | None] | None:
    """Return the transactions of some commits, which Delta would look for in the whole log; None if they cannot be read."""
    system, location = filesystem_of(path)
    found: dict[str, int | None] = {}
    try:
        for version in versions:
            with system.open_input_file(f"{location}/_delta_log/{version:020}.json") as file:
                lines = file.read().splitlines()
            for action in (json.loads(line) for line in lines if b'"txn"' in line):
                if "txn" in action:
                    found[action["txn"]["appId"]] = action["txn"]["version"]
    except (OSError, ValueError, KeyError):
        return None
    return found


def oldest_commit(path: str) -> int:
    """Return the oldest version whose commit a log's folder has. Raises `StorageError` (74) if a commit is an empty file."""
    try:
        with os.scandir(f"{path}/_delta_log") as entries:
            commits = {int(entry.name[:20]): entry for entry in entries if _COMMIT.fullmatch(entry.name)}
            empty = [version for version in commits if commits[version].stat().st_size == 0]
    except (FileNotFoundError, NotADirectoryError):  # no table
        return 0
    if empty:
        raise broken_commit(path, min(empty), "is empty", is_newest=min(empty) == max(commits))
    return min(commits, default=0)


def has_newer(path: str, version: int) -> bool:
    """Return whether a log has the next version. Raises `StorageError` (74) if it or one after it is an empty file."""
    newer = version
    while (found := file_mark(path, newer + 1)) is not None:
        newer += 1
        if found[2] == 0:
            # As a power failure leaves it behind. Delta would lose without a word what it held.
            raise broken_commit(path, newer, "is empty", is_newest=file_mark(path, newer + 1) is None)
    return newer > version


def checkpointed(path: str) -> int:
    """Return the version of a log's last checkpoint; 0 for none."""
    try:
        return int(json.loads(Path(f"{path}/_delta_log/_last_checkpoint").read_bytes())["version"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError):
        return 0


def changed_at(path: str) -> int:
    """Return when the log's folder last changed; 0 if it does not exist."""
    try:
        return os.stat(f"{path}/_delta_log").st_mtime_ns  # noqa: PTH116 - called hundreds of times in a run
    except (FileNotFoundError, NotADirectoryError):
        return 0


def file_mark(path: str, version: int) -> FileMark | None:
    """Return the identity of a commit's file; None if it does not exist. In a bucket all are taken to be there."""
    if is_uri(path):
        return _IN_BUCKET
    try:
        found = os.stat(f"{path}/_delta_log/{version:020}.json")  # noqa: PTH116 - called hundreds of times in a run
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
