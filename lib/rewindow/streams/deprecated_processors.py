"""Processors and transformers with the interfaces from before KIP-138, KIP-251 and KIP-820, for code that is being ported.

They run as adapted processors: the task calls `take`, and their context accepts the old signatures of ``forward`` and
``schedule``. An ordinary `ProcessorContext` does not accept them. The old calls (left) mean the new calls (right):

==================================== =========================================================================
``schedule(interval)``               ``schedule(interval, STREAM_TIME, self.punctuate)`` (KIP-138) ``forward(key, value)``
``forward(Record(key, value))``: the time of the event being handled ``forward(key, value, "child")``     ``...,
to=To.child("child")`` ``forward(key, value, 1)``           to the second child, in the order in which children were added
(KIP-251) ``forward(key, value, To...)``       ``..., to=To...`` ====================================
=========================================================================

Each old call gives a `DeprecationWarning` that names the caller's line. Python shows the warning once per line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, ClassVar

from rewindow.errors import ConfigError, DataError
from rewindow.streams.processor import AdaptedProcessor, ProcessorContext
from rewindow.streams.punctuation import Cancellable, PunctuationType
from rewindow.streams.record import Record, To
from rewindow.streams.task_context import TaskContext

TableHandler = Callable[["ValueTransformer", Record], None]
"""``handler(transformer, record)`` handles a record that is an update of a table."""


def deprecated(old: str, new: str) -> None:
    """Give a `DeprecationWarning` at the line that called the deprecated function, which is two calls above."""
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)


class LegacyContext(ProcessorContext):
    """A context that also accepts the old calls ``forward(key, value, child)`` and ``schedule(interval)``."""

    __slots__ = ("headers",)

    def __init__(self, name: str, task_context: TaskContext) -> None:
        super().__init__(name, task_context)
        self.headers: tuple[tuple[str, bytes], ...] = ()
        """The headers of the record being handled. ``forward(key, value)`` sends a record with the same headers."""

    def forward(self, record: Any, *value_and_child: Any, to: To | None = None) -> None:
        """Forward a record, or a key, a value and optionally a child: see `ProcessorContext.forward`."""
        if value_and_child:
            deprecated("forward(key, value)", "forward(Record(key, value), to=...)")
            value, *child = value_and_child
            record = Record(record, value, headers=self.headers)
            to = self._target(child) if child else to
        super().forward(record, to=to)

    def schedule(
        self,
        interval: str | timedelta,
        type: PunctuationType | None = None,  # noqa: A002 - KIP-138's own name
        callback: Callable[..., None] | None = None,
        *,
        name: str | None = None,
        time_shift: str | timedelta | None = None,
        start_time: str | timedelta | None = None,
        args: tuple[Any, ...] = (),
    ) -> Cancellable:
        """Schedule a method; given the interval alone, schedule ``punctuate`` on stream time: see `ProcessorContext.schedule`."""
        if type is None and callback is None:
            deprecated("schedule(interval)", "schedule(interval, PunctuationType.STREAM_TIME, self.punctuate)")
            processor: Any = self._task_context.schedules.processors[self.name]
            type, callback = PunctuationType.STREAM_TIME, processor.call_punctuate  # noqa: A001
        elif type is None or callback is None:
            raise ConfigError(
                "schedule-without-callback",
                "{node}: schedule({interval}) needs a type, PunctuationType.STREAM_TIME or WALL_CLOCK_TIME, and "
                "a callback, self.<method>: give both",
                node=self.name,
                interval=repr(interval),
            )
        return super().schedule(
            interval, type, callback, name=name, time_shift=time_shift, start_time=start_time, args=args
        )

    def _target(self, given: list[Any]) -> To:
        """Return the target for a child that is given as a `To`, a name or a number. Raises `DataError` for an unknown number."""
        child = given[0] if len(given) == 1 else tuple(given)
        if isinstance(child, To):
            return child
        if isinstance(child, str):
            return To.child(child)
        children = tuple(self._by_name)
        if not isinstance(child, int) or not 0 <= child < len(children):
            raise DataError(
                "child-number-unknown",
                "{node} has no child {child} (children: {children}, counted from 0)",
                node=self.name,
                child=repr(child),
                children=", ".join(children) or "none",
            )
        return To.child(children[child])


class ValueContext(LegacyContext):
    """The context of a `ValueTransformer`, which returns its result and cannot forward."""

    __slots__ = ()

    def forward(self, record: Any, *value_and_child: Any, to: To | None = None) -> None:
        """Raise `DataError`, because a value transformer cannot forward. Kafka raises an error, too."""
        del record, value_and_child, to
        raise DataError(
            "value-transformer-forwards",
            "{node}: a value transformer returns its result and cannot forward: use process_values of a stream",
            node=self.name,
        )

    def send(self, record: Record) -> None:
        """Forward the transformer's result."""
        super().forward(record)


class _Legacy(AdaptedProcessor):
    """The base of the legacy classes, which passes on headers and has the method that ``schedule(interval)`` calls."""

    context: LegacyContext
    context_type: ClassVar[type[ProcessorContext]] = LegacyContext

    def init(self, context: LegacyContext) -> None:  # type: ignore[override]  # the task gives it a `context_type`
        """Start an epoch: see `Processor.init`."""
        self.context = context

    def punctuate(self, timestamp: int) -> Any:
        """Handle a punctuation of ``schedule(interval)``, at a stream time in epoch milliseconds."""

    def call_punctuate(self, timestamp: int) -> None:
        """Call ``punctuate``. Subclasses handle its result."""
        self.punctuate(timestamp)

    def take(self, record: Record) -> None:
        """See `AdaptedProcessor.take`."""
        context = self.context
        context.headers = record.headers
        try:
            self._handle(record)
        finally:
            context.headers = ()

    def _handle(self, record: Record) -> None:
        raise NotImplementedError


class LegacyProcessor(_Legacy):
    """A processor from before KIP-138 and KIP-820: ``process`` gets key and value, and ``punctuate`` may be defined."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        deprecated("LegacyProcessor", "Processor, whose process takes a Record")

    def process(self, key: Any, value: Any) -> None:  # type: ignore[override]  # the old signature
        """Handle one record."""

    def _handle(self, record: Record) -> None:
        self.process(record.key, record.value)


class Transformer(_Legacy):
    """The code of the deprecated `KStream.transform`: ``transform`` returns ``(key, value)`` to forward, or None for nothing."""

    is_flat = False
    """Whether the transformer runs in `KStream.flat_transform`, where ``transform`` returns any number of pairs."""

    def transform(self, key: Any, value: Any) -> Any:
        """Return the new key and value."""
        raise NotImplementedError

    def call_punctuate(self, timestamp: int) -> None:
        """Forward the pair that ``punctuate`` returns (KIP-138)."""
        self._send(self.punctuate(timestamp), "punctuate")

    def _handle(self, record: Record) -> None:
        self._send(self.transform(record.key, record.value), "transform")

    def _send(self, result: Any, method: str) -> None:
        context = self.context
        for pair in _several(result, is_flat=self.is_flat):
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise DataError(
                    "transformer-result-not-pair",
                    "{node}: {method} must return (key, value), or None for nothing, not {result}",
                    node=context.name,
                    method=method,
                    result=repr(pair),
                )
            context.forward(Record(*pair, headers=context.headers))


class ValueTransformer(_Legacy):
    """The code of the deprecated `transform_values` of a stream or a table.

    ``transform`` returns the new value. The key does not change.
    """

    context: ValueContext
    context_type: ClassVar[type[ProcessorContext]] = ValueContext
    is_flat = False
    """Whether the transformer runs in `KStream.flat_transform_values`, where ``transform`` returns any number of values."""
    of_table: TableHandler | None = None
    """Handles the records in `KTable.transform_values`, where each record is an update of a table; None on a stream."""

    def transform(self, value: Any) -> Any:
        """Return the new value."""
        raise NotImplementedError

    def call_punctuate(self, timestamp: int) -> None:
        """Call ``punctuate``. As in Kafka, it must not return a value (`DataError`), because a punctuation has no key to send."""
        if self.punctuate(timestamp) is not None:
            raise DataError(
                "punctuate-returned-value",
                "{node}: punctuate of a value transformer must return None: there is no key",
                node=self.context.name,
            )

    def _handle(self, record: Record) -> None:
        if self.of_table is not None:
            self.of_table(self, record)
            return
        results = self.transformed(record)
        for value in _several(results, is_flat=True) if self.is_flat else (results,):
            self.context.send(record.with_value(value))

    def transformed(self, record: Record) -> Any:
        """Return what ``transform`` returns for a record."""
        return self.transform(record.value)


class ValueTransformerWithKey(ValueTransformer):
    """A `ValueTransformer` whose ``transform`` also gets the key, read-only."""

    def transform(self, key: Any, value: Any) -> Any:  # type: ignore[override]  # Kafka's own signature
        """Return the new value."""
        raise NotImplementedError

    def transformed(self, record: Record) -> Any:
        """Return what ``transform`` returns for a record."""
        return self.transform(record.key, record.value)


def _several(result: Any, *, is_flat: bool) -> Iterable[Any]:
    if result is None:
        return ()
    return result if is_flat else (result,)
