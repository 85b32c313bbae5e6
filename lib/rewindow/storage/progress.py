"""Progress keeps the heartbeat of an attempt alive, in the command's process and in Spark's workers.

Progress is made by steps of commands, finished tasks, and batches of records. In the command's process, a thread touches the
heartbeat file as long as there was progress recently (`control.heartbeat`). A worker touches the file itself when it reads
records, because Spark tells the command only which tasks have finished.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pyarrow import fs

from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.storage.objects import Objects


def touch(path: str) -> None:
    """Create a small file, or update its modification time."""
    system, location = filesystem_of(path)
    if is_uri(path):
        with system.open_output_stream(location, compression=None) as stream:
            stream.write(b".")
    else:
        Path(location).parent.mkdir(parents=True, exist_ok=True)
        Path(location).touch()


def modified_s(path: str) -> float | None:
    """Return the modification time of a file in seconds since 1970; None if there is no file."""
    system, location = filesystem_of(path)
    info = system.get_file_info(location)
    return None if info.type != fs.FileType.File else (info.mtime_ns or 0) / 1e9


def remove(path: str) -> None:
    """Remove a file if it exists."""
    if is_uri(path):
        folder, _, name = path.rpartition("/")
        Objects(folder).delete(name)
    else:
        Path(path).unlink(missing_ok=True)


def remove_older(folder: str, before_s: float) -> None:
    """Remove the files of a folder that were last modified before a time in seconds since 1970."""
    system, location = filesystem_of(folder)
    for info in system.get_file_info(fs.FileSelector(location, allow_not_found=True)):
        if info.type == fs.FileType.File and (info.mtime_ns or 0) / 1e9 < before_s:
            remove(f"{folder}/{info.base_name}")


_Item = TypeVar("_Item")
BEAT_SECONDS = 5


class _Progress:
    last = 0.0
    """When this process last made progress, by the monotonic clock."""
    heartbeat: str | None = None
    """The heartbeat file of the attempt that this process executes. In a worker, the file of the attempt to which its task
    belongs."""
    is_worker = False


def progressed() -> None:
    """Record progress. In a worker, also touch the heartbeat file of its attempt, at most every few seconds."""
    now = time.monotonic()
    if not _Progress.is_worker:
        _Progress.last = now
    elif _Progress.heartbeat and now - _Progress.last >= BEAT_SECONDS:
        _Progress.last = now
        # A worker may not be able to reach the file. The command removes the file when it ends.
        with suppress(OSError):
            if modified_s(_Progress.heartbeat) is not None:
                touch(_Progress.heartbeat)


def counted(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield items, such as batches of records. Each one is progress."""
    for item in items:
        progressed()
        yield item


def seconds_since() -> float:
    """Return the seconds since the last progress of this process."""
    return time.monotonic() - _Progress.last


def heartbeat_of_this() -> str | None:
    """Return the heartbeat file of the attempt that this process executes, for `work_for` in workers."""
    return _Progress.heartbeat


def execute_for(heartbeat: str | None) -> None:
    """Begin an attempt in this process, with this heartbeat file. If ``heartbeat`` is None, end the attempt."""
    progressed()
    _Progress.heartbeat = heartbeat


def work_for(heartbeat: str | None) -> None:
    """Make this process a worker of the attempt with this heartbeat file."""
    _Progress.is_worker, _Progress.heartbeat = True, heartbeat
