"""Keep a feed small: its logs' small files become larger ones, and files go of which every row is elsewhere.

Nothing is decided here that a landing or a run has to know: offsets, landings and watermarks stay what they are, and who
has planned on the old files still finds them. Each step is durable by itself: killed anywhere, call it again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

from rewindow.control.gc import OrphanFiles, Removed, remove_orphans

Steps = Generator[str, None, "FeedCollected"]


class FeedGc(OrphanFiles, Protocol):
    """The files of one feed; see `tables.delta.gc_feed`."""

    def topics(self) -> list[str]:
        """Return the logs that `land` wrote."""
        ...

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:
        """Merge a log's small files; yield each step, at last how many files became how many."""
        ...

    def due(self) -> int:
        """Return how many files would be merged."""
        ...


@dataclass(frozen=True, slots=True)
class FeedCollected(Removed):
    """What was done: how many files became how many, and what was deleted."""

    merged: int = 0
    into: int = 0


def collect_feed(feed: str, publish: Callable[[str], Iterator[str]], gc: FeedGc, *, keep_ms: int) -> Steps:
    """Merge small files, and delete what has been superfluous for ``keep_ms``, a day at least."""
    yield from publish(feed)
    merged = into = 0
    for topic in gc.topics():
        for said in gc.compact(topic):
            if isinstance(said, str):
                yield said
            else:
                merged, into = merged + said[0], into + said[1]
    deleted = yield from remove_orphans(gc, keep_ms)
    return FeedCollected(merged, into, deleted=deleted)
