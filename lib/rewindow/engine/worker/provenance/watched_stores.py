"""Let a watcher note which entries of a task's stores are read and written, whatever their kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from rewindow.engine.worker.provenance.watcher import Watcher, entry_of
from rewindow.streams.state.stores import BUFFER, JOIN, KEY_VALUE, PREFIX, RECORDS, SESSION, VERSIONED, WINDOW, Store
from rewindow.streams.task import Task


def watch(watcher: Watcher, task: Task, tables: Collection[str] = ()) -> None:
    """Let a watcher note how a new task uses its stores. ``tables``: the stores of tables that have a topic's rows unchanged."""
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
    """Watch a method that computes a window's value from the value of another window."""

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

    ``value`` is the index of the argument with the value, which is None if the call removes the entry. The other parameters are
    passed to `Watcher.wrote`.
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

    ``entry`` gets an item and the method's arguments, and returns (key, position). ``is_visited``: the items may have several
    keys. ``pops``: the method removes the entries.
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
    """Replace a method that takes keys, or a dict of rows by key, by calls of the watched method ``name`` for each of them."""

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
