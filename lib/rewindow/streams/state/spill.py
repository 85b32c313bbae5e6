"""The port to local disk for rows that do not fit in a store's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rewindow.streams.serde.canonical_json import dump_value, load_value

SpilledRow = tuple[bytes, str, int, int | None]
"""Key bytes, text, number, and due time (None if the row is never looked up by time).

The number is four times the checkpoint after which the row changed (0: unchanged since the restore), plus `GONE` for
a deleted row, plus `NEW` for a row that no checkpoint has.
"""
GONE, NEW, STEP = 2, 1, 4

Span = tuple[bytes | None, bytes | None]
"""Keys above the first bound and below the second; None is unbounded."""
ALL: Span = (None, None)

PAGE = 1000
"""Rows per read."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Functions between a row (key and value) and text, and between a key and text."""

    dump: Callable[[Any, Any], str]
    load: Callable[[str], tuple[Any, Any]]
    dump_key: Callable[[Any], str] = dump_value
    load_key: Callable[[str], Any] = load_value


class Spill(Protocol):
    """A local file of rows, ordered by key bytes and indexed by due time. It lives as long as a task."""

    def get(self, key: bytes) -> tuple[str, int] | None:
        """Return the text and number of a row, or None."""
        ...

    def write(self, rows: Iterable[SpilledRow]) -> None:
        """Insert or replace rows."""
        ...

    def delete(self, keys: Iterable[bytes]) -> None:
        """Delete rows by key."""
        ...

    def page(self, span: Span, count: int, *, since: int = 0, snapshot: int = 0) -> list[SpilledRow]:
        """Return the first ``count`` rows of a span, by key, whose number is at least ``since``.

        ``snapshot``: read from this `take_snapshot` instead of the current rows.
        """
        ...

    def count(self, span: Span, since: int = 0) -> int:
        """Return the number of rows of a span numbered ``since`` or above; with 0, of those not deleted."""
        ...

    def take_snapshot(self, span: Span) -> int:
        """Copy the current rows of a span; return the snapshot's number."""
        ...

    def delete_span(self, span: Span) -> None:
        """Delete all rows of a span."""
        ...

    def due(self, until_ms: int, count: int, after: tuple[int, bytes] = (-1, b"")) -> list[SpilledRow]:
        """Return the first ``count`` rows due at or before a time, by (due time, key), that come after ``after``."""
        ...

    def count_due(self, until_ms: int) -> int:
        """Return the number of rows due at or before a time."""
        ...

    def delete_due(self, until_ms: int) -> None:
        """Delete the rows due at or before a time."""
        ...


OpenSpill = Callable[[str], Spill]
"""Opens the spill of a store, given the store's name."""


class Disk(NamedTuple):
    """Local disk for the stores of a task, and the memory in bytes that they share.

    Without a memory limit, only buffers that have their own limit spill.
    """

    spill: OpenSpill
    memory_bytes: int | None = None
