"""Grouped tables: an update subtracts the old value of its row from the group's aggregate and adds the new value.

1. A mapper assigns each row to a group. If the row stays in its group, an update is sent as one message and gives one result.
   If the row moves to another group, the update is sent as two messages: first to the old group, then to the new one.
2. The subtracted value is the value that was last sent (D13), so a group never subtracts a value that it did not add.
3. A result has the larger of the update's and the group's timestamps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewindow.dsl.operators.builtin_aggregates import Subtractable, described
from rewindow.dsl.operators.compound import Custom, Reduce
from rewindow.dsl.operators.window_aggregate import check_lists
from rewindow.streams.metrics import LATE_RECORD_DROP
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, Record
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.serde.normalizers import copied
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Stamped


@dataclass(frozen=True, slots=True)
class TableGroupBy:
    """Send updates to their groups: ``mapper(key, value) -> (group, value)``.

    A row whose group or value is null belongs to no group. Late updates of a versioned table are dropped and counted.
    """

    mapper: Callable[[Any, Any], tuple[Any, Any]]

    def __call__(self) -> Processor:
        return _GroupBy(self.mapper)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "table_group_by"


@dataclass(frozen=True, slots=True)
class TableAggregate:
    """Aggregate the rows of each group. A group without rows keeps its last aggregate."""

    aggregator: Subtractable
    store: str

    def __call__(self) -> Processor:
        return _Aggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"table_aggregate({described(self.aggregator)}, store={self.store})"


@dataclass(frozen=True, slots=True)
class CustomSubtractable(Custom):
    """A `Custom` aggregate with a ``subtractor(key, value, aggregate) -> aggregate``."""

    subtractor: Callable[[Any, Any, Any], Any] = lambda _key, _value, state: state

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """See `Subtractable`."""
        return self.subtractor(key, value, state)


@dataclass(frozen=True, slots=True)
class ReduceSubtractable(Reduce):
    """A `Reduce` aggregate with a ``subtractor(aggregate, value) -> aggregate``."""

    subtractor: Callable[[Any, Any], Any] = lambda state, _value: state

    def subtract(self, key: Any, value: Any, state: Any) -> Any:
        """See `Subtractable`."""
        del key
        return self.subtractor(state, value)


class _GroupBy(Processor):
    def __init__(self, mapper: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self._mapper = mapper

    def process(self, record: Record) -> None:
        change = record.value
        if not change.is_latest:
            self.context.drop(record, LATE_RECORD_DROP, reason="not-latest")
            return
        old, new = self._grouped(record.key, change.old), self._grouped(record.key, change.new)
        if old is not None and new is not None and encode_key(old[0]) == encode_key(new[0]):
            self._send(record, new[0], Change(new[1], old[1]))
            return
        if old is not None:
            self._send(record, old[0], Change(None, old[1]))
        if new is not None:
            self._send(record, new[0], Change(new[1]))

    def _send(self, record: Record, group: Any, change: Change) -> None:
        self.context.forward(Record(group, change, record.timestamp, record.headers))

    def _grouped(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        """Return ``(group, value)`` of a row, or None if the row belongs to no group."""
        if value is None:
            return None
        # User code may return any value.
        pair: object = self._mapper(key, value)
        if not isinstance(pair, tuple) or len(pair) != 2:
            message = f"group_by of a table must return (group, value), not {pair!r}"
            raise TypeError(message)
        group, given = pair
        return None if group is None or given is None else (group, given)


class _Aggregate(Processor):
    def __init__(self, settings: TableAggregate) -> None:
        self._aggregator, self._store_name = settings.aggregator, settings.store

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: KeyValueStore = context.store(self._store_name)

    def process(self, record: Record) -> None:
        key, change, timestamp, aggregator = record.key, record.value, record.timestamp, self._aggregator
        before = self._store.get(key)
        state = old_result = None
        if before is not None:
            state, old_result = copied(before.value), aggregator.result(before.value)
            timestamp = max(timestamp, before.timestamp)
        if change.old is not None and state is not None:
            state = aggregator.subtract(key, change.old, state)
        if change.new is not None:
            state = aggregator.add(key, change.new, copied(aggregator.start()) if state is None else state)
        check_lists(self.context, self._store_name, key, state)
        self._store.put(key, None if state is None else Stamped(state, timestamp))
        result = None if state is None else aggregator.result(state)
        self.context.forward(Record(key, Change(result, old_result), timestamp, record.headers))
