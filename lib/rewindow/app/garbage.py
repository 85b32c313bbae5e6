"""The collection of garbage, paused where many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branches import JobState
from rewindow.tables.delta.warehouse import DeltaTables


class UncollectedTables(DeltaTables):
    """Tables whose ledgers are read without collections, which would take as long as the reading."""

    def state(self, job: str) -> JobState:
        """See `DeltaTables.state`."""
        with without_collection():
            return super().state(job)

    def feed(self, feed: str) -> Feed:
        """See `DeltaTables.feed`."""
        with without_collection():
            return super().feed(feed)


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the collection of garbage: a long ledger makes millions of objects that all stay, and is searched in vain."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Together they make all objects old ones: otherwise the first collection would search the new ones at once.
        gc.freeze()
        gc.unfreeze()
        gc.enable()
