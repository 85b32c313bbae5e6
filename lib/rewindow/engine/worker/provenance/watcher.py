"""Watch the stores of a task: which entries are read and written while it handles a record or a punctuation.

A watcher replaces the methods of a task's stores, as `streams.state.savepoint` does, and changes no result. An entry is
identified by its key, and by its place: the window's start, the session, or the record's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from rewindow.engine.worker.provenance.origins import Moment, Origin
from rewindow.streams.record import UNKNOWN, Record, Windowed
from rewindow.streams.state.stores import BUFFER, JOIN, KEY_VALUE, PREFIX, RECORDS, SESSION, VERSIONED, WINDOW, Store
from rewindow.streams.task import Task

Entry = tuple[str, Any, Any]
"""Store, key and place."""


class Taken(NamedTuple):
    """A record that the task takes, with its order key."""

    topic: str
    offset: int
    timestamp: int
    order_ms: int
    rank: int


_NO_RECORD = (None, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def entry_of(key: Any) -> tuple[Any, Any]:
    """Return a key and its place: the key within a windowed key, and its window."""
    if key.__class__ is not Windowed:
        return key, None
    own, (start_ms, end_ms, is_session) = key
    return own, (start_ms, end_ms) if is_session else start_ms


class Watcher:
    """Notes the origins of a task's entries. The replay sets ``epoch``, ``event`` and ``source`` as it goes."""

    def __init__(self, sub_topology: int, partition: int, on_write: Callable[[Moment], None] | None = None) -> None:
        """``on_write`` gets the moment of each write."""
        self.epoch = 0
        self.event: Taken | None = None
        """The record that is taken; None at the end of an epoch."""
        self.source: Origin | None = None
        """The origin of that record, if another sub-topology sent it."""
        self.first: Origin | None = None
        """The first record that the task took, which starts its schedules."""
        self._where = sub_topology, partition
        self._on_write = on_write
        self._entries: dict[Entry, Origin] = {}
        self._moment: Moment | None = None
        self._read: list[Origin] = []
        self._by_key: dict[Any, dict[Entry, Origin]] = {}
        self._swept: set[Entry] = set()
        self._focus: dict[str, Entry] = {}
        self._is_muted = False

    def watch(self, task: Task) -> None:
        """Begin to watch a new task."""
        self._context = task.task_context.record_context
        self._nodes = {f"schedule-{one.registration}": one.node for one in task.task_context.schedules}
        self._schedules = task.task_context.schedules
        for store in task.stores.values():
            for name, wrap in _METHODS[store.builder.kind].items():
                if hasattr(store, name):
                    setattr(store, name, wrap(self, store, getattr(store, name)))

    def take(self, taken: Taken, source: Origin | None) -> None:
        """Begin with a record; ``source`` is its origin if another sub-topology sent it."""
        self.event, self.source = taken, source
        if self.first is None:
            self.first = Origin(Moment(*self._where, self.epoch, *taken), (), [], source=source)

    def moment(self) -> Moment:
        """Return what the task is handling; forget what was read before it."""
        node, due_ms = None, UNKNOWN
        if self._context.firing is not None and self._context.scheduled_ms != UNKNOWN:
            node, due_ms = self._node_of(self._context.firing[0]), self._context.scheduled_ms
        moment = Moment(*self._where, self.epoch, *(self.event or _NO_RECORD), node, due_ms)
        if moment != self._moment:
            self._moment = moment
            self._read, self._by_key, self._swept, self._focus = [], {}, set(), {}
        return moment

    def sent(self, record: Record) -> tuple[Origin, bool]:
        """Return the origin of a record that reaches a sink, and whether it was released: not made by this record, but due."""
        moment = self.moment()
        near, is_sure = self._near(*entry_of(record.key))
        is_released = bool(near) and self._swept.issuperset(near)
        return Origin(moment, tuple(near.values()), self._read, is_sure=is_sure, source=self.source), is_released

    def read(self, entry: Entry, *, is_swept: bool = False) -> None:
        """Note that an entry was read; ``is_swept``: while visiting several keys."""
        if self._is_muted:
            return
        self.moment()
        origin = self._entries.get(entry)
        if origin is not None:
            known = self._by_key.setdefault(entry[1], {})
            if known.get(entry) is not origin:
                known[entry] = origin
                self._read.append(origin)
            if is_swept:
                self._swept.add(entry)

    def wrote(self, entry: Entry, *, from_reads: bool = True, adds: bool = False) -> None:
        """Note that an entry was written, from what was read of its key, or added to what it had."""
        if self._is_muted:
            return
        moment = self.moment()
        near, is_sure = self._near(entry[1], entry[2]) if from_reads else ({}, True)
        if self._on_write is not None:
            self._on_write(moment)
        before = self._entries.get(entry)
        parents = (*near.values(), *((before,) if adds and before is not None else ()))
        read = self._read if from_reads else list(parents)
        made = Origin(moment, parents, read, is_sure=is_sure, source=self.source)
        self._entries[entry] = made
        self._by_key.setdefault(entry[1], {})[entry] = made
        self._read.append(made)
        self._swept.discard(entry)

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

    def following(self, store: str, items: Iterable[tuple[Entry, Any]], *, is_swept: bool, pops: bool) -> Iterator[Any]:
        """Yield what a store returns, noting each entry as it is reached: until the next one, it alone was read of the store."""
        found = iter(items)
        while (reached := self.quietly(next, found, None)) is not None:
            entry, item = reached
            self.read(entry, is_swept=is_swept)
            if pops:
                self.gone(entry)
            self._focus[store] = entry
            yield item
        self._focus.pop(store, None)

    def _near(self, key: Any, place: Any) -> tuple[dict[Entry, Origin], bool]:
        """Return the entries read of a key and window, else of the key, else all; and whether no other can matter."""
        own = self._by_key.get(key)
        if not own:
            everything = {entry: one for known in self._by_key.values() for entry, one in known.items()}
            return everything, len(everything) < 2 or len(self._by_key) == 1  # noqa: PLR2004 - one entry leaves no choice
        exact = {entry: one for entry, one in own.items() if place is not None and entry[2] == place}
        if exact:
            return exact, True
        return {entry: one for entry, one in own.items() if self._focus.get(entry[0], entry) == entry}, True

    def _node_of(self, schedule: str) -> str:
        if schedule not in self._nodes:
            self._nodes = {f"schedule-{one.registration}": one.node for one in self._schedules}
        return self._nodes.get(schedule, schedule)


class _FollowedList(list[Any]):
    """A list whose entries are noted when they are visited."""

    def __init__(self, items: Iterable[Any], follow: Callable[[], Iterator[Any]]) -> None:
        super().__init__(items)
        self._follow = follow

    def __iter__(self) -> Iterator[Any]:
        return self._follow()


Method = Callable[..., Any]
Wrap = Callable[[Watcher, Store, Method], Method]


def _reads(entry: Callable[..., tuple[Any, Any]]) -> Wrap:
    """Watch a method that returns the value of one entry, given that entry's key and place from its arguments."""

    def wrap(watcher: Watcher, store: Store, method: Method) -> Method:
        def reading(*args: Any, **kwargs: Any) -> Any:
            watcher.read((store.name, *entry(*args, **kwargs)))
            return watcher.quietly(method, *args, **kwargs)

        return reading

    return wrap


def _writes(
    entry: Callable[..., tuple[Any, Any]], value: int = 1, *, from_reads: bool = True, adds: bool = False
) -> Wrap:
    """Watch a method that sets an entry. The argument at position ``value`` is None if the call removes it."""

    def wrap(watcher: Watcher, store: Store, method: Method) -> Method:
        def writing(*args: Any, **kwargs: Any) -> Any:
            written = (store.name, *entry(*args, **kwargs))
            given = args[value] if len(args) > value else kwargs.get("value", True)
            if given is None:
                watcher.gone(written)
            else:
                watcher.wrote(written, from_reads=from_reads, adds=adds)
            return watcher.quietly(method, *args, **kwargs)

        return writing

    return wrap


def _removes(entry: Callable[..., tuple[Any, Any]], *, is_read: bool = False) -> Wrap:
    """Watch a method that removes an entry; ``is_read``: and returns its value."""

    def wrap(watcher: Watcher, store: Store, method: Method) -> Method:
        def removing(*args: Any, **kwargs: Any) -> Any:
            removed = (store.name, *entry(*args, **kwargs))
            if is_read:
                watcher.read(removed)
            watcher.gone(removed)
            return watcher.quietly(method, *args, **kwargs)

        return removing

    return wrap


def _visits(entry: Callable[..., tuple[Any, Any]], *, is_swept: bool = False, pops: bool = False) -> Wrap:
    """Watch a method that returns several entries; ``entry`` gets an item, then the arguments."""

    def wrap(watcher: Watcher, store: Store, method: Method) -> Method:
        def visiting(*args: Any, **kwargs: Any) -> Any:
            found = watcher.quietly(method, *args, **kwargs)

            def follow(items: Iterable[Any]) -> Iterator[Any]:
                named = (((store.name, *entry(item, *args, **kwargs)), item) for item in items)
                return watcher.following(store.name, named, is_swept=is_swept, pops=pops)

            if isinstance(found, list | tuple):
                return _FollowedList(found, lambda: follow(found))
            return follow(found)

        return visiting

    return wrap


def _pops_one(watcher: Watcher, store: Store, method: Method) -> Method:
    """Watch a method that removes one entry and returns its key and value."""

    def popping() -> Any:
        key, value = watcher.quietly(method)
        entry = (store.name, *entry_of(key))
        watcher.read(entry, is_swept=True)
        watcher.gone(entry)
        return key, value

    return popping


_KEY_VALUE: dict[str, Wrap] = {
    "get": _reads(entry_of),
    "find": _reads(entry_of),
    "put": _writes(lambda key, value: entry_of(key)),  # noqa: ARG005
    "delete": _removes(entry_of, is_read=True),
    "all": _visits(lambda item: entry_of(item[0]), is_swept=True),
    "range": _visits(lambda item, *_: entry_of(item[0]), is_swept=True),
    "beginning_with": _visits(lambda item, _: entry_of(item[0]), is_swept=True),
}
_RECORDS: dict[str, Wrap] = {
    "put": _writes(lambda key, value, timestamp: (key, timestamp), from_reads=False, adds=True),  # noqa: ARG005
    "fetch": _visits(lambda item, key, *_: (key, item[0])),
    "remove": _removes(lambda key, timestamp: (key, timestamp)),
    "pop_before": _visits(lambda item, _: (item.key, item.timestamp), is_swept=True, pops=True),
}
_METHODS: dict[str, dict[str, Wrap]] = {
    KEY_VALUE: _KEY_VALUE,
    PREFIX: _KEY_VALUE,
    WINDOW: {
        "put": _writes(lambda key, value, start_ms: (key, start_ms)),  # noqa: ARG005
        "fetch": _reads(lambda key, start_ms: (key, start_ms)),
        "find": _reads(entry_of),
        "fetch_range": _visits(lambda item, key, *_: (key, item[0])),
        "fetch_all": _visits(lambda item, *_: entry_of(item[0]), is_swept=True),
    },
    SESSION: {
        "put": _writes(lambda session, value: entry_of(session)),  # noqa: ARG005
        "remove": _removes(entry_of),
        "fetch_session": _reads(lambda key, start_ms, end_ms: (key, (start_ms, end_ms))),
        "find": _reads(entry_of),
        "fetch": _visits(lambda item, _: entry_of(item[0])),
        "find_sessions": _visits(lambda item, *_: entry_of(item[0])),
        "fetch_all": _visits(lambda item, *_: entry_of(item[0]), is_swept=True),
    },
    VERSIONED: {
        "put": _writes(lambda key, value, timestamp: entry_of(key), 2, adds=True),  # noqa: ARG005
        "get": _reads(entry_of),
        "get_as_of": _reads(lambda key, _: entry_of(key)),
    },
    BUFFER: {
        "put": _writes(lambda key, *_, **__: entry_of(key)),
        "find": _reads(entry_of),
        "pop_until": _visits(lambda item, _: entry_of(item[0]), is_swept=True, pops=True),
        "pop_oldest": _pops_one,
    },
    RECORDS: _RECORDS,
    JOIN: _RECORDS,
}
