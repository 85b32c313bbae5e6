"""The port to a local spill, on which a store puts the rows that memory has no room for, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rewindow.streams.serde.canonical_json import dump_value, load_value

Row = tuple[bytes, str, int, int | None]
"""A key, its row of text, a number, and the time at which it is due, if it is found by that.

The number: four times the checkpoint after which it changed, 2 if it is gone, 1 if it was new.
"""
GONE, NEW, STEP = 2, 1, 4

Span = tuple[bytes | None, bytes | None]
"""The keys behind the first and before the second; None for no bound."""
ALL: Span = (None, None)

PAGE = 1000
"""How many rows are read at once."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Between an entry of a store, with its key, and a row of text; and between a key alone and text."""

    dump: Callable[[Any, Any], str]
    load: Callable[[str], tuple[Any, Any]]
    dump_key: Callable[[Any], str] = dump_value
    load_key: Callable[[str], Any] = load_value


class Spill(Protocol):
    """A file of this machine that lives as long as a task: rows of text by key."""

    def get(self, key: bytes) -> tuple[str, int] | None:
        """Return the text and the number of a key's row, or None if there is none."""
        ...

    def write(self, rows: Iterable[Row]) -> None:
        """Set rows."""
        ...

    def forget(self, keys: Iterable[bytes]) -> None:
        """Take rows out."""
        ...

    def page(self, span: Span, count: int, *, since: int = 0, aside: int = 0) -> list[Row]:
        """Return the first rows by key in a span whose number is ``since`` or more.

        ``aside``: of what was `set_aside` under this number.
        """
        ...

    def count(self, span: Span, since: int = 0) -> int:
        """Return how many rows of a span have a number of ``since`` or more; of 0 how many are not gone."""
        ...

    def set_aside(self, span: Span) -> int:
        """Keep a copy of all rows of a span as they are now; return its number."""
        ...

    def cut_out(self, span: Span) -> None:
        """Take all rows of a span out."""
        ...


class TimedSpill(Spill, Protocol):
    """A spill whose rows are found by time too."""

    def due(self, until_ms: int, count: int, after: tuple[int, bytes] = (-1, b"")) -> list[Row]:
        """Return the first rows that are due up to and including a time, by (due, key), behind ``after``."""
        ...

    def count_due(self, until_ms: int) -> int:
        """Return how many rows are due up to and including a time."""
        ...

    def forget_due(self, until_ms: int) -> None:
        """Take out the rows that are due up to and including a time."""
        ...


OpenSpill = Callable[[str], Spill]
OpenTimedSpill = Callable[[str], TimedSpill]
"""Opens the spill of a store, by name."""


class Disk(NamedTuple):
    """Where stores of a task may put what memory has no room for, and how many bytes of memory they have together.

    Without such a bound only buffers go there that have one of their own.
    """

    spill: OpenTimedSpill
    memory_bytes: int | None = None


class Part:
    """The rows of a spill whose keys begin with some bytes, which are eight: a spill of its own."""

    def __init__(self, spill: Spill, start: bytes) -> None:
        self._spill, self._start = spill, start + b"\x01"
        self.span: Span = (start + b"\x00", start + b"\x02")

    def get(self, key: bytes) -> tuple[str, int] | None:
        """See `Spill`."""
        return self._spill.get(self._start + key)

    def write(self, rows: Iterable[Row]) -> None:
        """See `Spill`."""
        self._spill.write((self._start + key, row, number, due_ms) for key, row, number, due_ms in rows)

    def forget(self, keys: Iterable[bytes]) -> None:
        """See `Spill`."""
        self._spill.forget(self._start + key for key in keys)

    def page(self, span: Span, count: int, *, since: int = 0, aside: int = 0) -> list[Row]:
        """See `Spill`."""
        rows = self._spill.page(self._own(span), count, since=since, aside=aside)
        return [(key[len(self._start) :], row, number, due_ms) for key, row, number, due_ms in rows]

    def count(self, span: Span, since: int = 0) -> int:
        """See `Spill`."""
        return self._spill.count(self._own(span), since)

    def set_aside(self, span: Span) -> int:
        """See `Spill`."""
        return self._spill.set_aside(self._own(span))

    def cut_out(self, span: Span) -> None:
        """See `Spill`."""
        self._spill.cut_out(self._own(span))

    def _own(self, span: Span) -> Span:
        after, until = span
        return (
            self.span[0] if after is None else self._start + after,
            self.span[1] if until is None else self._start + until,
        )


class Walk:
    """Goes through a spill by key. What is written meanwhile is not seen: before that it is told to step aside."""

    def __init__(self, spill: Spill, codec: Codec) -> None:
        self._spill, self._codec = spill, codec
        self._after: bytes | None = None
        self._aside = 0

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        while page := self._spill.page((self._after, None), PAGE, aside=self._aside):
            self._after = page[-1][0]
            for _, row, number, _ in page:
                if not number & GONE:
                    yield self._codec.load(row)

    def step_aside(self) -> None:
        """Go on in a copy of what is left."""
        if not self._aside:
            self._aside = self._spill.set_aside((self._after, None))


class Changes(Collection[tuple[Any, Any]]):
    """What changed, read when it is asked for: it may be more than memory has room for."""

    def __init__(self, spill: Spill, codec: Codec, since: int) -> None:
        self._spill, self._codec, self._since = spill, codec, since
        self._count = spill.count(ALL, since)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        after = None
        while page := self._spill.page((after, None), PAGE, since=self._since):
            after = page[-1][0]
            for _, row, number, _ in page:
                yield (self._codec.load_key(row), None) if number & GONE else self._codec.load(row)

    def __contains__(self, item: object) -> bool:
        return any(change == item for change in self)
