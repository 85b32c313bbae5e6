"""Feeds, folded from their landing ledgers: from all rows, or from a stored fold and the rows after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewindow.control.ingest.feed_progress import progress_lines
from rewindow.control.ingest.landings import Feed, fold_feed
from rewindow.control.ingest.stored_progress import feed_of
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import identity, known_part
from rewindow.errors import SourceError
from rewindow.tables.shared.ledger import wrong_fold


class Feeds:
    """The feeds, folded from their landing ledgers. Only rows that were not seen before are folded."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Sequence[LedgerRow], Feed | None]] = {}

    def find(self, name: str, rows: Sequence[LedgerRow], home: str) -> Feed:
        """Return a feed as the rows of its landing ledger define it. Raises as `find_feed` does."""
        known_rows, feed = self._known.get(name, ((), None))
        if rows is known_rows:
            return _landed(name, feed, home)
        (was, folded), (stored, later) = known_part(known_rows), known_part(rows)
        if was is not stored or list(later[: len(folded)]) != list(folded) or not known_rows:
            feed = _with_rows(None, rows)
        else:
            feed = _with_rows(feed, later[len(folded) :])
        self._known[name] = rows, feed
        return _landed(name, feed, home)


def find_feed(name: str, rows: Sequence[LedgerRow], home: str) -> Feed:
    """Return a feed as the rows of its landing ledger define it. Raises `SourceError` (66) if it was never landed."""
    return _landed(name, _with_rows(None, rows), home)


def _with_rows(before: Feed | None, rows: Sequence[LedgerRow]) -> Feed | None:
    stored, later = known_part(rows)
    base = feed_of(stored.lines, stored.token) if stored else before
    feed = fold_feed(((row.kind, row.body) for row in later), base)
    return replace(feed, ledger=base.ledger if base else identity(rows)) if feed else None


def _landed(name: str, feed: Feed | None, home: str) -> Feed:
    if feed is None:
        raise SourceError(
            "feed-never-landed",
            "feed {feed!r} was never landed in {warehouse}: `rewindow land {feed}` first",
            feed=name,
            warehouse=home,
        )
    return feed


def check_stored_feed(name: str, rows: Sequence[LedgerRow]) -> None:
    """Raise `InvariantError` (70) if the stored fold of a landing ledger is not what its rows give. Reads all rows."""
    stored, _ = known_part(rows)
    if stored is not None and _read(stored.lines) != _read(progress_lines(rows[: stored.rows])):
        raise wrong_fold(name, stored)


def _read(lines: Sequence[str]) -> list[Any]:
    return [json.loads(line) for line in lines]
