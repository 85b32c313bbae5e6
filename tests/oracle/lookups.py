"""Joins with the current content of a table: a stream with a table, and two tables with each other."""

from __future__ import annotations

from typing import Any

from tests.oracle.joins import LEFT, joined
from tests.oracle.memory import Entry, Rows, key_bytes
from tests.oracle.nodes import Node, Setting
from tests.oracle.scripts import Message
from tests.oracle.vocabulary import key_selector


class StreamTableJoin(Node):
    """Joins a record with the table's current value. The table's updates send nothing."""

    def take(self, message: Message, side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        is_left = self.setting.spec["how"] == "left"
        if side != LEFT or value is None or (key is None and not is_left):
            return
        entry = None if key is None else self.setting.parents[1].get(key)
        if entry is not None or is_left:
            self.send((key, joined(value, entry and entry[0]), timestamp))


class GlobalTableJoin(Node):
    """Joins a record with a global table's current value of the key that it selects."""

    def take(self, message: Message, side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        if side != LEFT or value is None:
            return
        selected = key_selector(self.setting.spec["by"])(key, value)
        entry = None if selected is None else self.setting.parents[1].get(selected)
        if entry is not None or self.setting.spec["how"] == "left":
            result = joined(value, entry and entry[0])
            if self.setting.spec.get("keys"):
                result = f"{joined(key, selected)}|{result}"
            self.send((key, result, timestamp))


class ForeignKeyJoin(Node):
    """Joins each row of the left table with the right table's current row of its foreign key. The results are stored."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._keeps_left = setting.spec["how"] == "left"
        self._left: dict[Any, tuple[Any, Any]] = {}
        """From key to foreign key and value, for rows with a foreign key."""
        self._rows = Rows()

    def take(self, message: Message, side: int, /) -> None:
        """See `Node`."""
        key, (new, old), timestamp = message
        if side != LEFT:
            for left_key in sorted(self._left, key=key_bytes):
                foreign_key, value = self._left[left_key]
                if foreign_key == key:
                    self._result(left_key, value, new, timestamp)
            return
        if key is None or (new is None and old is None):
            return
        select = key_selector(self.setting.spec["by"])
        came, went = (None if value is None else select(key, value) for value in (new, old))
        has_moved = went is not None and came != went
        self._left.pop(key, None)
        if came is not None:
            self._left[key] = came, new
        row = self.setting.parents[1].get(came if came is not None else went)
        if row is not None and (came is not None or not self._keeps_left):
            timestamp = max(timestamp, row[1])
        right = row[0] if row is not None and came is not None else None
        # Without a match there is nothing to send, unless there may be a result to withdraw.
        if right is not None or self._keeps_left or has_moved or self._rows.get(key) is not None:
            self._result(key, new, right, timestamp)

    def get(self, key: Any) -> Entry | None:
        """See `Node`."""
        return self._rows.get(key)

    def contents(self) -> list[dict[str, Any]]:
        """See `Node`."""
        return self._rows.contents()

    def _result(self, key: Any, left: Any, right: Any, timestamp: int) -> None:
        is_row = left is not None and (right is not None or self._keeps_left)
        new, before = joined(left, right) if is_row else None, self._rows.get(key)
        self._rows.put(key, new, timestamp)
        self.send((key, (new, before and before[0]), timestamp))


class TableTableJoin(Node):
    """Joins an update of either table with the other's current value."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        how = setting.spec["how"]
        self._needs = {"inner": (True, True), "left": (True, False), "outer": (False, False)}[how]
        """By side: whether a result requires its value."""
        self._rows = Rows() if setting.spec.get("materialize") else None

    def take(self, message: Message, side: int, /) -> None:
        """See `Node`."""
        key, (new, old), timestamp = message
        if key is None:
            return
        other = self.setting.parents[1 - side].get(key)
        if other is None and (self._needs[1 - side] or (new is None and old is None)):
            return
        if other is not None:
            timestamp = max(timestamp, other[1])
        new, old = (self._joined(side, one, other and other[0]) for one in (new, old))
        if self._rows is not None:
            if not self.follow_kafka("D13"):
                before = self._rows.get(key)
                old = before and before[0]
            self._rows.put(key, new, timestamp)
        self.send((key, (new, old), timestamp))

    def get(self, key: Any) -> Entry | None:
        """See `Node`."""
        if self._rows is not None:
            return self._rows.get(key)
        left, right = (parent.get(key) for parent in self.setting.parents)
        value = self._joined(LEFT, left and left[0], right and right[0])
        return None if value is None else (value, max(one[1] for one in (left, right) if one is not None))

    def contents(self) -> list[dict[str, Any]] | None:
        """See `Node`."""
        return None if self._rows is None else self._rows.contents()

    def _joined(self, side: int, one: Any, other: Any) -> str | None:
        pair = (one, other) if side == LEFT else (other, one)
        is_missing = any(value is None and needed for value, needed in zip(pair, self._needs, strict=True))
        return None if is_missing or pair == (None, None) else joined(*pair)
