"""Keep table paths inside the warehouse: no symbolic link may lead out of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rewindow.errors import ConfigError

_Identity = tuple[str, int, int]
_safe: dict[tuple[str, str], tuple[_Identity, _Identity]] = {}
"""The tables that this process found safe, by warehouse and path, with what both folders were then."""


def safe_path(warehouse: str, full: str) -> str:
    """Return a table's full path. A folder is looked into again only when it has changed, because it can have many files.

    Raises `ConfigError` (78) if a symbolic link on that path, or in that folder, leads out of the warehouse.
    """
    if "://" in warehouse:
        return full
    folders = _identity(warehouse), _identity(full)
    if None not in folders and _safe.get((warehouse, full)) == folders:
        return full
    root, paths = os.path.realpath(warehouse), [full]
    if Path(full).is_dir():
        with os.scandir(full) as entries:
            paths += [entry.path for entry in entries if entry.is_symlink()]
    for path in paths:
        real = os.path.realpath(path)
        if os.path.commonpath((root, real)) != root:
            message = (
                f"{path} leads out of the warehouse through a symbolic link, to {real}. Put the files themselves into the "
                "warehouse, or name their folder as the warehouse"
            )
            raise ConfigError(message)
    if folders[0] is not None and folders[1] is not None:
        _safe[warehouse, full] = folders[0], folders[1]
    return full


def _identity(folder: str) -> _Identity | None:
    """Return where a folder is behind any links, its inode, and when its entries last changed; None if there is none."""
    with suppress(OSError):
        found = os.stat(folder)  # noqa: PTH116 - called hundreds of times in a run
        return os.path.realpath(folder), found.st_ino, found.st_mtime_ns
    return None
