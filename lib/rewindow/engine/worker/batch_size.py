"""Batch sizes of a worker: the rows per batch that it reads, and the output records that it buffers before it writes them.

Batch sizes do not change the results (L3). `verify` uses another batch size than a run, which tests this.
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
    """Return how many output records to buffer: fewer than rows per batch, as Python objects are larger than Arrow values."""
    return -(-_rows.get() // 4)
