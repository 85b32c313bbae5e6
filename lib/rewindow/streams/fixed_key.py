"""Processors that take a record in another form than `Processor.process`, and those that keep its key.

The task knows processors that are `Adapted` when it wires them and gives them a context of their own kind. All others
run without a step in between.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rewindow.errors import DataError
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Record, To
from rewindow.streams.task_context import TaskContext


class Adapted(Processor):
    """A processor between which and the task stands `take`."""

    context_type: ClassVar[type[ProcessorContext]] = ProcessorContext

    def take(self, record: Record) -> None:
        """Handle one record that the task brings."""
        raise NotImplementedError


class FixedKeyContext(ProcessorContext):
    """A context that forwards records under the key that came in, and no other."""

    __slots__ = ("_key",)

    def __init__(self, name: str, task_context: TaskContext) -> None:
        super().__init__(name, task_context)
        self._key: tuple[Any, ...] = ()

    def forward(self, record: Record, *old: Any, to: To | None = None) -> None:
        """Send a record on, see `ProcessorContext.forward`. Raises `DataError` if it has another key."""
        key = record if old else record.key
        if self._key and key is not self._key[0] and key != self._key[0]:
            message = (
                f"{self.name} forwarded the key {key!r} while it handles {self._key[0]!r}: process_values keeps "
                "the key, and with it the partition; to change it use process"
            )
            raise DataError(message)
        super().forward(record, *old, to=to)


class FixedKeyProcessor(Adapted):
    """What `KStream.process_values` runs: it may change everything but the key (KIP-820).

    While a record is handled, what is forwarded has its key; anything else is a `DataError`. In a punctuation forward
    only keys that came in before: their partition is this one.
    """

    context: FixedKeyContext
    context_type: ClassVar[type[ProcessorContext]] = FixedKeyContext

    def take(self, record: Record) -> None:
        """See `Adapted.take`."""
        context = self.context
        context._key = (record.key,)  # noqa: SLF001 - the two belong together
        try:
            self.process(record)
        finally:
            context._key = ()  # noqa: SLF001
