"""Watch the stores of a task: which entries are read and written while it handles a record or a punctuation.

A watcher replaces the methods of a task's stores, as `streams.state.savepoint` does, and changes no result. An entry is
identified by its key, and by its position: the window's start, the session, or the record's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from rewindow.engine.worker.provenance.origins import Cause, Origin
from rewindow.streams.punctuation import Schedule
from rewindow.streams.record import UNKNOWN, Record, Windowed
from rewindow.streams.task_context import TaskContext

Entry = tuple[str, Any, Any]
"""Store, key and position."""

OnWrite = Callable[[Cause, Entry], None]
"""Gets the cause of a write to a store, and the entry that is written."""


class Taken(NamedTuple):
    """A record that the task takes, with its order key."""

    topic: str
    offset: int
    timestamp: int
    order_ms: int
    rank: int


_NO_RECORD = (None, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def entry_of(key: Any) -> tuple[Any, Any]:
    """Return a key and its position: the key within a windowed key, and its window."""
    if key.__class__ is not Windowed:
        return key, None
    own, (start_ms, end_ms, is_session) = key
    return own, (start_ms, end_ms) if is_session else start_ms


class Watcher:
    """Notes the origins of a task's entries. The replay sets ``epoch``, ``event`` and ``source`` as it goes."""

    def __init__(self, sub_topology: int, partition: int, on_write: OnWrite | None = None) -> None:
        """``on_write`` gets the cause of each write, and its entry."""
        self.epoch = 0
        self.event: Taken | None = None
        """The record that is taken; None at the end of an epoch."""
        self.source: Origin | None = None
        """The origin of that record, if another sub-topology sent it."""
        self.first: Origin | None = None
        """The first record that the task took, which starts its schedules."""
        self.latest: Origin | None = None
        """The record with the highest timestamp so far, which decides when schedules are due."""
        self.fired_before: Origin | None = None
        """The record at which the schedule that is called now fired before, which decides when it was due."""
        self._fired: dict[int, Origin] = {}
        self._where = sub_topology, partition
        self._on_write = on_write
        self._entries: dict[Entry, Origin] = {}
        self._cause: Cause | None = None
        self._read: list[Origin] = []
        self._by_key: dict[Any, dict[Entry, Origin]] = {}
        self._visited: set[Entry] = set()
        self._absent: set[tuple[Any, Any]] = set()
        self._focus: dict[str, Entry] = {}
        self._is_muted = False
        self._node = ""

    def begin(self, task_context: TaskContext) -> None:
        """Begin with a new task; `task_replay` calls this."""
        self._context, schedules = task_context.record_context, task_context.schedules
        schedules.call = self._calling(schedules.call)  # type: ignore[method-assign, assignment]

    def take(self, taken: Taken, source: Origin | None) -> None:
        """Begin with a record; ``source`` is its origin if another sub-topology sent it."""
        self.event, self.source = taken, source
        if self.latest is None or taken.timestamp > self.latest.cause.timestamp:
            self.latest = Origin(self._at(taken), (), [], source=source)
            self.first = self.first or self.latest

    def cause(self) -> Cause:
        """Return what the task is handling; forget what was read before it."""
        node, due_ms = None, UNKNOWN
        if self._context.firing is not None and self._context.scheduled_ms != UNKNOWN:
            node, due_ms = self._node, self._context.scheduled_ms
        cause = self._at(self.event, node, due_ms)
        if cause != self._cause:
            self._cause = cause
            self._read, self._by_key, self._visited, self._absent, self._focus = [], {}, set(), set(), {}
        return cause

    def _at(self, taken: Taken | None, node: str | None = None, due_ms: int = UNKNOWN) -> Cause:
        sub_topology, partition = self._where
        topic, offset, timestamp, order_ms, rank = taken or _NO_RECORD
        return Cause(sub_topology, partition, self.epoch, topic, offset, timestamp, order_ms, rank, node, due_ms)

    def sent(self, record: Record) -> tuple[Origin, bool]:
        """Return the origin of a record that reaches a sink, and whether it was released: not made by this record, but due."""
        cause = self.cause()
        near, is_sure = self._near(*entry_of(record.key))
        is_released = bool(near) and self._visited.issuperset(near)
        return Origin(cause, tuple(near.values()), self._read, is_sure=is_sure, source=self.source), is_released

    def read(self, entry: Entry, *, is_visited: bool = False) -> None:
        """Note that an entry was read; ``is_visited``: while visiting several keys."""
        if self._is_muted:
            return
        self.cause()
        origin = self._entries.get(entry)
        if origin is None:
            self._absent.add(entry[1:])
        else:
            of_key = self._by_key.setdefault(entry[1], {})
            if of_key.get(entry) is not origin:
                of_key[entry] = origin
                self._read.append(origin)
            if is_visited:
                self._visited.add(entry)

    def wrote(self, entry: Entry, *, from_reads: bool = True, adds: bool = False, replaces: bool = False) -> None:
        """Note that an entry was written, from what was read of its key, or added to what it had.

        ``replaces``: it was written from the record alone, in place of what was read of its key.
        """
        if self._is_muted:
            return
        cause = self.cause()
        read_nearby, is_sure = self._near(entry[1], entry[2]) if from_reads else ({}, True)
        if self._on_write is not None:
            self._on_write(cause, entry)
        before = self._entries.get(entry)
        parents = (*read_nearby.values(), *((before,) if adds and before is not None else ()))
        read = self._read if from_reads else list(parents)
        near, replaced = ((), parents) if replaces else (parents, ())
        made = Origin(cause, near, read, is_sure=is_sure, source=self.source, replaced=replaced)
        self._entries[entry] = made
        self._by_key.setdefault(entry[1], {})[entry] = made
        self._read.append(made)
        self._visited.discard(entry)

    def gone(self, entry: Entry) -> None:
        """Note that an entry was removed."""
        if not self._is_muted:
            self._entries.pop(entry, None)

    def quietly(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method of a store, whose own calls of other methods are not noted."""
        before, self._is_muted = self._is_muted, True
        try:
            return method(*args, **kwargs)
        finally:
            self._is_muted = before

    def following(
        self, store: str, items: Iterable[tuple[Entry, Any]], *, is_visited: bool, pops: bool
    ) -> Iterator[Any]:
        """Yield what a store returns, noting each entry as it is reached: until the next one, it alone was read of the store."""
        iterator = iter(items)
        while (reached := self.quietly(next, iterator, None)) is not None:
            entry, item = reached
            self.read(entry, is_visited=is_visited)
            if pops:
                self.gone(entry)
            self._focus[store] = entry
            yield item
        self._focus.pop(store, None)

    def _near(self, key: Any, position: Any) -> tuple[dict[Entry, Origin], bool]:
        """Return the entries read of a key and position, else of the key, else all; and whether no other can matter.

        A key and position that were looked up, but had nothing, are made of the record alone, unless another store had the key.
        """
        own = self._by_key.get(key, {})
        exact = {entry: origin for entry, origin in own.items() if position is not None and entry[2] == position}
        is_other = position is None and bool(own)
        if exact or ((key, position) in self._absent and not is_other):
            return exact, True
        if own:
            return {entry: origin for entry, origin in own.items() if self._focus.get(entry[0], entry) == entry}, True
        everything = {entry: origin for of_key in self._by_key.values() for entry, origin in of_key.items()}
        return everything, len(self._by_key) <= 1

    def _calling(self, call: Callable[[Schedule, int], None]) -> Callable[[Schedule, int], None]:
        """Return what calls a schedule, and notes its node."""

        def calling(schedule: Schedule, now_ms: int) -> None:
            self._node = schedule.node
            self.fired_before = self._fired.get(schedule.registration)
            if self.event is not None:
                self._fired[schedule.registration] = Origin(self._at(self.event), (), [], source=self.source)
            call(schedule, now_ms)

        return calling
