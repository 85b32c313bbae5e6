"""Keep table paths inside the warehouse: no symbolic link may lead out of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from rewindow.errors import ConfigError

_SMALL = 64
"""A folder with at most so many entries is looked into after every change."""

_Identity = tuple[tuple[int, int], ...]


class _Looked(NamedTuple):
    """A table's folder as it was checked: which folder it was, and when its entries last changed.

    ``entries``: how many it had. ``unseen``: how many changes since were not checked. ``folders``: the paths of its folders.
    """

    folder: _Identity
    changed_ns: int
    entries: int
    unseen: int
    folders: tuple[str, ...]


_safe: dict[tuple[str, str], _Looked] = {}
"""The tables that this process found safe, by warehouse and path."""


def safe_path(warehouse: str, full: str) -> str:
    """Return a table's full path.

    A folder is checked again only when it has changed. One with many entries is checked as a whole only after as many changes as
    it has entries, because each run adds a file. In between, only its subfolders are checked: a link matters where rewindow
    writes below it, and the names of its files are new and random.

    Raises `ConfigError` (78) if a symbolic link on that path, or in that folder, leads out of the warehouse.
    """
    if "://" in warehouse:
        return full
    state, checked = _identity(warehouse, full), _safe.get((warehouse, full))
    # There is no such folder, or a link on the way to it, which may change.
    if state is None:
        _check(warehouse, [full, *_inside(full)[1]])
        return full
    folder, changed_ns = state
    if checked is not None and checked.folder == folder:
        if checked.changed_ns == changed_ns:
            return full
        if max(_SMALL, checked.unseen) < checked.entries:
            _check(warehouse, [*checked.folders, f"{full}/_delta_log"])
            _safe[warehouse, full] = checked._replace(changed_ns=changed_ns, unseen=checked.unseen + 1)
            return full
    entries, links, folders = _inside(full)
    _check(warehouse, [full, *links])
    _safe[warehouse, full] = _Looked(folder, changed_ns, entries, 0, folders)
    return full


def _check(warehouse: str, paths: list[str]) -> None:
    root = os.path.realpath(warehouse)
    for path in paths:
        real = os.path.realpath(path)
        if os.path.commonpath((root, real)) != root:
            raise ConfigError(
                "path-leaves-warehouse",
                "{path} leads out of the warehouse through a symbolic link, to {target}. Put the files "
                "themselves into the warehouse, or name their folder as the warehouse",
                path=path,
                target=real,
            )


def _inside(full: str) -> tuple[int, list[str], tuple[str, ...]]:
    """Return how many entries a folder has, and the paths of its links and of its folders."""
    if not Path(full).is_dir():
        return 0, [], ()
    with os.scandir(full) as listing:
        entries = list(listing)
    links = [entry.path for entry in entries if entry.is_symlink()]
    return len(entries), links, tuple(entry.path for entry in entries if entry.is_dir())


def _identity(warehouse: str, full: str) -> tuple[_Identity, int] | None:
    """Return which folders the warehouse and each folder below it on a path are, and when the last one changed.

    None if one does not exist, or is a link: a folder that was moved away and linked to is the same folder elsewhere.
    """
    path, identities = warehouse.rstrip("/"), []
    try:
        status = os.stat(warehouse)  # noqa: PTH116 - called hundreds of times in a run
        identities.append((status.st_dev, status.st_ino))
        for part in full[len(path) :].strip("/").split("/"):
            path = f"{path}/{part}"
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                return None
            identities.append((status.st_dev, status.st_ino))
    except OSError:
        return None
    return tuple(identities), status.st_mtime_ns
