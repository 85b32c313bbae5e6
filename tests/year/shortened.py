"""`gc` where a year takes an hour: the least ages of a day, and whole hours, are shortened like everything else.

Files that left a table go when they were written longer ago than the retention, by the time of the file: Delta knows whole hours
only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

from deltalake import DeltaTable

from rewindow.tables.delta import gc_feed, orphan_files, unnamed_files


@contextmanager
def short_ages() -> Iterator[None]:
    """Shorten the least ages of files within a block."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(unnamed_files, "left_before", left_before))
        for module in (gc_feed, orphan_files, unnamed_files):
            stack.enter_context(mock.patch.object(module, "UNKNOWN_MS", 0))
        yield


def left_before(table: DeltaTable, keep_ms: int) -> set[str]:
    """Return the files that a table does not name and that were written at least ``keep_ms`` ago."""
    paths = table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True)
    root, before_s = Path(table.table_uri.removeprefix("file://")), time.time() - keep_ms / 1_000
    return {path for path in map(unquote, paths) if _written_s(root / path) < before_s}


def _written_s(file: Path) -> float:
    """Return when a file was written; now if it is gone."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return time.time()
