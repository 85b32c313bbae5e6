"""The foreign-key join of two tables (KIP-213): four processors in three sub-topologies.

1. In the left table's sub-topology, `ForeignKeySend` sends each update twice. One message goes to the partition of the left
   row's key, where a copy of the left table is kept. The other goes to the partition of the foreign key. It is a subscription
   to the right row with this key.
2. In the right table's sub-topology, `ForeignKeySubscribe` keeps the subscribers of each key. It replies to a subscription with
   an `Answer` that contains the right row. `ForeignKeyPublish` sends an answer to all subscribers when the right row changes.
3. In the third sub-topology, `ForeignKeyJoin` keeps the copy of the left table and joins its rows with the answers.

Answers and updates reach `ForeignKeyJoin` by different paths. So an answer may be early: it arrives before the update that
caused its subscription. An answer may also be outdated: it arrives after a newer update that changed the foreign key.
Therefore the updates of a partition are numbered, and a subscription and its answers contain the number of their update. An
outdated answer is dropped, because the newer update causes another answer. An early answer waits for its update. The update
arrives in the same epoch, because internal logs are released in whole epochs. (Kafka compares hashes of the left value and
drops both kinds of answers, so the result of an early answer is missing until the next update.)

If the left row changed, a result has the larger timestamp of both rows. If the right row changed, a result has the timestamp
of the right row. In a left join, the result for a row without a foreign key has the row's own timestamp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewindow.dsl.operators.table_view import TableView
from rewindow.streams.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, Record, To, row_class
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.state.key_value_store import KeyValueStore, PrefixStore

ALWAYS, QUIET, LAST, NEVER = "always", "quiet", "last", "never"
"""The ways to answer a subscription.

ALWAYS: the subscription is answered. QUIET: it is answered, but an answer without a right row is ignored unless there is a
result to delete. LAST: the subscription ends, and is answered for the last time. NEVER: the subscription ends without an
answer, because another subscription of the same update is answered, or because no answer is needed.
"""

_LAST = "last"

Sent = row_class(("number", "is_row", "value", "needs_no_answer"))
"""An update of a left row, sent to the copy of the left table. ``is_row`` is False for a deletion."""
Subscription = row_class(("left_key", "number", "answered"))
Subscriber = row_class(("foreign_key", "left_key"))
Answer = row_class(("number", "is_row", "is_quiet", "value"))
Copied = row_class(("number", "value"))


@dataclass(frozen=True, slots=True)
class ForeignKeySend:
    """Send updates of the left table to the copy, and subscriptions to the partitions of their foreign keys."""

    foreign_key: Callable[[Any, Any], Any]
    to_copy: str
    to_right: str
    keeps_left: bool
    store: str
    """The store that contains the number of the partition's last update."""

    def __call__(self) -> Processor:
        return _Send(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"foreign_key_send({'left' if self.keeps_left else 'inner'})"


@dataclass(frozen=True, slots=True)
class ForeignKeySubscribe:
    """Keep subscriptions in a store, and answer them with the rows of the right table."""

    right: TableView
    store: str

    def __call__(self) -> Processor:
        return _Subscribe(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"foreign_key_subscribe(store={self.store})"


@dataclass(frozen=True, slots=True)
class ForeignKeyPublish:
    """When a right row changes, send an answer to all its subscribers."""

    store: str

    def __call__(self) -> Processor:
        return _Publish(self.store)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"foreign_key_publish(store={self.store})"


@dataclass(frozen=True, slots=True)
class ForeignKeyJoin:
    """Join the copied rows with the answers by ``joiner(key, left, right)``. ``keeps_left``: also send rows without a right row.

    The node has two parents. One sends `Sent` rows, the other sends `Answer` rows. ``store`` is the store of the copy.
    """

    joiner: Callable[[Any, Any, Any], Any]
    store: str
    results: str
    """The store of the results."""
    keeps_left: bool

    def __call__(self) -> Processor:
        return _Join(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"foreign_key_join({'left' if self.keeps_left else 'inner'}, store={self.store})"


class _Send(Processor):
    def __init__(self, settings: ForeignKeySend) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._numbers: KeyValueStore = context.store(self._settings.store)
        self._to_copy, self._to_right = To.child(self._settings.to_copy), To.child(self._settings.to_right)

    def process(self, record: Record) -> None:
        key, change, settings = record.key, record.value, self._settings
        if key is None or not change.is_latest:
            metric, reason = (SKIPPED_RECORDS, "null-key") if key is None else (LATE_RECORD_DROP, "not-latest")
            self.context.drop(record, metric, reason=reason)
            return
        if change.new is None and change.old is None:
            return
        old, new = (None if v is None else settings.foreign_key(key, v) for v in (change.old, change.new))
        if new is None and change.new is not None and not settings.keeps_left:
            self.context.drop(record.with_value(change.new), SKIPPED_RECORDS, reason="null-foreign-key")
        number = (self._numbers.get(_LAST) or 0) + 1
        self._numbers.put(_LAST, number)
        # Keys are compared by their bytes, because these decide the partition.
        has_moved = old is not None and (new is None or encode_key(old) != encode_key(new))
        # An update that needs no answer still makes earlier answers outdated. So `ForeignKeyJoin` must send the update's result.
        needs_no_answer = new is None and (settings.keeps_left or not has_moved)
        sent = Sent(number, change.new is not None, change.new, needs_no_answer)
        self.context.forward(record.with_value(sent), to=self._to_copy)
        if has_moved:
            ending = LAST if new is None and not settings.keeps_left else NEVER
            self._subscribe(record, old, Subscription(key, number, ending))
        if new is not None:
            answered = ALWAYS if settings.keeps_left or has_moved else QUIET
            self._subscribe(record, new, Subscription(key, number, answered))

    def _subscribe(self, record: Record, foreign_key: Any, subscription: Any) -> None:
        self.context.forward(Record(foreign_key, subscription, record.timestamp, record.headers), to=self._to_right)


class _Subscribe(Processor):
    def __init__(self, settings: ForeignKeySubscribe) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._subscribers: PrefixStore = context.store(self._settings.store)
        self._right = self._settings.right.open(context)

    def process(self, record: Record) -> None:
        left_key, number, answered = record.value
        subscriber = Subscriber(record.key, left_key)
        if answered in (LAST, NEVER):
            self._subscribers.delete(subscriber)
            if answered == NEVER:
                return
        else:
            self._subscribers.put(subscriber, number)
        row = self._right.get(record.key)
        timestamp = record.timestamp if row is None else max(record.timestamp, row.timestamp)
        is_row = row is not None and answered != LAST
        answer = Answer(number, is_row, answered == QUIET, row.value if row is not None and is_row else None)
        self.context.forward(Record(left_key, answer, timestamp, record.headers))


class _Publish(Processor):
    def __init__(self, store: str) -> None:
        self._store = store

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._subscribers: PrefixStore = context.store(self._store)

    def process(self, record: Record) -> None:
        change: Change = record.value
        if not change.is_latest:
            self.context.drop(record, LATE_RECORD_DROP, reason="not-latest")
            return
        for (_, left_key), number in self._subscribers.beginning_with(record.key):
            answer = Answer(number, change.new is not None, False, change.new)
            self.context.forward(Record(left_key, answer, record.timestamp, record.headers))


class _Join(Processor):
    def __init__(self, settings: ForeignKeyJoin) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._copy: KeyValueStore = context.store(self._settings.store)
        self._results: KeyValueStore = context.store(self._settings.results)
        # All answers to an epoch's updates arrive within the epoch. So these dictionaries need not outlive it.
        self._early: dict[Any, list[Record]] = {}
        self._deleted: dict[Any, int] = {}

    def process(self, record: Record) -> None:
        if record.value.__class__ is Answer:
            self._take_answer(record)
        else:
            self._take_update(record)

    def _take_update(self, record: Record) -> None:
        key, (number, is_row, value, needs_no_answer) = record.key, record.value
        waiting, deleted = self._early.pop(key, []), self._deleted.get(key, 0)
        if is_row:
            self._copy.put(key, Copied(number, value))
        else:
            self._copy.delete(key)
            self._deleted[key] = number
        try:
            if needs_no_answer and (self._settings.keeps_left or self._results.get(key) is not None):
                self._send(record, value if is_row else None, None)
            for answer in waiting:
                self._take_answer(answer)
        except Exception:
            # An error policy restores stores after a failure (`streams.error_policy`), but not the fields of a processor.
            self._early[key], self._deleted[key] = waiting, deleted
            raise

    def _take_answer(self, record: Record) -> None:
        key, answer = record.key, record.value
        row = self._copy.get(key)
        # An answer with a greater number has arrived before its update, so it must wait for the update.
        newest = self._deleted.get(key, 0) if row is None else row.number
        if answer.number > newest:
            self._early.setdefault(key, []).append(record)
        elif answer.number == newest and (answer.is_row or not answer.is_quiet or self._results.get(key) is not None):
            self._send(record, row and row.value, answer.value if answer.is_row else None)

    def _send(self, record: Record, left: Any, right: Any) -> None:
        is_row = left is not None and (right is not None or self._settings.keeps_left)
        result = self._settings.joiner(record.key, left, right) if is_row else None
        self.context.forward(record.with_value(Change(result)))
