"""The interface to local disk, for rows that do not fit in a store's memory. A spill is one store's local file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rewindow.streams.record import MAX_MS
from rewindow.streams.serde.canonical_json import dump_value, load_value

SpilledRow = tuple[bytes, str, int, int | None]
"""``(key bytes, text, number, due time)``. The due time is None if the row is never looked up by time.

The number says when the row last changed. It is 0 if the row has not changed since the restore. Otherwise it is `STEP` times
the number that the next checkpoint had when the row changed. `GONE` is added for a deleted row, and `NEW` for a row that no
checkpoint has.
"""
GONE, NEW, STEP = 2, 1, 4

Span = tuple[bytes | None, bytes | None]
"""A span of rows: those whose key bytes are above the first bound and below the second, both excluded. None means no bound."""
ALL: Span = (None, None)

PAGE = 1000
"""One read returns at most this many rows."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Functions that convert a row (key and value) to text and back, and a key to text and back."""

    dump: Callable[[Any, Any], str]
    load: Callable[[str], tuple[Any, Any]]
    dump_key: Callable[[Any], str] = dump_value
    load_key: Callable[[str], Any] = load_value


class Spill(Protocol):
    """A local file of rows, ordered by key bytes and indexed by due time. It exists as long as its task."""

    def get(self, key: bytes) -> tuple[str, int] | None:
        """Return the text and number of the row with these key bytes, or None."""
        ...

    def write(self, rows: Iterable[SpilledRow]) -> None:
        """Insert or replace rows."""
        ...

    def delete(self, keys: Iterable[bytes]) -> None:
        """Delete rows by key."""
        ...

    def page(self, span: Span, count: int, *, since: int = 0, snapshot: int = 0) -> list[SpilledRow]:
        """Return the first ``count`` rows of a span, by key bytes, whose number is at least ``since``.

        ``snapshot``: the number of a snapshot (`take_snapshot`) from which to read; 0 for the current rows.
        """
        ...

    def count(self, span: Span, since: int = 0) -> int:
        """Return how many rows of a span have a number of at least ``since``. With 0, count all rows that are not deleted."""
        ...

    def take_snapshot(self, span: Span) -> int:
        """Copy the current rows of a span; return the snapshot's number."""
        ...

    def delete_span(self, span: Span) -> None:
        """Delete all rows of a span."""
        ...

    def due(self, until_ms: int, count: int, after: tuple[int, bytes] = (-1, b"")) -> list[SpilledRow]:
        """Return the first ``count`` rows due at or before ``until_ms``, ordered by (due time, key bytes).

        Rows up to the position ``after``, a pair of due time and key bytes, are left out.
        """
        ...

    def count_due(self, until_ms: int) -> int:
        """Return the number of rows due at or before a time."""
        ...

    def delete_due(self, until_ms: int) -> None:
        """Delete the rows due at or before a time."""
        ...


OpenSpill = Callable[[str], Spill]
"""A function that opens the spill of a store, given the store's name."""


class Disk(NamedTuple):
    """Local disk for the stores of a task, and the limit in bytes of the memory that they share.

    If there is no limit, only suppress buffers with a memory limit of their own spill.
    """

    spill: OpenSpill
    memory_bytes: int | None = None


class SpillFile:
    """A store's spill, and the number of the next checkpoint. Changed rows are marked with this number."""

    def __init__(self, name: str, disk: Disk) -> None:
        self._name, self._open = name, disk.spill
        self.memory_bytes = MAX_MS if disk.memory_bytes is None else disk.memory_bytes
        self.spill: Spill | None = None
        self._checkpoint = 1

    def open(self) -> Spill:
        """Return the spill. It is opened at the first call."""
        if self.spill is None:
            self.spill = self._open(self._name)
        return self.spill

    def number(self, is_new: bool | None, *, is_gone: bool = False) -> int:  # noqa: FBT001 - None is a third value
        """Return the number to store with a row (see `SpilledRow`).

        ``is_new``: the row's entry in `Store._changed`; None if none.
        """
        return (0 if is_new is None else STEP * self._checkpoint + is_new) + (GONE if is_gone else 0)

    def is_new(self, number: int) -> bool | None:
        """Return the entry that `Store._changed` has for a row with this number; None if the row has not changed."""
        return bool(number & NEW) if number // STEP == self._checkpoint else None

    def take_changes(self, codec: Codec) -> Collection[tuple[Any, Any]]:
        """Return the rows that changed since the last checkpoint, and count a new checkpoint. All rows must be on the spill."""
        since = STEP * self._checkpoint
        self._checkpoint += 1
        return SpilledChanges(self.open(), codec, since)


def pages(spill: Spill, span: Span = ALL, since: int = 0) -> Iterator[SpilledRow]:
    """Iterate over the rows of a span by key bytes, reading a page at a time. For ``since`` see `Spill.page`."""
    after, until = span
    while page := spill.page((after, until), PAGE, since=since):
        after = page[-1][0]
        yield from page


def pages_due(spill: Spill, until_ms: int, after: tuple[int, bytes] = (-1, b"")) -> Iterator[SpilledRow]:
    """Iterate over the rows due at or before a time, by (due time, key bytes), reading a page at a time."""
    while page := spill.due(until_ms, PAGE, after):
        after = (page[-1][3] or 0, page[-1][0])
        yield from page


class SnapshotScan:
    """Iterates over the rows of a spill by key bytes. Before a write, `detach` is called, so writes do not affect the scan."""

    def __init__(self, spill: Spill, codec: Codec, span: Span) -> None:
        self._spill, self._codec, self._span = spill, codec, span
        self._snapshot = 0

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        while page := self._spill.page(self._span, PAGE, snapshot=self._snapshot):
            self._span = page[-1][0], self._span[1]
            for _, text, number, _ in page:
                if not number & GONE:
                    yield self._codec.load(text)

    def detach(self) -> None:
        """Copy the remaining rows, and continue the iteration over the copy."""
        if not self._snapshot:
            self._snapshot = self._spill.take_snapshot(self._span)


class SpilledChanges(Collection[tuple[Any, Any]]):
    """The rows of a spill that changed since a checkpoint. They are read lazily, because they may not fit in memory."""

    def __init__(self, spill: Spill, codec: Codec, since: int) -> None:
        self._spill, self._codec, self._since = spill, codec, since
        self._count = spill.count(ALL, since)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for _, text, number, _ in pages(self._spill, since=self._since):
            yield (self._codec.load_key(text), None) if number & GONE else self._codec.load(text)

    def __contains__(self, item: object) -> bool:
        return any(change == item for change in self)
