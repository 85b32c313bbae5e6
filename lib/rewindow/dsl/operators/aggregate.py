"""Aggregation by key: one state for each key, and an update downstream for every accepted record.

A result has the largest timestamp of its records. An update also carries the old result, null at first (D13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rewindow.dsl.operators.aggregates import Aggregator, described
from rewindow.streams.metrics import SKIPPED_RECORDS
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, Record
from rewindow.streams.serde.values import copied
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Stamped


@dataclass(frozen=True, slots=True)
class StreamAggregate:
    """Aggregate by key. Records with a null key or value are skipped; a null state deletes the key."""

    keeps_key: ClassVar[bool] = True
    asks_own_key: ClassVar[bool] = True

    aggregator: Aggregator
    store: str

    def __call__(self) -> Processor:
        return _StreamAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"aggregate({described(self.aggregator)}, store={self.store})"


class _StreamAggregate(Processor):
    def __init__(self, settings: StreamAggregate) -> None:
        self._settings = settings
        self._aggregator = settings.aggregator

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: KeyValueStore = context.store(self._settings.store)

    def process(self, record: Record) -> None:
        key, value, timestamp = record.key, record.value, record.timestamp
        if key is None or value is None:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key" if key is None else "null-value")
            return
        aggregator = self._aggregator
        old = self._store.get(key)
        state, new_result, old_result = aggregated(aggregator, key, value, old)
        if old is not None:
            timestamp = max(timestamp, old.timestamp)
        check_lists(self.context, self._settings.store, key, state)
        self._store.put(key, None if state is None else Stamped(state, timestamp))
        self.context.forward(Record(key, Change(new_result, old_result), timestamp, record.headers))


def check_lists(context: ProcessorContext, store: str, key: Any, state: Any) -> None:
    """Raise `LimitError` (71) for a state with a list that is too long to be copied for each record."""
    if state.__class__ is list:
        context.check_items(store, key, len(state))
    elif isinstance(state, tuple) and list in map(type, state):
        context.check_items(store, key, max(len(one) for one in state if one.__class__ is list))


def aggregated(aggregator: Aggregator, key: Any, value: Any, old: Stamped | None) -> tuple[Any, Any, Any]:
    """Return the new state, its result and the old result.

    The aggregator may modify its state in place, so it gets a copy, also of its start state, which may be the same
    object each time. The old result is computed first.
    """
    if old is None:
        state = aggregator.add(key, value, copied(aggregator.start()))
        return state, None if state is None else aggregator.result(state), None
    old_result = aggregator.result(old.value)
    state = aggregator.add(key, value, copied(old.value))
    return state, None if state is None else aggregator.result(state), old_result
