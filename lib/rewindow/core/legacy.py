"""Processors and transformers as they were before KIP-138 and KIP-251, for code that is being ported.

==================================== =========================================================================
``schedule(interval)``               ``schedule(interval, STREAM_TIME, self.punctuate)`` (KIP-138)
``forward(key, value)``              ``forward(Record(key, value))``: time and headers of what is being handled
``forward(key, value, "child")``     ``..., to=To.child("child")``
``forward(key, value, 1)``           to the second child, in the order in which children were added (KIP-251)
``forward(key, value, To...)``       ``..., to=To...``
==================================== =========================================================================

What ``transform`` and ``punctuate`` of a `Transformer` return is forwarded; null is nothing. Each of these forms gives a
`DeprecationWarning` that names the line of the caller; Python shows a line once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, ClassVar

from rewindow.core.adapted import Adapted
from rewindow.core.processor import ProcessorContext
from rewindow.core.punctuation import Cancellable, PunctuationType
from rewindow.core.record import Record, To
from rewindow.core.scope import TaskScope
from rewindow.errors import ConfigError, DataError


class LegacyContext(ProcessorContext):
    """A context that also understands the old forms of ``forward`` and ``schedule``."""

    __slots__ = ("headers", "on_interval")

    def __init__(self, name: str, scope: TaskScope) -> None:
        super().__init__(name, scope)
        self.headers: tuple[tuple[str, bytes], ...] = ()
        """Those of the record being handled; a punctuation has none."""
        self.on_interval: Callable[[int], None] | None = None
        """What the one-argument ``schedule`` calls."""

    def forward(self, record: Any, *old: Any, to: To | None = None) -> None:
        """Send a record on, or an old ``key, value`` and to whom: a child's name, its number, or `To`."""
        if not old:
            super().forward(record, to=to)
            return
        deprecated("forward(key, value)", "forward(Record(key, value), to=...)")
        value, *child = old
        super().forward(Record(record, value, headers=self.headers), to=self._to(child[0]) if child else to)

    def schedule(
        self,
        interval: str | timedelta,
        type: PunctuationType | None = None,  # noqa: A002 - KIP-138's own name
        callback: Callable[..., None] | None = None,
        **options: Any,
    ) -> Cancellable:
        """Schedule as `ProcessorContext.schedule` does; with the interval alone ``punctuate``, on stream time."""
        if type is not None and callback is not None:
            return super().schedule(interval, type, callback, **options)
        if type is not None or options or self.on_interval is None:
            message = (
                f"{self.name}: schedule(interval, type, callback), or schedule(interval) alone: it calls punctuate()"
            )
            raise ConfigError(message)
        deprecated("schedule(interval)", "schedule(interval, PunctuationType.STREAM_TIME, self.punctuate)")
        return super().schedule(interval, PunctuationType.STREAM_TIME, self.on_interval)

    def _to(self, child: str | int | To) -> To:
        if isinstance(child, To):
            return child
        if isinstance(child, str):
            return To.child(child)
        names = tuple(self._by_name)
        if not 0 <= child < len(names):
            message = f"{self.name} has no child {child} (children: {', '.join(names) or 'none'}, counted from 0)"
            raise DataError(message)
        return To.child(names[child])


class ValueContext(LegacyContext):
    """The context of a `ValueTransformer`: what it returns is the one result, so it cannot forward."""

    __slots__ = ()

    def forward(self, record: Any, *old: Any, to: To | None = None) -> None:
        """Raise `DataError`, as Kafka does."""
        del record, old, to
        message = f"{self.name}: a value transformer returns its result and cannot forward: use process_values"
        raise DataError(message)

    def send(self, record: Record) -> None:
        """Forward what the transformer returned."""
        ProcessorContext.forward(self, record)


class _Legacy(Adapted):
    """What the three old kinds share."""

    context: LegacyContext
    context_type: ClassVar[type[ProcessorContext]] = LegacyContext

    def make_context(self, name: str, scope: TaskScope) -> ProcessorContext:
        """See `Adapted.make_context`."""
        context = super().make_context(name, scope)
        if isinstance(context, LegacyContext):
            context.on_interval = self.on_interval
        return context

    def punctuate(self, timestamp: int) -> Any:
        """Handle a punctuation of the one-argument ``schedule``, at a stream time in epoch milliseconds."""

    def on_interval(self, timestamp: int) -> None:
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

    def on_interval(self, timestamp: int) -> None:
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

    def on_interval(self, timestamp: int) -> None:
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


def deprecated(old: str, new: str) -> None:
    """Warn the caller's caller. Python shows each line of code once."""
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)
