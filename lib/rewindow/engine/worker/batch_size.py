"""Batch sizes of a worker: rows per batch that it reads, and output records that it buffers before it writes them.

They do not change the rows (L3). `verify` uses another size than a run, to test that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rewindow.contracts.tasks import ROWS_AT_ONCE

_rows = ContextVar("rows", default=ROWS_AT_ONCE)


@contextmanager
def rows_at_once(rows: int) -> Iterator[None]:
    """Set the rows per batch inside the block."""
    token = _rows.set(rows)
    try:
        yield
    finally:
        _rows.reset(token)


def read_rows() -> int:
    """Return the rows per batch when reading."""
    return _rows.get()


def written_rows() -> int:
    """Return the output records to buffer: fewer than are read, because Python objects are larger than Arrow values."""
    return -(-_rows.get() // 4)
