"""Temporary folders. They contain copies of rows, so they must not stay behind, however a process ends.

A process keeps all its temporary folders in one folder, with a file on which it holds a lock. This folder is removed with the
last of the temporary folders, or when the process gets SIGTERM or SIGHUP (`remove_at_signals`). If a process is killed, the
system releases its lock. The next process on the machine that needs a temporary folder then finds the abandoned folder and
removes it, even if another process has got the same process id by then.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import _exit
from pathlib import Path
from typing import IO, ClassVar
from uuid import uuid4

PREFIX = "rewindow-"
_LOCK, _TAKING, _MAKING = "lock", "lock.taking", "(being made)"
_TRIES = 5
_SECONDS_TO_TAKE = 60
"""A living process gets its lock within this time, unless the file system has no locks."""
_MUTEX = threading.RLock()


class _Own:
    """The folder that contains this process's temporary folders; None while there are none. A forked process has its own."""

    root: Path | None = None
    lock: IO[str] | None = None
    folders: ClassVar[set[str]] = set()
    process = 0


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Yield a new temporary folder, and remove it afterwards."""
    folder = make_folder()
    try:
        yield folder
    finally:
        remove_folder(folder)


def make_folder() -> str:
    """Return a new temporary folder. First remove the folders of processes that were killed."""
    with _MUTEX:
        if _Own.process != os.getpid():
            _Own.root, _Own.process = None, os.getpid()
            _Own.folders.clear()
        # Python may collect garbage at any time, and so call `remove_folder`. If that removed the last folder, it would also
        # remove the root.
        _Own.folders.add(_MAKING)
        try:
            if _Own.root is None:
                _remove_abandoned()
                _begin()
            folder = tempfile.mkdtemp(dir=_Own.root)
            _Own.folders.add(folder)
            return folder
        finally:
            remove_folder(_MAKING)


def is_own(folder: str) -> bool:
    """Return whether a folder is one that `make_folder` returned in this process."""
    return _Own.process == os.getpid() and folder in _Own.folders


def remove_folder(folder: str) -> None:
    """Remove a temporary folder of this process."""
    with _MUTEX:
        shutil.rmtree(folder, ignore_errors=True)
        if _Own.process == os.getpid():
            _Own.folders.discard(folder)
            if not _Own.folders:
                remove_all()


def remove_all() -> None:
    """Remove all temporary folders of this process."""
    # A signal may come while the main thread makes or fills a folder. So this function does not wait for the mutex, but tries
    # again.
    root = _Own.root
    if root is not None and _Own.process == os.getpid():
        for _ in range(_TRIES):
            _remove(root)
            if not root.exists():
                break
        _Own.root = None
        if _Own.lock is not None:
            _Own.lock.close()


def remove_at_signals() -> None:
    """When this process gets SIGTERM or SIGHUP, remove its temporary folders, and let the signal end it as usual.

    A thread waits for these signals as well. Python calls no handler while the main thread executes native code, which may
    hang.
    """
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in numbers:
        signal.signal(number, lambda number, _frame: _end(number))
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end_by_signal, args=(reading, numbers), name="signals", daemon=True).start()


def _end_by_signal(reading: int, numbers: list[signal.Signals]) -> None:
    while (number := os.read(reading, 1)[0]) not in numbers:
        pass
    _end(number)


def _end(number: int) -> None:
    remove_all()
    # `os._exit` is not used, because it is replaced while a job's code is executed (`worker_errors.as_in_a_worker`).
    _exit(128 + number)  # the exit code that a shell reports


def _begin() -> None:
    # The folder's path is stored before the folder exists, so that a signal at any time removes it.
    root = _Own.root = Path(tempfile.gettempdir(), f"{PREFIX}{uuid4().hex}")
    root.mkdir(mode=0o700)
    taking = root / _TAKING
    lock = _Own.lock = taking.open("w")
    lock.write(socket.gethostname())
    lock.flush()
    # On a file system without locks, `flock` fails. Then the file is not renamed, so the folder never looks abandoned.
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The file is renamed only after it is locked, so that no process finds it unlocked.
        taking.rename(root / _LOCK)


def _remove_abandoned() -> None:
    """Remove the folders of this user whose processes ran on this machine and are certainly dead. Never raises `OSError`."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_uid == os.getuid() and _has_dead_owner(folder):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove the folder of a process, and its lock last.

    If this process is killed meanwhile, the rest still looks abandoned.
    """
    with suppress(OSError):
        for inner in folder.iterdir():
            if inner.name not in (_LOCK, _TAKING):
                shutil.rmtree(inner, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def _has_dead_owner(folder: Path) -> bool:
    """Return whether the process of a folder ran on this machine and is dead. Raises `OSError` if it may be alive."""
    names = {inner.name for inner in folder.iterdir()}
    if _LOCK not in names and time.time() - folder.stat().st_mtime > _SECONDS_TO_TAKE:
        # The process was killed before it had its lock, or after it had removed its lock.
        return not names or _is_abandoned(folder / _TAKING)
    return _is_abandoned(folder / _LOCK)


def _is_abandoned(lock: Path) -> bool:
    """Return whether the process that held a lock ran on this machine and is dead. Raises `OSError` if it may be alive."""
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return held.read() == socket.gethostname()
