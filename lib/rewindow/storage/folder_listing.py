"""List the files below a table's folder. Local folders are listed with `scandir`, in a fifth of the time that Arrow takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from pyarrow import fs

LOG = "_delta_log"
FEW = 32
"""So many objects are asked for one by one. A listing also has all others of the folder, a request for each 1,000."""
_AT_ONCE = 8


class Listed(NamedTuple):
    """A file below a folder. ``path`` is relative to the folder, with ``/``.

    ``facts`` returns its size and modification time (epoch ms), and raises FileNotFoundError if it is gone.
    """

    path: str
    facts: Callable[[], tuple[int, int]]


def local_files(root: str) -> Iterator[Listed]:
    """Yield every file below a folder, in arbitrary order. Its facts cost a call of `stat`.

    The log of a Delta table in the folder is left out. Raises OSError if a folder cannot be listed; nothing is below one
    that does not exist.
    """
    folders = [""]
    while folders:
        below = folders.pop()
        with suppress(FileNotFoundError), os.scandir(f"{root}/{below}") as entries:
            for entry in entries:
                path = f"{below}{entry.name}"
                if entry.is_dir():
                    folders += [] if path == LOG else [f"{path}/"]
                elif entry.is_file():
                    yield Listed(path, partial(_facts, entry))


def _facts(entry: os.DirEntry[str]) -> tuple[int, int]:
    found = entry.stat()
    return found.st_size, found.st_mtime_ns // 1_000_000


def local_sizes(root: str, paths: Collection[str]) -> dict[str, int]:
    """Return the sizes in bytes of those of these files that exist. ``paths`` are relative to ``root``."""
    sizes = {}
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            sizes[path] = os.stat(f"{root}/{path}").st_size  # noqa: PTH116 - called for each file of a table
    return sizes


def object_sizes(filesystem: Any, root: str, paths: Collection[str]) -> dict[str, int]:
    """Return the sizes in bytes of those of a few objects that exist, with a request for each. ``paths`` as in `local_sizes`."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(lambda path: (path, filesystem.get_file_info(f"{root}/{path}")), paths)
        return {path: info.size for path, info in found if info.type == fs.FileType.File}


def object_files(filesystem: Any, root: str) -> Iterator[Listed]:
    """Yield every object below a prefix, with the facts that one listing states."""
    for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True)):
        path = info.path[len(root) :].lstrip("/")
        if info.type == fs.FileType.File and not path.startswith(f"{LOG}/"):
            yield Listed(path, partial(_stated, info))


def _stated(info: fs.FileInfo) -> tuple[int, int]:
    return info.size, (info.mtime_ns or 0) // 1_000_000
