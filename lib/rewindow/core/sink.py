"""What takes the records that reach a sink node, and numbers them: a record's number is its offset in the topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from rewindow.core.record import Record
from rewindow.core.scope import Moment

Write = Callable[[Record, int, int], None]
"""Takes an emission: the record, its place in the epoch's order (`Moment.order_ms`) and its number in the topic."""


class Sink(ABC):
    """Takes the emissions of one sink node."""

    process: Callable[[Record], None]
    """Takes one record; there from `begin` on. Parents call it without a step in between."""

    @abstractmethod
    def begin(self, moment: Moment, number: int) -> None:
        """Learn where to look for the present moment, and the number of the first record to come."""

    @property
    @abstractmethod
    def number(self) -> int:
        """The number of the next record."""


class WriteSink(Sink):
    """Hands what reaches a sink to a function."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._number = 0

    def begin(self, moment: Moment, number: int) -> None:
        """See `Sink`."""
        write, self._number = self._write, number

        def process(record: Record) -> None:
            write(record, moment.order_ms, self._number)
            self._number += 1

        self.process = process

    @property
    def number(self) -> int:
        """See `Sink`."""
        return self._number
