"""Files that come into being: drafts, which get their name when they are whole, and the marks of those who are at work."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from pyarrow import fs

from rewindow.storage.locations import is_uri, opened

_BLOCK = 1 << 20


def touch(path: str) -> None:
    """Make a small file, or make it young again."""
    system, place = opened(path)
    if is_uri(path):
        with system.open_output_stream(place, compression=None) as stream:
            stream.write(b".")
    else:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).touch()


def modified_s(path: str) -> float | None:
    """Return when a file was last changed, in seconds since 1970; None if there is none."""
    system, place = opened(path)
    info = system.get_file_info(place)
    return None if info.type != fs.FileType.File else (info.mtime_ns or 0) / 1e9


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    system, place = opened(path)
    with suppress(FileNotFoundError):
        system.delete_file(place)


class Draft:
    """A new file that is being written: it gets its name when it is whole, and what is left of a failure is no harm."""

    def __init__(self, root: str, directory: str, name: str) -> None:
        """Prepare a file below a table's root. Nothing is made yet."""
        self._place = Path(root.removeprefix("file://")) / directory / name
        self._file: IO[bytes] | None = None

    def __str__(self) -> str:
        """Return where it is, for people."""
        return str(self._place)

    def open(self) -> IO[bytes]:
        """Make the file. Raises OSError if it is there already, or cannot be made."""
        self._place.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        self._file = os.fdopen(descriptor, "wb")
        return self._file

    def keep(self, name: str) -> None:
        """Make it durable under its last name, in the same directory."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._place = self._place.rename(self._place.with_name(name))

    def discard(self) -> None:
        """Give it up: close and delete it."""
        if self._file is not None:
            self._file.close()
            self._place.unlink(missing_ok=True)


class BucketDraft(Draft):
    """The same in a bucket, where nothing is renamed: the bytes wait in a nameless file of this machine."""

    def __init__(self, root: str, directory: str, name: str) -> None:
        """Prepare an object below a table's root."""
        self._folder = f"{root.rstrip('/')}/{directory}".rstrip("/")
        self._name = name
        self._file: IO[bytes] | None = None

    def __str__(self) -> str:
        """Return where it will be, for people."""
        return f"{self._folder}/{self._name}"

    def open(self) -> IO[bytes]:
        """Make the nameless file, in ``TMPDIR``."""
        self._file = tempfile.TemporaryFile(prefix="rewindow-")  # noqa: SIM115 - `keep` and `discard` close it
        return self._file

    def keep(self, name: str) -> None:
        """Put the object. It is there, whole, or not at all."""
        self._name = name
        if self._file is not None:
            self._file.seek(0)
            system, place = opened(str(self))
            with self._file, system.open_output_stream(place, compression=None) as stream:
                shutil.copyfileobj(self._file, stream, _BLOCK)

    def discard(self) -> None:
        """Give it up."""
        if self._file is not None:
            self._file.close()


def draft(root: str, directory: str, name: str) -> Draft:
    """Return a new file below a table's root, wherever that is."""
    return (BucketDraft if is_uri(root.removeprefix("file://")) else Draft)(root, directory, name)
