"""Watch the stores of a task: note which entries are read and written while the task handles a record or a punctuation.

A watcher replaces the methods of a task's stores, as `streams.state.savepoint` does, without changing results. An entry is
identified by its key and its position. The position is the window's start, the session's start and end, or the record's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from rewindow.engine.worker.provenance.origins import Cause, Origin
from rewindow.streams.punctuation import Schedule
from rewindow.streams.record import UNKNOWN, Record, Windowed
from rewindow.streams.task_context import TaskContext

Entry = tuple[str, Any, Any]
"""An entry of a store: the store's name, key and position."""

OnWrite = Callable[[Cause, Entry], None]
"""A function that is called with the cause of a write to a store, and with the entry that is written."""


class Taken(NamedTuple):
    """A record that the task takes: where it is, its timestamp, its order key, and the number of its topic."""

    topic: str
    offset: int
    timestamp: int
    order_ms: int
    rank: int


_NO_RECORD = (None, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def entry_of(key: Any) -> tuple[Any, Any]:
    """Return (key, position) of a store's key. For a windowed key, these are the key inside the windowed key and the window."""
    if key.__class__ is not Windowed:
        return key, None
    own, (start_ms, end_ms, is_session) = key
    return own, (start_ms, end_ms) if is_session else start_ms


class Watcher:
    """Notes the origins of the entries in a task's stores. The replay keeps ``epoch``, ``event`` and ``source`` up to date."""

    def __init__(self, sub_topology: int, partition: int, on_write: OnWrite | None = None) -> None:
        """``on_write`` gets the cause and the entry of each write to a store."""
        self.epoch = 0
        self.event: Taken | None = None
        """The record that the task is handling; None at the end of an epoch."""
        self.source: Origin | None = None
        """The origin of the record in ``event``, if another sub-topology sent it."""
        self.first: Origin | None = None
        """The origin of the first record of the task, which starts its schedules."""
        self.latest: Origin | None = None
        """The origin of the record with the highest timestamp so far, which decides when schedules are due."""
        self.fired_before: Origin | None = None
        """The origin of the record at which the current schedule fired last, which decides when it is due again."""
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
        """Begin to watch a new task. Called by `task_replay`."""
        self._context, schedules = task_context.record_context, task_context.schedules
        schedules.call = self._calling(schedules.call)  # type: ignore[method-assign, assignment]

    def take(self, taken: Taken, source: Origin | None) -> None:
        """Begin with the next record of the task. ``source`` is its origin if another sub-topology sent it."""
        self.event, self.source = taken, source
        if self.latest is None or taken.timestamp > self.latest.cause.timestamp:
            self.latest = Origin(self._at(taken), (), [], source=source)
            self.first = self.first or self.latest

    def cause(self) -> Cause:
        """Return the event that the task is handling. If the event is a new one, forget the entries that were read before."""
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
        """Return the origin of a record that reaches a sink, and whether the record was only released.

        A released record had been waiting in a store until it was due. It was not made from the record that the task is handling.
        """
        cause = self.cause()
        near, is_sure = self._near(*entry_of(record.key))
        is_released = bool(near) and self._visited.issuperset(near)
        return Origin(cause, tuple(near.values()), self._read, is_sure=is_sure, source=self.source), is_released

    def read(self, entry: Entry, *, is_visited: bool = False) -> None:
        """Note that an entry was read. ``is_visited``: whether the method that read it visits several keys."""
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
        """Note that an entry was written.

        ``from_reads``: whether the entry was made from the entries of its key that were read. ``adds``: whether the entry's
        previous content is kept. ``replaces``: whether the entry was made from the record alone, and replaces the entries of its
        key that were read.
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
        """Call a method of a store. Calls of other methods that the method itself makes are not noted."""
        before, self._is_muted = self._is_muted, True
        try:
            return method(*args, **kwargs)
        finally:
            self._is_muted = before

    def following(
        self, store: str, items: Iterable[tuple[Entry, Any]], *, is_visited: bool, pops: bool
    ) -> Iterator[Any]:
        """Yield the items that a store returns, and note each entry when it is reached.

        While the task handles an item, `_near` takes only this item's entry of the store, not the entries before it.
        """
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
        """Return the entries that were read with a key and position, and whether certainly no other entries matter.

        Without such entries, return the entries with the key. Without entries of the key, return all entries that were read. If
        key and position were looked up without a result, return no entries, because the row was made from the record alone. This
        last rule does not apply if there is no position and another store had the key.
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
        """Return a function that calls a schedule, and notes the schedule's node and when it fired."""

        def calling(schedule: Schedule, now_ms: int) -> None:
            self._node = schedule.node
            self.fired_before = self._fired.get(schedule.registration)
            if self.event is not None:
                self._fired[schedule.registration] = Origin(self._at(self.event), (), [], source=self.source)
            call(schedule, now_ms)

        return calling
