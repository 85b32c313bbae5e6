"""Sinks receive the records of a sink node and number them. The number of a record is its offset in the topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewindow.streams.limits import Outputs
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import Record
from rewindow.streams.record_context import RecordContext
from rewindow.streams.settings import Limits
from rewindow.streams.task_context import TaskContext
from rewindow.streams.topology import SubTopology

Write = Callable[[Record, int, int], None]
"""A function that writes a record. Arguments: the record, its order key (`RecordContext.order_ms`) and its number in the
topic."""


class Sink(ABC):
    """Receives the output of one sink node."""

    process: Callable[[Record], None]
    """The function that handles one record. `begin` sets this attribute, and parent nodes call it directly."""

    takes_columns = False
    """Whether `process_many` may be called. True only if the sink does not need each record's event (`RecordContext`)."""

    def process_many(self, keys: Sequence[Any], values: Sequence[Any], timestamps: Sequence[int]) -> None:
        """Handle several records, given as columns. Only for sinks whose ``takes_columns`` is True.

        The sender may change the columns and their values afterwards, as with `process`.
        """
        raise NotImplementedError

    @abstractmethod
    def begin(self, record_context: RecordContext, number: int, outputs: Outputs) -> None:
        """Start to receive records. ``record_context`` always has the current event; ``number`` is the first record's number.

        The sink must call ``outputs.see`` with the number of the next record, at least occasionally (`streams.limits`).
        """

    @property
    @abstractmethod
    def number(self) -> int:
        """The number of the next record."""


class WriteSink(Sink):
    """A sink that calls a function for each record."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._number = 0

    def begin(self, record_context: RecordContext, number: int, outputs: Outputs) -> None:
        """See `Sink`."""
        write, see, self._number = self._write, outputs.see, number

        def process(record: Record) -> None:
            see(self._number)
            write(record, record_context.order_ms, self._number)
            self._number += 1

        self.process = process

    @property
    def number(self) -> int:
        """See `Sink`."""
        return self._number


def open_sinks(
    part: SubTopology,
    writers: Callable[[SinkNode], Sink | Write],
    task_context: TaskContext,
    emitted: Mapping[str, int],
    limits: Limits,
) -> dict[str, Sink]:
    """Return the started sinks of a task, by topic. ``emitted`` maps a topic to the number of its next record."""
    sinks: dict[str, Sink] = {}
    for node in part.sinks:
        writer = writers(node)
        sink = sinks[node.topic] = writer if isinstance(writer, Sink) else WriteSink(writer)
        sink.begin(task_context.record_context, emitted.get(node.topic, 0), Outputs(node, limits, task_context))
    return sinks
