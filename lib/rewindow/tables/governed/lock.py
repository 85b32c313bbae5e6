"""Allow one JVM at a time on a local disk, where Delta can acknowledge the same version to two of them."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rewindow.errors import AccessError, NotNowError

NAME = ".rewindow.lock"


def hold_local_disk(warehouse_dir: str) -> None:
    """Lock the local folder of a catalog's tables against other JVMs while this process lives; elsewhere do nothing.

    ``warehouse_dir``: ``spark.sql.warehouse.dir``. A Spark Connect server is one JVM for all clients and needs no lock.
    Raises `NotNowError` (75) if another process holds it, `AccessError` (77) if the folder cannot be written.
    """
    url = urlsplit(warehouse_dir)
    if url.scheme in ("", "file"):
        _locked(unquote(url.path))


@cache
def _locked(folder: str) -> int:
    """Return the descriptor that holds the lock until this process ends."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{folder}/{NAME}", os.O_CREAT | os.O_WRONLY, 0o644)
    except OSError as error:
        raise AccessError(
            "catalog-folder-not-writable",
            "{folder}, where the catalog's tables are, cannot be written ({reason}): give this user access",
            folder=folder,
            reason=error.strerror,
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise NotNowError(
            "catalog-folder-locked",
            "another process commits through Spark in {folder}, and a local disk allows one at a time. "
            "Wait for it, or let both use one server (`connect: sc://...`)",
            folder=folder,
        ) from error
    return lock
