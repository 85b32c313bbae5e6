"""Collect the garbage of a feed: merge its logs' small files, and delete files whose rows are elsewhere.

Offsets, landings and watermarks do not change, and a run that was planned on the old files still finds them. Each step is
durable by itself: if a process is killed anywhere, call again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

from rewindow.control.gc import OrphanFiles, Removed, remove_orphans

Steps = Generator[str, None, "FeedCollected"]


class FeedGc(OrphanFiles, Protocol):
    """The files of one feed; see `tables.delta.gc_feed` and `tables.governed.gc_feed`."""

    def topics(self) -> list[str]:
        """Return the logs that `land` wrote."""
        ...

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:
        """Merge a log's small files; yield each step, then how many files became how many."""
        ...

    def due(self) -> int:
        """Return how many files would be merged."""
        ...


@dataclass(frozen=True, slots=True)
class FeedCollected(Removed):
    """The result of a collection: ``merged`` files became ``into`` files, and what was deleted."""

    merged: int = 0
    into: int = 0


def collect_feed(feed: str, publish: Callable[[str], Iterator[str]], gc: FeedGc, *, keep_ms: int) -> Steps:
    """Merge small files, and delete orphan files older than ``keep_ms``, but at least a day old."""
    yield from publish(feed)
    merged = into = 0
    for topic in gc.topics():
        for step in gc.compact(topic):
            if isinstance(step, str):
                yield step
            else:
                merged, into = merged + step[0], into + step[1]
    deleted = yield from remove_orphans(gc, keep_ms)
    return FeedCollected(merged, into, deleted=deleted)
