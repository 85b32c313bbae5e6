"""Where records leave a task."""

from __future__ import annotations

from collections.abc import Callable

from rewindow.core.record import Record
from rewindow.core.scope import Moment

Write = Callable[[Record, int, int], None]
"""Takes an emission: the record, its place in the epoch's order (`Moment.order_ms`) and its number in the topic."""


class Sink:
    """Hands on what reaches a sink, numbered."""

    __slots__ = ("_moment", "_write", "number")

    def __init__(self, write: Write, moment: Moment, number: int) -> None:
        self.number = number
        self._write = write
        self._moment = moment

    def process(self, record: Record) -> None:
        """Take one record."""
        self._write(record, self._moment.order_ms, self.number)
        self.number += 1
