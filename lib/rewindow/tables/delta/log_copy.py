"""A local copy of the end of a bucket's Delta log, so that each of its files is requested once (ADR-126).

delta-rs requests each commit two or three times, and a checkpoint in a dozen parts. The copy has the last checkpoint and the
commits since, under their names, and delta-rs reads it like any log on a disk.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from rewindow.storage.objects import Objects
from rewindow.tables.delta.unreadable_log import broken_commit

_HINT = "_last_checkpoint"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_OTHER_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\..+")


class LogCopy:
    """The end of one table's log, in a temporary folder that lasts as long as this object."""

    def __init__(self, path: str) -> None:
        """Bind to a table in a bucket. Nothing is read."""
        self._path, self._objects = path, Objects(path)
        self.root = tempfile.mkdtemp(prefix="rewindow-log-")
        self._removal = weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)
        self._log = Path(self.root) / "_delta_log"
        self._log.mkdir()
        self._is_sent = False

    @property
    def is_there(self) -> bool:
        """Whether the folder was not removed yet. If both are garbage in one cycle, it goes before its handle is released."""
        return self._removal.alive

    def begin(self) -> bool:
        """Copy the last checkpoint and the commits since. False if they cannot be found, or are in another form.

        The log is listed from the checkpoint that it names last. That hint may be old, and commits after it may have been cleaned
        up; a list also shows newer checkpoints. Raises `StorageError` (74) if a commit between others is gone, OSError.
        """
        hint = self._hint()
        names = list(self._objects.names_after("_delta_log", f"{hint:020}." if hint is not None else ""))
        if any(_OTHER_CHECKPOINT.fullmatch(name) and not _CHECKPOINT.fullmatch(name) for name in names):
            return False
        checkpoints = [int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name))]
        first = max(checkpoints) + 1 if checkpoints else 0
        commits = [int(found[1]) for name in names if (found := _COMMIT.fullmatch(name)) and int(found[1]) >= first]
        begin = first if checkpoints else min(commits, default=0)
        if gaps := set(range(begin, max(commits, default=0))) - set(commits):
            raise broken_commit(self._path, min(gaps), "is gone", is_newest=False)
        if begin != first or not (commits or checkpoints):
            return False
        try:
            if checkpoints:
                self._copy(_checkpoint(first - 1))
            for version in commits:
                self._copy(_commit(version))
        except FileNotFoundError:  # cleaned up since it was listed
            return False
        return True

    def note_sent(self) -> None:
        """Take note that this process has sent a commit: reading on ends with it, whether or not it has a successor."""
        self._is_sent = True

    def read_on(self, version: int) -> None:
        """Copy the commits from a version on. Raises OSError."""
        is_last, self._is_sent = self._is_sent, False
        with suppress(FileNotFoundError):
            self._copy(_commit(version))
            while not is_last:
                version += 1
                self._copy(_commit(version))

    def publish_checkpoint(self, version: int) -> None:
        """Write the checkpoint that was made of the copy to the bucket, then the hint to it. Raises OSError."""
        for name in (_checkpoint(version), _HINT):
            self._objects.put(f"_delta_log/{name}", (self._log / name).read_bytes())

    def _hint(self) -> int | None:
        """Return the version of the checkpoint that the log names last, if it is one file; None if not."""
        try:
            said = json.loads(self._read(_HINT))
            return int(said["version"]) if said.get("parts") is None else None
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _copy(self, name: str) -> None:
        (self._log / name).write_bytes(self._read(name))

    def _read(self, name: str) -> bytes:
        found = self._objects.get(f"_delta_log/{name}")
        return found.to_pybytes() if found is not None else b""


def _commit(version: int) -> str:
    return f"{version:020}.json"


def _checkpoint(version: int) -> str:
    return f"{version:020}.checkpoint.parquet"
