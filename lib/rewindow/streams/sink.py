"""What takes the records that reach a sink node, and numbers them: a record's number is its offset in the topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from rewindow.streams.limits import Outputs
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import Record
from rewindow.streams.settings import Limits
from rewindow.streams.task_context import RecordContext, TaskContext
from rewindow.streams.topology import SubTopology

Write = Callable[[Record, int, int], None]
"""Takes an emission: the record, its place in the epoch's order (`RecordContext.order_ms`) and its number in the topic."""


class Sink(ABC):
    """Takes the emissions of one sink node."""

    process: Callable[[Record], None]
    """Takes one record; there from `begin` on. Parents call it without a step in between."""

    @abstractmethod
    def begin(self, record_context: RecordContext, number: int, outputs: Outputs) -> None:
        """Learn where to look for the present moment, and the number of the first record to come.

        ``outputs`` wants to see the number of the next record, now and then at least (`streams.limits`).
        """

    @property
    @abstractmethod
    def number(self) -> int:
        """The number of the next record."""


class WriteSink(Sink):
    """Hands what reaches a sink to a function."""

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
    """Return the sinks of a task by topic, ready to begin; ``emitted`` has the next number of each."""
    sinks: dict[str, Sink] = {}
    for node in part.sinks:
        writer = writers(node)
        sink = sinks[node.topic] = writer if isinstance(writer, Sink) else WriteSink(writer)
        sink.begin(task_context.record_context, emitted.get(node.topic, 0), Outputs(node, limits, task_context))
    return sinks
