"""The folder of a landing's sorted runs, and the removal of those that killed landings of this machine left.

A process holds a lock on a file of its folder, which the system releases however the process ends. So a folder whose lock can be
taken belongs to no living process, even if its process number is in use again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from pyarrow import fs

from rewindow.storage.locations import filesystem_of

PREFIX = "rewindow-land-"
_LOCK = "lock"
_ABANDONED_S = 86_400


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Yield a new folder for temporary files, and remove it afterwards. Removes those of killed processes first."""
    remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        taking = Path(folder, f"{_LOCK}.taking")
        with taking.open("w") as lock:
            lock.write(socket.gethostname())
            lock.flush()
            # On a file system without locks, the folder is never taken for an abandoned one.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The lock gets its name last, so that whoever sees it finds it locked.
                taking.rename(Path(folder, _LOCK))
            yield folder


@contextmanager
def shared_folder(root: str) -> Iterator[str]:
    """Yield a new folder for temporary files below one that other machines reach, and remove it afterwards.

    If the process is killed, a later landing removes the folder once it is a day old. Before that, a process
    on another machine may still use it.
    """
    system, location = filesystem_of(root)
    system.create_dir(location, recursive=True)
    for info in system.get_file_info(fs.FileSelector(location)):
        # A bucket has no times of folders, so the name has the time.
        made_s = info.base_name.removeprefix(PREFIX).partition("-")[0]
        if made_s.isdigit() and int(made_s) < time.time() - _ABANDONED_S:
            system.delete_dir(info.path)
    folder = f"{root}/{PREFIX}{int(time.time())}-{uuid4().hex}"
    system.create_dir(f"{location}/{folder.rpartition('/')[2]}")
    try:
        yield folder
    finally:
        with suppress(OSError):
            system.delete_dir(f"{location}/{folder.rpartition('/')[2]}")


def remove_abandoned() -> None:
    """Remove the folders of this user whose processes, of this machine, are certainly dead. Never fails."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_uid == os.getuid() and _is_abandoned(folder / _LOCK):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(lock: Path) -> bool:
    """Return whether the process that held a lock is dead. Raises `OSError` if it lives, or may live."""
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return held.read() == socket.gethostname()
