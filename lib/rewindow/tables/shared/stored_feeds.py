"""What both adapters share about feeds: they fold landing ledgers, and find rows in the logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rewindow.control.ingest.feed_progress import feed_of, progress_lines
from rewindow.control.ingest.landings import GENERATION, LANDING, Feed, HeldFile, fold_feed
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import identity, known_part
from rewindow.errors import SourceError
from rewindow.tables.shared.ledger import wrong_fold

LOG_PARTITIONS = ("generation", "partition")


def generations(
    appends: Iterable[Sequence[LedgerRow]], begun: Mapping[str, Any] | None = None
) -> Iterator[tuple[Mapping[str, Any], list[list[Mapping[str, Any]]]]]:
    """Yield pairs: a generation's definition, and a list that has the landing bodies of each of its appends.

    ``begun``: the definition of the generation that an earlier append began, if any.
    """
    generation = begun
    landed: list[list[Mapping[str, Any]]] = []
    for rows in appends:
        for row in rows:
            if row.kind == GENERATION:
                if generation is not None:
                    yield generation, landed
                generation, landed = row.body, []
        bodies = [row.body for row in rows if row.kind == LANDING]
        if bodies:
            landed.append(bodies)
    if generation is not None:
        yield generation, landed


def first_above(timestamps: npt.NDArray[np.int64], file: HeldFile, offset: int, time_ms: int) -> int | None:
    """Return the first offset in a landed file, from ``offset`` on, whose timestamp is above ``time_ms``; None if none is.

    ``timestamps``: the timestamps of all rows of the file.
    """
    above = np.flatnonzero(timestamps[offset - file.start :] > time_ms)
    return offset + int(above[0]) if len(above) else None


class Feeds:
    """Feeds, folded from their landing ledgers. Feeds are cached, so each call folds only the new rows of a ledger."""

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
    """Raise `InvariantError` (70) if a feed's stored state differs from that of its ledger's rows. Reads all rows."""
    stored, _ = known_part(rows)
    if stored is not None and _read(stored.lines) != _read(progress_lines(rows[: stored.rows])):
        raise wrong_fold(name, stored)


def _read(lines: Sequence[str]) -> list[Any]:
    return [json.loads(line) for line in lines]
