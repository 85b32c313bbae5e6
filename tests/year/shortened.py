"""`gc` where a year takes an hour: the least ages of a day, and whole hours, are shortened like everything else.

Files that left a table go when they were written longer ago than the retention, which `gc` compares first: Delta knows whole
hours only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock
from urllib.parse import unquote

from deltalake import DeltaTable

from rewindow.tables.delta import gc


@contextmanager
def short_ages() -> Iterator[None]:
    """Shorten the least ages of files within a block."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(gc, "_left_before", left_before))
        for module in (gc, gc, gc):
            stack.enter_context(mock.patch.object(module, "UNKNOWN_MS", 0))
        yield


def left_before(table: DeltaTable, keep_ms: int) -> set[str]:
    """Return all files that a table does not name."""
    del keep_ms
    return set(map(unquote, table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True)))
