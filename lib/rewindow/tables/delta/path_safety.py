"""What lies in the warehouse lies there: no symbolic link leads out of it."""

from __future__ import annotations

import os
from pathlib import Path

from rewindow.errors import ConfigError


def safe_path(warehouse: str, full: str) -> str:
    """Return a table's full path.

    Raises `ConfigError` (78) if a symbolic link leads out of the warehouse on the way there, or from that folder itself.
    """
    if "://" in warehouse:
        return full
    inside, places = os.path.realpath(warehouse), [full]
    if Path(full).is_dir():
        with os.scandir(full) as entries:
            places += [entry.path for entry in entries if entry.is_symlink()]
    for place in places:
        real = os.path.realpath(place)
        if os.path.commonpath((inside, real)) != inside:
            message = (
                f"{place} leads by a symbolic link out of the warehouse, to {real}: what lies there may be anybody's. Put "
                "the files themselves into the warehouse, or name their folder as the warehouse"
            )
            raise ConfigError(message)
    return full
