"""Processors and transformers as they were before KIP-138 and KIP-820, for code that is being ported.

Their contexts are those of today: the old forms of ``forward`` and ``schedule`` are in `streams.deprecated`. What
``transform`` and ``punctuate`` of a `Transformer` return is forwarded; null is nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rewindow.errors import DataError
from rewindow.streams.deprecated import deprecated
from rewindow.streams.fixed_key import Adapted
from rewindow.streams.processor import ProcessorContext
from rewindow.streams.record import Record, To


class ValueContext(ProcessorContext):
    """The context of a `ValueTransformer`: what it returns is the one result, so it cannot forward."""

    __slots__ = ()

    def forward(self, record: Any, *old: Any, to: To | None = None) -> None:
        """Raise `DataError`, as Kafka does."""
        del record, old, to
        message = f"{self.name}: a value transformer returns its result and cannot forward: use process_values"
        raise DataError(message)

    def send(self, record: Record) -> None:
        """Forward what the transformer returned."""
        super().forward(record)


class _Legacy(Adapted):
    """What the three old kinds share."""

    def punctuate(self, timestamp: int) -> Any:
        """Handle a punctuation of the one-argument ``schedule``, at a stream time in epoch milliseconds."""

    def call_punctuate(self, timestamp: int) -> None:
        """Call ``punctuate``: what the one-argument ``schedule`` schedules."""
        self.punctuate(timestamp)

    def take(self, record: Record) -> None:
        """See `Adapted.take`."""
        context = self.context
        context.headers = record.headers
        try:
            self._handle(record)
        finally:
            context.headers = ()

    def _handle(self, record: Record) -> None:
        raise NotImplementedError


class LegacyProcessor(_Legacy):
    """A processor that takes key and value, and may have a ``punctuate`` method (before KIP-138 and KIP-820)."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        deprecated("LegacyProcessor", "Processor, whose process takes a Record")

    def process(self, key: Any, value: Any) -> None:  # type: ignore[override]  # the old form
        """Handle one record."""

    def _handle(self, record: Record) -> None:
        self.process(record.key, record.value)


class Transformer(_Legacy):
    """What `KStream.transform` runs: ``transform`` returns ``(key, value)``, or None for nothing."""

    is_flat = False
    """`KStream.flat_transform`: an iterable of pairs is returned instead."""

    def transform(self, key: Any, value: Any) -> Any:
        """Return the new key and value."""
        raise NotImplementedError

    def call_punctuate(self, timestamp: int) -> None:
        """Forward what ``punctuate`` returns (KIP-138)."""
        self._send(self.punctuate(timestamp), "punctuate")

    def _handle(self, record: Record) -> None:
        self._send(self.transform(record.key, record.value), "transform")

    def _send(self, result: Any, what: str) -> None:
        context = self.context
        for pair in several(result, is_flat=self.is_flat):
            if not isinstance(pair, tuple) or len(pair) != 2:
                message = f"{context.name}: {what} must return (key, value), or None for nothing, not {pair!r}"
                raise DataError(message)
            context.forward(Record(*pair, headers=context.headers))


class ValueTransformer(_Legacy):
    """What `KStream.transform_values` runs: ``transform`` returns the new value; the key stays."""

    context: ValueContext
    context_type: ClassVar[type[ProcessorContext]] = ValueContext
    is_flat = False
    """`KStream.flat_transform_values`: an iterable of values is returned instead."""

    def transform(self, value: Any) -> Any:
        """Return the new value."""
        raise NotImplementedError

    def call_punctuate(self, timestamp: int) -> None:
        """Call ``punctuate``, which has no key to return a value for. Raises `DataError` if it does, as Kafka did."""
        if self.punctuate(timestamp) is not None:
            message = f"{self.context.name}: punctuate of a value transformer must return None: there is no key"
            raise DataError(message)

    def _handle(self, record: Record) -> None:
        results = self._transformed(record)
        for value in several(results, is_flat=True) if self.is_flat else (results,):
            self.context.send(record.with_value(value))

    def _transformed(self, record: Record) -> Any:
        return self.transform(record.value)


class ValueTransformerWithKey(ValueTransformer):
    """A `ValueTransformer` whose ``transform`` also gets the key, to read."""

    def transform(self, key: Any, value: Any) -> Any:  # type: ignore[override]  # Kafka's own signature
        """Return the new value."""
        raise NotImplementedError

    def _transformed(self, record: Record) -> Any:
        return self.transform(record.key, record.value)


def several(result: Any, *, is_flat: bool) -> Iterable[Any]:
    """Return the results of one call: none, one, or as many as it gave."""
    if result is None:
        return ()
    return result if is_flat else (result,)
