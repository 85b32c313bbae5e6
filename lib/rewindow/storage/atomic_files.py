"""Files that appear atomically: a draft gets its final name when it is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from rewindow.storage.locations import filesystem_of, is_uri

_BLOCK = 1 << 20


class Draft:
    """A new file that gets its final name when it is complete. A draft that a killed process leaves behind is harmless."""

    def __init__(self, root: str, directory: str, name: str) -> None:
        """Prepare a file below a table's root. Creates nothing."""
        self._path = Path(root.removeprefix("file://")) / directory / name
        self._file: IO[bytes] | None = None

    def __str__(self) -> str:
        """Return the path, for messages."""
        return str(self._path)

    def open(self) -> IO[bytes]:
        """Create the file. Raises OSError if the file exists or cannot be created."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        self._file = os.fdopen(descriptor, "wb")
        return self._file

    def keep(self, name: str) -> None:
        """Make the file durable under its final name, in the same directory."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._path = self._path.rename(self._path.with_name(name))

    def discard(self) -> None:
        """Close and delete the file."""
        if self._file is not None:
            # On a full disk, closing fails, because it writes the buffered bytes.
            with suppress(OSError):
                self._file.close()
            self._path.unlink(missing_ok=True)


class BucketDraft(Draft):
    """A new object in a bucket. Objects cannot be renamed, so the bytes stay in an unnamed local file until `keep`."""

    def __init__(self, root: str, directory: str, name: str) -> None:
        """Prepare an object below a table's root."""
        self._folder = f"{root.rstrip('/')}/{directory}".rstrip("/")
        self._name = name
        self._file: IO[bytes] | None = None

    def __str__(self) -> str:
        """Return the URI, for messages."""
        return f"{self._folder}/{self._name}"

    def open(self) -> IO[bytes]:
        """Create the unnamed file in ``TMPDIR``."""
        self._file = tempfile.TemporaryFile(prefix="rewindow-")  # noqa: SIM115 - `keep` and `discard` close it
        return self._file

    def keep(self, name: str) -> None:
        """Upload the object, atomically."""
        self._name = name
        if self._file is not None:
            self._file.seek(0)
            system, location = filesystem_of(str(self))
            with self._file, system.open_output_stream(location, compression=None) as stream:
                shutil.copyfileobj(self._file, stream, _BLOCK)

    def discard(self) -> None:
        """Close the file, which deletes it."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


def draft(root: str, directory: str, name: str) -> Draft:
    """Return a draft below a table's root, local or in a bucket."""
    return (BucketDraft if is_uri(root.removeprefix("file://")) else Draft)(root, directory, name)
