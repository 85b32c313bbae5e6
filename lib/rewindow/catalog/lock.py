"""One JVM at a time on a local disk: there Delta can tell two of them that they wrote one and the same version."""

from __future__ import annotations

import fcntl
from functools import cache
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from rewindow.errors import AccessError, NotNowError

NAME = ".rewindow.lock"


def hold_local_disk(warehouse_dir: str) -> None:
    """Keep other processes' JVMs from the folder of a catalog's tables while this process lives; elsewhere do nothing.

    ``warehouse_dir``: ``spark.sql.warehouse.dir``. A server of Spark Connect is one JVM for all who come, and needs no lock.
    Raises `NotNowError` (75) if another process holds it, `AccessError` (77) if the folder cannot be written.
    """
    url = urlsplit(warehouse_dir)
    if url.scheme in ("", "file"):
        _locked(unquote(url.path))


@cache
def _locked(folder: str) -> IO[str]:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        file = (Path(folder) / NAME).open("a")
    except OSError as error:
        message = (
            f"{folder}, where the catalog's tables are, cannot be written ({error.strerror}): give this user access"
        )
        raise AccessError(message) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        message = (
            f"another process commits through Spark in {folder}: on a local disk one may at a time. "
            "Wait for it, or let both work through one server (`connect: sc://...`)"
        )
        raise NotNowError(message) from error
    return file
