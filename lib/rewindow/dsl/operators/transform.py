"""Verbs that run a user's code with a context: processors of values, transformers of streams and tables, side effects.

The supplier of each verb must return objects of one class; others are refused. A transformer of a table runs for the table's
updates (`TableTransform`) and for the rows that joins look up in the table (`TransformedView`). `ForEach` calls an action at
least once for each record, with an idempotency key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from inspect import Signature, signature
from typing import Any, ClassVar, TypeVar

from rewindow.dsl.operators.table_view import Lookup, ViewOfView
from rewindow.errors import ConfigError, TopologyError
from rewindow.streams.deprecated_processors import Transformer, ValueContext, ValueTransformer, ValueTransformerWithKey
from rewindow.streams.processor import FixedKeyProcessor, Processor, ProcessorContext
from rewindow.streams.punctuation import Cancellable, PunctuationType
from rewindow.streams.record import UNKNOWN, Change, Record
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Stamped
from rewindow.streams.topology import describe_supplier

Made = TypeVar("Made")
_Supplier = Callable[[], ValueTransformerWithKey]


@dataclass(frozen=True, slots=True)
class ProcessValues:
    """Run a `FixedKeyProcessor`."""

    supplier: Callable[[], FixedKeyProcessor]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"process_values({describe_supplier(self.supplier)})"

    def __call__(self) -> Processor:
        return _checked(self.supplier(), FixedKeyProcessor, "process_values")


@dataclass(frozen=True, slots=True)
class Transform:
    """Run a `Transformer`. With ``is_flat``, each call returns an iterable of pairs."""

    supplier: Callable[[], Transformer]
    is_flat: bool = False

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"{self._verb}({describe_supplier(self.supplier)})"

    @property
    def _verb(self) -> str:
        return "flat_transform" if self.is_flat else "transform"

    def __call__(self) -> Processor:
        transformer = _checked(self.supplier(), Transformer, self._verb)
        transformer.is_flat = self.is_flat
        return transformer


@dataclass(frozen=True, slots=True)
class TransformValues:
    """Run a `ValueTransformer`. With ``is_flat``, each call returns an iterable of values."""

    supplier: Callable[[], ValueTransformer]
    is_flat: bool = False

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"{self._verb}({describe_supplier(self.supplier)})"

    @property
    def _verb(self) -> str:
        return "flat_transform_values" if self.is_flat else "transform_values"

    def __call__(self) -> Processor:
        transformer = _checked(self.supplier(), ValueTransformer, self._verb)
        transformer.is_flat = self.is_flat
        return transformer


@dataclass(frozen=True, slots=True)
class TableTransform:
    """Replace each value by the result of a transformer, which is also called for tombstones.

    With a store, the old value of an update is the result that was stored before. Without a store, ``calls_old`` decides. If
    true, the transformer is called for the new value and then for the parent's old value, and the second result is the old
    value of the update. If false, the update has no old value.
    """

    keeps_key: ClassVar[bool] = True

    supplier: _Supplier
    has_state: bool = False
    """Whether the transformer has stores. If so, results depend on ``calls_old``, so this flag is part of the fingerprint."""
    store: str | None = None
    calls_old: bool = False

    def __call__(self) -> Processor:
        transformer = _checked(self.supplier(), ValueTransformerWithKey, "transform_values")
        transformer.of_table = self._send
        return transformer

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        store = "" if self.store is None else f", store={self.store}"
        calls_old = ", calls_old" if self.calls_old and self.has_state else ""
        return f"table_transform_values({describe_supplier(self.supplier)}{store}{calls_old})"

    def _send(self, transformer: ValueTransformer, record: Record) -> None:
        change, context = record.value, transformer.context
        new = transformer.transformed(record.with_value(change.new))
        if self.store is None:
            old = transformer.transformed(record.with_value(change.old)) if self.calls_old else None
            context.send(record.with_value(change._replace(new=new, old=old)))
            return
        store: KeyValueStore = context.store(self.store)
        before = store.get(record.key)
        store.put(record.key, None if new is None else Stamped(new, record.timestamp))
        context.send(record.with_value(Change(new, before.value if before else None)))


@dataclass(frozen=True, slots=True)
class TransformedView(ViewOfView):
    """A view that transforms the values of another view when they are looked up.

    Each node that opens the view has its own transformer.
    """

    supplier: _Supplier

    def open(self, context: ProcessorContext) -> Lookup:
        """See `TableView`."""
        transformer = _checked(self.supplier(), ValueTransformerWithKey, "transform_values")
        own = _LookupContext(context.name, context._task_context)  # noqa: SLF001 - the same node's context, of another kind
        transformer.init(own)
        return _TransformedLookup(self.table.open(context), transformer, own)


@dataclass(frozen=True, slots=True)
class ForEach:
    """Call ``action(key, value)``, or ``action(key, value, idempotency_key)``, for each record."""

    action: Callable[..., Any]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "foreach"

    def __call__(self) -> Processor:
        return _ForEach(calling(self.action))


def calling(action: Callable[..., Any]) -> Callable[[Any, Any, str], Any]:
    """Return the action as a function of key, value and idempotency key.

    Raises `TopologyError` if the action can be called neither with ``(key, value)`` nor with ``(key, value, idempotency_key)``.
    """
    if not callable(action):
        raise TopologyError("action-not-callable", "foreach({given}): give it a function", given=repr(action))
    try:
        accepted = signature(action)
    except (TypeError, ValueError):
        # Some builtins have no signature.
        return lambda key, value, _: action(key, value)
    named = "idempotency_key" in accepted.parameters
    if named and _fits(accepted, None, None, idempotency_key=""):
        return lambda key, value, idempotency_key: action(key, value, idempotency_key=idempotency_key)
    if not named and _fits(accepted, None, None):
        return lambda key, value, _: action(key, value)
    if _fits(accepted, None, None, ""):
        return action
    raise TopologyError(
        "action-parameters-wrong",
        "foreach: the action takes {signature}, but it is called with (key, value) or (key, value, idempotency_key)",
        signature=str(accepted),
    )


def _checked(made: object, wanted: type[Made], verb: str) -> Made:
    """Return ``made``, the result of a supplier. Raises `ConfigError` if it is not an instance of ``wanted``."""
    if not isinstance(made, wanted):
        raise ConfigError(
            "supplier-result-wrong-class",
            "{verb}: the supplier returned an instance of {type}: return one of {expected}",
            verb=verb,
            type=type(made).__name__,
            expected=wanted.__name__,
        )
    return made


class _LookupContext(ValueContext):
    """The context of a transformer in a `TransformedView`.

    It has no schedules, because these belong to the node's processor.
    """

    __slots__ = ()

    def schedule(
        self,
        interval: str | timedelta,
        type: PunctuationType | None = None,  # noqa: A002 - KIP-138's own name
        callback: Callable[..., None] | None = None,
        **options: Any,
    ) -> Cancellable:
        """Raise `ConfigError`, because this transformer cannot have schedules."""
        del interval, type, callback, options
        raise ConfigError(
            "joined-transformer-with-schedule",
            "the join {join!r} looks values up in a transform_values without a store, whose transformer has a "
            "schedule. Only a table that stores its values can have one: give transform_values a store=...",
            join=self.name,
        )

    def at(self, timestamp: int) -> int:
        """Set the timestamp that the transformer reads from its context. Return the previous one."""
        before: int = self._record_context.timestamp
        self._record_context.timestamp = timestamp
        return before


class _TransformedLookup:
    def __init__(self, table: Lookup, transformer: ValueTransformerWithKey, context: _LookupContext) -> None:
        self._table, self._transformer, self._context = table, transformer, context

    def get(self, key: Any) -> Stamped | None:
        return self._transformed(key, self._table.get(key))

    def get_as_of(self, key: Any, timestamp: int) -> Stamped | None:
        return self._transformed(key, self._table.get_as_of(key, timestamp))

    def _transformed(self, key: Any, row: Stamped | None) -> Stamped | None:
        """Return the transformed row, or None.

        As in Kafka, a missing row is transformed, too; its result has the timestamp -1.
        """
        value, timestamp = (None, UNKNOWN) if row is None else row
        before = self._context.at(timestamp)
        try:
            result = self._transformer.transform(key, value)
        finally:
            self._context.at(before)
        return None if result is None else Stamped(result, timestamp)


class _ForEach(Processor):
    def __init__(self, call: Callable[[Any, Any, str], Any]) -> None:
        self._call = call

    def process(self, record: Record) -> None:
        self._call(record.key, record.value, self.context.idempotency_key())


def _fits(accepted: Signature, *args: Any, **kwargs: Any) -> bool:
    try:
        accepted.bind(*args, **kwargs)
    except TypeError:
        return False
    return True
