"""Batch sizes of a worker: how many rows it reads at once, and how many output records it buffers before it writes them.

Batch sizes do not change the results (L3). `verify` uses another batch size than a run, and so tests this.
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
    """Return how many rows to read at once."""
    return _rows.get()


def written_rows() -> int:
    """Return how many output records to buffer.

    The number is smaller than `read_rows`, because Python objects are larger than Arrow values.
    """
    return -(-_rows.get() // 4)
