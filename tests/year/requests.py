"""How many files are opened and folders listed below some folders, by whatever process: what would be requests to a bucket.

The kernel counts (inotify). Calls that only look at a file's attributes are not seen, and opens of the same file right after
each other count once.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_EVENT = struct.Struct("iIII")
_OPEN, _CREATE, _IS_FOLDER, _OVERFLOW = 0x20, 0x100, 0x4000_0000, 0x4000
_BUFFER = 1 << 20
_WAIT_S = 0.05


class Requests:
    """Counts within a block: ``files`` opened to be read or written, ``folders`` listed.

    Raises `OSError` if the kernel does not count, or forgot some because there were too many.
    """

    def __init__(self, *folders: Path) -> None:
        self.files = self.folders = 0
        self._folders = folders
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._is_over = threading.Event()
        self._forgot = False
        self._paths: dict[int, str] = {}

    def __enter__(self) -> Self:
        self._events = self._libc.inotify_init1(os.O_NONBLOCK)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify is not available")
        for top in self._folders:
            for folder, _, _ in os.walk(top):
                self._watch(folder)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        os.close(self._events)
        if self._forgot and error is None:
            raise OSError("the kernel's queue of events was full: the counts would be too small")

    def _watch(self, folder: str) -> None:
        number = self._libc.inotify_add_watch(self._events, os.fsencode(folder), _OPEN | _CREATE)
        if number < 0:
            raise OSError(ctypes.get_errno(), "cannot watch", folder)
        self._paths[number] = folder

    def _read(self) -> None:
        while True:
            is_over = self._is_over.is_set()  # before the look: what happened until then is counted
            if select.select([self._events], [], [], 0 if is_over else _WAIT_S)[0]:
                self._count(os.read(self._events, _BUFFER))
            elif is_over:
                return

    def _count(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
            at += _EVENT.size + length
            self._forgot |= bool(mask & _OVERFLOW)
            if mask & _OPEN and mask & _IS_FOLDER:
                self.folders += not name  # a folder tells its parent, too
            elif mask & _OPEN:
                self.files += 1
            elif mask & _CREATE and mask & _IS_FOLDER:
                self._watch_new(os.path.join(self._paths[number], os.fsdecode(name)))  # noqa: PTH118

    def _watch_new(self, folder: str) -> None:
        try:
            self._watch(folder)
        except FileNotFoundError:  # it is gone already
            return
