"""Keep table paths inside the warehouse: no symbolic link may lead out of it."""

from __future__ import annotations

import os
from pathlib import Path

from rewindow.errors import ConfigError


def safe_path(warehouse: str, full: str) -> str:
    """Return a table's full path.

    Raises `ConfigError` (78) if a symbolic link on that path, or in that folder, leads out of the warehouse.
    """
    if "://" in warehouse:
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
    return full
