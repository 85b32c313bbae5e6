"""Tables: sources, filters and maps with or without a store, regrouping, and aggregates without windows."""

from __future__ import annotations

from typing import Any

from tests.oracle.folds import Fold
from tests.oracle.memory import Entry, Rows
from tests.oracle.nodes import Node, Setting
from tests.oracle.scripts import Message
from tests.oracle.vocabulary import key_selector, predicate, text_of, transformed, value_mapper


class TableSource(Node):
    """A topic as a table: the last value of each key by offset, regardless of timestamps."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._rows = Rows()

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        if key is None:
            return
        old = self._rows.get(key)
        self._rows.put(key, value, timestamp)
        self.send((key, (value, old and old[0]), timestamp))

    def get(self, key: Any) -> Entry | None:
        """See `Node`."""
        return self._rows.get(key)

    def contents(self) -> list[dict[str, Any]]:
        """See `Node`."""
        return self._rows.contents()


class TableMap(Node):
    """A filter or a map of values. A filter sends a tombstone for a value that does not pass.

    A filter that knows the old value (``sends_old``) sends no tombstone if nothing passed before.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._is_filter = setting.spec["op"] == "filter"
        self._rows = Rows() if setting.spec.get("materialize") else None

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, (new, old), timestamp = message
        new, old = self._mapped(new), self._mapped(old)
        if self._rows is not None:
            before = self._rows.get(key)
            old = before and before[0]
        if self._is_filter and self.setting.sends_old and new is None and old is None:
            return
        if self._rows is not None:
            self._rows.put(key, new, timestamp)
        self.send((key, (new, old), timestamp))

    def get(self, key: Any) -> Entry | None:
        """See `Node`."""
        if self._rows is not None:
            return self._rows.get(key)
        entry = self.setting.parents[0].get(key)
        mapped = None if entry is None else self._mapped(entry[0])
        return None if entry is None or mapped is None else (mapped, entry[1])

    def contents(self) -> list[dict[str, Any]] | None:
        """See `Node`."""
        return None if self._rows is None else self._rows.contents()

    def _mapped(self, value: Any) -> Any:
        if not self._is_filter:
            return value_mapper(self.setting.spec["fn"])(value)
        return value if value is not None and predicate(self.setting.spec["pred"])(value) else None


class TableTransform(Node):
    """A transformer of values, which may count its calls by key. It is also called for nulls."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._rows = Rows() if setting.spec.get("materialize") else None
        self.calls: dict[str, int] | None = {} if "store" in setting.spec else None

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, (new, old), timestamp = message
        new = self._transformed(key, new)
        if self._rows is not None:
            before = self._rows.get(key)
            old = before and before[0]
            self._rows.put(key, new, timestamp)
        else:
            old = self._transformed(key, old) if self.setting.sends_old else None
        self.send((key, (new, old), timestamp))

    def get(self, key: Any) -> Entry | None:
        """See `Node`. A missing row is transformed, too; what is made of it has no timestamp."""
        if self._rows is not None:
            return self._rows.get(key)
        value, timestamp = self.setting.parents[0].get(key) or (None, -1)
        made = self._transformed(key, value)
        return None if made is None else (made, timestamp)

    def contents(self) -> list[dict[str, Any]] | None:
        """See `Node`."""
        return None if self._rows is None else self._rows.contents()

    def _transformed(self, key: Any, value: Any) -> Any:
        number = None
        if self.calls is not None:
            number = self.calls[text_of(key)] = self.calls.get(text_of(key), 0) + 1
        return transformed(self.setting.spec, key, value, number)


def regrouped(by: dict[str, Any], message: Message) -> list[Message]:
    """Return a table's update by new key: one update, or a removal from one key and an addition to another."""
    key, (new, old), timestamp = message
    select = key_selector(by)
    new_key = None if new is None else select(key, new)
    old_key = None if old is None else select(key, old)
    if new_key is not None and new_key == old_key:
        return [(new_key, (new, old), timestamp)]
    went = [] if old_key is None else [(old_key, (None, old), timestamp)]
    return went if new_key is None else [*went, (new_key, (new, None), timestamp)]


class StreamAggregate(Node):
    """One state per key of a stream."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._rows = Rows()
        self._fold = Fold(setting.spec["fn"])

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        if key is None or value is None:
            return
        entry = self._rows.get(key)
        if entry is None:
            old = self._fold.start if self.follow_kafka("D13") else None
            new = self._fold.add(None, value)
        else:
            old, new, timestamp = entry[0], self._fold.add(entry[0], value), max(timestamp, entry[1])
        self._rows.put(key, new, timestamp)
        self.send((key, (new, old), timestamp))

    def get(self, key: Any) -> Entry | None:
        """See `Node`."""
        return self._rows.get(key)

    def contents(self) -> list[dict[str, Any]]:
        """See `Node`."""
        return self._rows.contents()


class TableAggregate(StreamAggregate):
    """One state per key of a grouped table. The old value is subtracted, then the new one is added."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._fold = Fold(setting.spec["fn"], of_table=True)

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, (came, went), timestamp = message
        entry = self._rows.get(key)
        old = state = entry and entry[0]
        if entry is not None and (came is not None or went is not None):
            timestamp = max(timestamp, entry[1])
        if went is not None and state is not None:
            state = self._fold.subtract(state, went)
        if came is not None:
            state = self._fold.add(state, came)
        self._rows.put(key, state, timestamp)
        self.send((key, (state, old), timestamp))
