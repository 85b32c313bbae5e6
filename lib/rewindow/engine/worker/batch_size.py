"""How many rows a worker has in hand at once: of a file that it reads, and of emissions before it writes them.

No row depends on it (L3). `verify` takes another number than a run, so that files are read and written in other pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rewindow.contracts.tasks import ROWS_AT_ONCE

_rows = ContextVar("rows", default=ROWS_AT_ONCE)


@contextmanager
def rows_at_once(rows: int) -> Iterator[None]:
    """Take so many rows at once inside the block."""
    token = _rows.set(rows)
    try:
        yield
    finally:
        _rows.reset(token)


def read_rows() -> int:
    """Return how many rows of a file are read at once."""
    return _rows.get()


def written_rows() -> int:
    """Return how many emissions are kept until they are written: Python objects are larger than Arrow's cells."""
    return -(-_rows.get() // 4)
