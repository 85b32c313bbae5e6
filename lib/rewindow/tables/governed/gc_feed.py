"""The garbage collection of a feed in a catalog: what dead landings staged.

Landed blocks stay: small runs read them, and logs are published from them. To merge the files of logs is OPTIMIZE's work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewindow.control.gc import UNKNOWN_MS, Garbage
from rewindow.control.ingest.feed_progress import fold_progress
from rewindow.control.ingest.landings import LANDING, PLAN
from rewindow.tables.governed.feeds import CatalogFeedTables
from rewindow.tables.governed.journal import JournalRows
from rewindow.tables.governed.own_rows import feed_name
from rewindow.tables.shared.folded_feeds import check_stored_feed
from rewindow.tables.shared.ledger import now_ms


class CatalogFeedGc:
    """The rows of one feed in the journal."""

    def __init__(self, tables: CatalogFeedTables, feed: str) -> None:
        """Bind to a feed. Nothing is read."""
        self._tables, self._feed = tables, feed
        self._rows = JournalRows(tables.journal_table, feed_name(feed))

    def topics(self) -> list[str]:
        """Return nothing: the files of logs belong to the catalog."""
        return []

    def compact(self, topic: str) -> Iterator[str | tuple[int, int]]:  # noqa: ARG002 - no topic is named
        """Merge nothing."""
        return iter(())

    def due(self) -> int:
        """Return how many files would be merged: none."""
        return 0

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield what can be deleted now. All of it is found before the first is yielded."""
        # The journal is listed before the ledger is read, which names a landing before its workers append.
        listed = self._rows.listed()
        rows, oldest = self._tables.state(self._feed), now_ms() - max(keep_ms, UNKNOWN_MS)
        check_stored_feed(self._feed, rows)
        dead = fold_progress(rows).dead
        attempts = {row.body["attempt"]["id"] for row in rows if row.kind == PLAN}
        attempts |= {row.body["attempt"] for row in rows if row.kind == LANDING}
        garbage = [(item, "of a landing that did not finish") for item in listed if item.attempt in dead]
        garbage += [
            (item, "of an unknown attempt")
            for item in listed
            if item.attempt not in attempts and item.recorded_at < oldest
        ]
        yield from list(self._rows.garbage(garbage))

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete rows of the journal, if they are still there."""
        self._rows.delete([item.path for item in garbage])

    def compact_ledger(self) -> None:
        """Merge the files that have the feed's rows."""
        self._rows.merge_files()
