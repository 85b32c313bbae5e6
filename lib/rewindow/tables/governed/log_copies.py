"""Landed blocks as local files, for commands that read a few partitions of logs again.

The blocks are written below a temporary folder under the names that they were staged with, which state their checksums.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rewindow.contracts.tasks import LogFile
from rewindow.tables.governed.journal import ROOT, SparkJournal

_AT_ONCE = 16
"""The blocks that one query collects: they pass through this process's memory."""


class LogCopies:
    """The copies that a command has made. They last as long as this object."""

    def __init__(self) -> None:
        """Nothing is read or created."""
        self._folder: Path | None = None
        self._made: dict[str, str] = {}

    def files(self, journal: SparkJournal, parts: Sequence[LogFile]) -> list[LogFile]:
        """Return landed blocks as files, in the same order. Each is read once. Raises `StorageError` (74) for a lost block."""
        missing = [part.path for part in parts if part.path not in self._made]
        for start in range(0, len(missing), _AT_ONCE):
            some = {path.removeprefix(ROOT): path for path in missing[start : start + _AT_ONCE]}
            for path, data in journal.block_data(some).items():
                self._made[some[path]] = self._write(path, data)
        return [replace(part, path=self._made[part.path]) for part in parts]

    def _write(self, path: str, data: bytes) -> str:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rewindow-log-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        folder = self._folder / str(len(self._made))
        folder.mkdir()
        file = folder / path.rpartition("/")[2]
        file.write_bytes(data)
        return str(file)
