"""Processors: the code of one node (KIP-138, KIP-251), and those that keep the key of their records (KIP-820)."""

from __future__ import annotations

from typing import ClassVar

from rewindow.errors import DataError
from rewindow.streams.processor_context import ProcessorContext
from rewindow.streams.record import Record, To
from rewindow.streams.results import refuse_result
from rewindow.streams.task_context import TaskContext


class Processor:
    """The code of one node. Each epoch gets a new one, so state that must survive belongs in a store or a schedule."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Start an epoch. Override it to fetch stores and to schedule punctuations, and keep the context."""
        self.context = context

    def process(self, record: Record) -> None:
        """Handle one record. What it sends it forwards: it returns nothing."""

    def on_watermark(self, watermark_ms: int) -> None:
        """Handle the end of an epoch: no record before this time (epoch milliseconds) is expected any more.

        Called only where time follows the watermark (D22), and in a final run, there with the end of time (D18).
        """

    def close(self) -> None:
        """End an epoch. Forwarding is no longer possible."""


class AdaptedProcessor(Processor):
    """A processor that receives records through `take` instead of `process`, and a context of its own kind.

    The task calls ordinary processors directly; only adapted ones pay for an extra call.
    """

    context_type: ClassVar[type[ProcessorContext]] = ProcessorContext

    def take(self, record: Record) -> None:
        """Handle one record."""
        raise NotImplementedError


class FixedKeyContext(ProcessorContext):
    """A context that forwards a record only under the key of the record being handled."""

    __slots__ = ("_handled",)

    def __init__(self, name: str, task_context: TaskContext) -> None:
        super().__init__(name, task_context)
        self._handled: Record | None = None

    def forward(self, record: Record, *, to: To | None = None) -> None:
        """Forward a record: see `ProcessorContext.forward`. Raises `DataError` if its key is another one."""
        handled = self._handled
        given: object = record  # user code may pass anything
        if handled is not None and isinstance(given, Record) and not _same_key(given, handled):
            message = (
                f"{self.name} forwarded the key {record.key!r} while it handles {handled.key!r}: process_values keeps "
                "the key, and with it the partition; to change it use process"
            )
            raise DataError(message)
        super().forward(record, to=to)


class FixedKeyProcessor(AdaptedProcessor):
    """A processor for `KStream.process_values`: it may change everything but the key (KIP-820).

    Forwarding another key while a record is handled raises a `DataError`. A punctuation should forward only keys that
    came in before, because those belong to this partition.
    """

    context: FixedKeyContext
    context_type: ClassVar[type[ProcessorContext]] = FixedKeyContext

    def take(self, record: Record) -> None:
        """See `AdaptedProcessor.take`."""
        context = self.context
        context._handled = record  # noqa: SLF001 - the two classes belong together
        try:
            result: object = self.process(record)  # type: ignore[func-returns-value]  # user code may return anything
            if result is not None:
                refuse_result(self.process, result)
        finally:
            context._handled = None  # noqa: SLF001


def _same_key(one: Record, other: Record) -> bool:
    return one.key is other.key or bool(one.key == other.key)
