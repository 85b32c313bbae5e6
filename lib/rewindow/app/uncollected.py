"""Pause Python's cyclic garbage collector while a ledger is read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from rewindow.tables.delta.warehouse import DeltaTables

if TYPE_CHECKING:
    from rewindow.control.ingest.landings import Feed
    from rewindow.control.plan.job_state import JobState

_MANY = 50_000
"""Number of new objects that take a collection milliseconds."""
_COLLECTED_EVERY = 16
_long_pauses = count(1)


class UncollectedTables(DeltaTables):
    """Tables whose ledgers are read while the garbage collector is paused: collections would double the time."""

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
    """Pause the garbage collector: a long ledger makes millions of live objects, which it would scan without freeing any."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY:
            _make_old()
        gc.enable()


def _make_old() -> None:
    """Make all objects old ones: otherwise the first collection would search the new ones at once.

    That also starts Python's counts anew, by which it finds garbage among old objects. So now and then this is a collection: a
    process that lives long, such as a notebook's, would otherwise keep what commands leave in cycles.
    """
    if next(_long_pauses) % _COLLECTED_EVERY == 0:
        gc.collect()
        return
    gc.freeze()
    gc.unfreeze()
