"""Heartbeat files: small files whose modification time says when an attempt last made progress."""

from __future__ import annotations

from pathlib import Path

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
