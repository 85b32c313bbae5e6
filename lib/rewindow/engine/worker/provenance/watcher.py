"""Watch the stores of a task: note which entries are read and written while the task handles a record or a punctuation.

A watcher replaces the methods of a task's stores, as `streams.error_policy` does, without changing results. An entry is
identified by its key and its position. The position is the window's start, the session's start and end, or the record's time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rewindow.engine.worker.provenance.origins import Cause, Origin
from rewindow.streams.punctuation import Schedule
from rewindow.streams.record import UNKNOWN, Record, Windowed
from rewindow.streams.state.stores import BUFFER, JOIN, KEY_VALUE, PREFIX, RECORDS, SESSION, VERSIONED, WINDOW, Store
from rewindow.streams.task import Task
from rewindow.streams.task_context import TaskContext

Entry = tuple[str, Any, Any]
"""An entry of a store: the store's name, key and position."""

OnWrite = Callable[[Cause, Entry], None]
"""A function that is called with the cause of a write to a store, and with the entry that is written."""


class Taken(NamedTuple):
    """A record that the task processes: its topic, offset, timestamp and order key, and the number of its topic in the task."""

    topic: str
    offset: int
    timestamp: int
    order_ms: int
    rank: int


_NO_RECORD = (None, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def entry_of(key: Any) -> tuple[Any, Any]:
    """Return (key, position) of a store's key. For a windowed key, these are the key inside it and the window."""
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
        """The origin of the record at which the current schedule last fired. That time decides when the schedule is due
        again."""
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

        A released record had been waiting in a store until it was due, so it was not made from the record that the task is
        handling.
        """
        cause = self.cause()
        near, is_sure = self._near(*entry_of(record.key))
        is_released = bool(near) and self._visited.issuperset(near)
        return Origin(cause, tuple(near.values()), self._read, is_sure=is_sure, source=self.source), is_released

    def read(self, entry: Entry, *, is_visited: bool = False) -> None:
        """Note that an entry was read. ``is_visited``: whether the method that read it goes over several keys."""
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

    def wrote(
        self,
        entry: Entry,
        *,
        from_reads: bool = True,
        adds: bool = False,
        replaces: bool = False,
        base: Entry | None = None,
    ) -> None:
        """Note that an entry was written. ``base``: the entry from which it was made, if the store's caller names it.

        ``from_reads``: whether the entry was made from the entries of its key that were read. ``adds``: whether the entry
        keeps its previous content. ``replaces``: whether the entry was made from the record alone, and takes the place of the
        entries of its key that were read.
        """
        if self._is_muted:
            return
        cause = self.cause()
        read_nearby, is_sure = self._near(entry[1], entry[2]) if from_reads else ({}, True)
        if base is not None:
            read_nearby, is_sure = {base: self._entries[base]}, True
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
        """Call a method of a store. If it calls other methods, these calls are not noted."""
        before, self._is_muted = self._is_muted, True
        try:
            return method(*args, **kwargs)
        finally:
            self._is_muted = before

    def following(
        self, store: str, items: Iterable[tuple[Entry, Any]], *, is_visited: bool, pops: bool
    ) -> Iterator[Any]:
        """Yield the items that a store returns. Note each item's entry when the item is yielded.

        While the task handles an item, `_near` returns only this item's entry of the store, not the entries before it.
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
        """Return the near entries for a key and position, and whether it is certain that no other entries matter.

        The result is the first of these that exists: the entries that were read with this key and position; the entries that
        were read with this key; all entries that were read. There is one exception. If key and position were looked up
        without a result, the row was made from the record alone, so no entries are returned. The exception does not apply if
        there is no position and another store had the key.
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


def watch(watcher: Watcher, task: Task, tables: Collection[str] = ()) -> None:
    """Let a watcher note how a new task uses its stores. ``tables``: the stores of tables that keep a topic's rows."""
    watcher.begin(task.task_context)
    for store in task.stores.values():
        kind = _METHODS[store.builder.kind]
        for name, wrap in (kind | _TABLE if store.name in tables else kind).items():
            if hasattr(store, name):
                setattr(store, name, wrap(watcher, store, getattr(store, name)))


class _FollowedList(list[Any]):
    """A list that calls ``follow`` when it is iterated, so that the watcher notes each entry."""

    def __init__(self, items: Iterable[Any], follow: Callable[[], Iterator[Any]]) -> None:
        super().__init__(items)
        self._follow = follow

    def __iter__(self) -> Iterator[Any]:
        return self._follow()


_Method = Callable[..., Any]
_Wrap = Callable[[Watcher, Store, _Method], _Method]


def _derives(watcher: Watcher, store: Store, method: _Method) -> _Method:
    """Watch a method that computes the value of one window from the value of another."""

    def deriving(key: Any, value: Any, start_ms: int, base_ms: int) -> None:
        watcher.wrote((store.name, key, start_ms), base=(store.name, key, base_ms))
        watcher.quietly(method, key, value, start_ms, base_ms)

    return deriving


def _reads(entry: Callable[..., tuple[Any, Any]]) -> _Wrap:
    """Watch a method that returns the value of one entry. ``entry`` gets its arguments and returns (key, position)."""

    def wrap(watcher: Watcher, store: Store, method: _Method) -> _Method:
        def reading(*args: Any, **kwargs: Any) -> Any:
            watcher.read((store.name, *entry(*args, **kwargs)))
            return watcher.quietly(method, *args, **kwargs)

        return reading

    return wrap


def _writes(
    entry: Callable[..., tuple[Any, Any]],
    value: int = 1,
    *,
    from_reads: bool = True,
    adds: bool = False,
    replaces: bool = False,
) -> _Wrap:
    """Watch a method that sets an entry. ``entry`` gets its arguments and returns (key, position).

    ``value`` is the index of the argument with the value. This argument is None if the call removes the entry. The other
    parameters are passed to `Watcher.wrote`.
    """

    def wrap(watcher: Watcher, store: Store, method: _Method) -> _Method:
        def writing(*args: Any, **kwargs: Any) -> Any:
            written = (store.name, *entry(*args, **kwargs))
            given = args[value] if len(args) > value else kwargs.get("value", True)
            if given is None:
                watcher.gone(written)
            else:
                watcher.wrote(written, from_reads=from_reads, adds=adds, replaces=replaces)
            return watcher.quietly(method, *args, **kwargs)

        return writing

    return wrap


def _removes(entry: Callable[..., tuple[Any, Any]], *, is_read: bool = False) -> _Wrap:
    """Watch a method that removes an entry. ``is_read``: whether the method also returns the entry's value."""

    def wrap(watcher: Watcher, store: Store, method: _Method) -> _Method:
        def removing(*args: Any, **kwargs: Any) -> Any:
            removed = (store.name, *entry(*args, **kwargs))
            if is_read:
                watcher.read(removed)
            watcher.gone(removed)
            return watcher.quietly(method, *args, **kwargs)

        return removing

    return wrap


def _visits(entry: Callable[..., tuple[Any, Any]], *, is_visited: bool = False, pops: bool = False) -> _Wrap:
    """Watch a method that returns several items, one for each entry.

    ``entry`` gets an item and the method's arguments, and returns (key, position). ``is_visited``: whether the items may have
    several keys. ``pops``: whether the method removes the entries.
    """

    def wrap(watcher: Watcher, store: Store, method: _Method) -> _Method:
        def visiting(*args: Any, **kwargs: Any) -> Any:
            result = watcher.quietly(method, *args, **kwargs)

            def follow(items: Iterable[Any]) -> Iterator[Any]:
                named = (((store.name, *entry(item, *args, **kwargs)), item) for item in items)
                return watcher.following(store.name, named, is_visited=is_visited, pops=pops)

            if isinstance(result, list | tuple):
                return _FollowedList(result, lambda: follow(result))
            return follow(result)

        return visiting

    return wrap


def _pops_one(watcher: Watcher, store: Store, method: _Method) -> _Method:
    """Watch a method that removes one entry and returns its key and value."""

    def popping() -> Any:
        key, value = watcher.quietly(method)
        entry = (store.name, *entry_of(key))
        watcher.read(entry, is_visited=True)
        watcher.gone(entry)
        return key, value

    return popping


def _each(name: str) -> _Wrap:
    """Replace a method that takes several keys, or a dict of rows by key.

    Call the watched method ``name`` for each of them instead.
    """

    def wrap(watcher: Watcher, store: Store, method: _Method) -> _Method:
        del watcher, method

        def calling(many: Any) -> list[Any]:
            method_of_one = getattr(store, name)
            return [
                method_of_one(*entry)
                for entry in (many.items() if isinstance(many, Mapping) else zip(many, strict=True))
            ]

        return calling

    return wrap


_KEY_VALUE: dict[str, _Wrap] = {
    "get": _reads(entry_of),
    "find": _reads(entry_of),
    "put": _writes(lambda key, value: entry_of(key)),  # noqa: ARG005
    "delete": _removes(entry_of, is_read=True),
    "get_many": _each("get"),
    "put_many": _each("put"),
    "delete_many": _each("delete"),
    "all": _visits(lambda item: entry_of(item[0]), is_visited=True),
    "range": _visits(lambda item, *_: entry_of(item[0]), is_visited=True),
    "beginning_with": _visits(lambda item, _: entry_of(item[0]), is_visited=True),
}


_TABLE: dict[str, _Wrap] = {"put": _writes(lambda key, value: entry_of(key), replaces=True)}  # noqa: ARG005


_RECORDS: dict[str, _Wrap] = {
    "put": _writes(lambda key, value, timestamp: (key, timestamp), from_reads=False, adds=True),  # noqa: ARG005
    "fetch": _visits(lambda item, key, *_: (key, item[0])),
    "remove": _removes(lambda key, timestamp: (key, timestamp)),
    "pop_before": _visits(lambda item, _: (item.key, item.timestamp), is_visited=True, pops=True),
}


_METHODS: dict[str, dict[str, _Wrap]] = {
    KEY_VALUE: _KEY_VALUE,
    PREFIX: _KEY_VALUE,
    WINDOW: {
        "put": _writes(lambda key, value, start_ms: (key, start_ms)),  # noqa: ARG005
        "derive": _derives,
        "fetch": _reads(lambda key, start_ms: (key, start_ms)),
        "find": _reads(entry_of),
        "fetch_range": _visits(lambda item, key, *_: (key, item[0])),
        "fetch_all": _visits(lambda item, *_: entry_of(item[0]), is_visited=True),
    },
    SESSION: {
        "put": _writes(lambda session, value: entry_of(session)),  # noqa: ARG005
        "remove": _removes(entry_of),
        "fetch_session": _reads(lambda key, start_ms, end_ms: (key, (start_ms, end_ms))),
        "find": _reads(entry_of),
        "fetch": _visits(lambda item, _: entry_of(item[0])),
        "find_sessions": _visits(lambda item, *_: entry_of(item[0])),
        "fetch_all": _visits(lambda item, *_: entry_of(item[0]), is_visited=True),
    },
    VERSIONED: {
        "put": _writes(lambda key, value, timestamp: entry_of(key), 2, adds=True),  # noqa: ARG005
        "get": _reads(entry_of),
        "get_as_of": _reads(lambda key, _: entry_of(key)),
    },
    BUFFER: {
        "put": _writes(lambda key, *_, **__: entry_of(key)),
        "find": _reads(entry_of),
        "pop_until": _visits(lambda item, _: entry_of(item[0]), is_visited=True, pops=True),
        "pop_oldest": _pops_one,
    },
    RECORDS: _RECORDS,
    JOIN: _RECORDS,
}
