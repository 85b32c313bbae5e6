"""Stores of every kind are equal whether they spill or not, and after an attempt that was rolled back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Window, Windowed, join_store, key_value_store, session_store, versioned_store, window_store
from rewindow.engine.worker.sqlite_spill import SqliteSpill
from rewindow.errors import DataError
from rewindow.streams.checkpoint import new_store
from rewindow.streams.error_policy import UNDOABLE, Undo
from rewindow.streams.metrics import Measure
from rewindow.streams.nodes import ProcessorNode, SourceNode
from rewindow.streams.serde.types_to_columns import bound
from rewindow.streams.state.spill import Disk, OpenSpill
from rewindow.streams.state.stores import BUFFER, PREFIX, RECORDS, Store, StoreBuilder
from rewindow.streams.state.suppress_buffer import Update
from rewindow.streams.topology import SubTopology
from rewindow.testing.local_task import MemorySpill
from tests.properties.effort import examples

TYPES: dict[str, tuple[Any, Any, st.SearchStrategy[Any]]] = {
    "text": (str, int, st.sampled_from(["", "a", "b", "aa", "a\0", "a\0\1", "é"])),
    "long": (int, str, st.integers(-2, 3)),
    "pairs": (None, None, st.tuples(st.sampled_from(["a", None, "a\0"]), st.integers(0, 2))),
    "json": (None, None, st.integers(-2, 3)),
}
TIMES = st.integers(0, 12)
LENGTHS = st.sampled_from([1, 25])
"""The least length of a story: lists of any length are short on average, so few of them would outgrow memory."""
Step = tuple[str, tuple[Any, ...]]


def values(kind: str) -> st.SearchStrategy[Any]:
    numbers = st.integers(0, 9)
    return {"text": numbers, "long": numbers.map(str), "pairs": numbers, "json": st.lists(numbers, max_size=2)}[kind]


def sessions(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Windowed]:
    bounds = st.tuples(TIMES, TIMES).map(sorted)
    return st.builds(lambda key, both: Windowed(key, Window(both[0], both[1], is_session=True)), keys, bounds)


def steps_of(store: str, keys: st.SearchStrategy[Any], value: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Return the methods of a kind of store, with strategies for their arguments."""
    maybe, pair = st.one_of(st.none(), value), st.tuples(TIMES, TIMES)
    both = st.tuples(keys, keys)
    return {
        "key-value": {
            "put": (keys, value),
            "put_if_absent": (keys, value),
            "get": (keys,),
            "delete": (keys,),
            "all": (),
        },
        "window": {"put": (keys, maybe, TIMES), "fetch": (keys, TIMES), "fetch_range": (keys, TIMES, TIMES)},
        "session": {
            "put": (sessions(keys), value),
            "remove": (sessions(keys),),
            "find": (sessions(keys),),
            "fetch": (keys,),
            "find_sessions": (keys, TIMES, TIMES),
            "fetch_all": (TIMES, TIMES),
        },
        "join": {"put": (keys, value, TIMES), "fetch": (keys, TIMES, TIMES), "remove": (keys, TIMES)},
        "records": {
            "put": (keys, value, TIMES),
            "fetch": (keys, TIMES, TIMES),
            "remove": (keys, TIMES),
            "pop_before": (TIMES,),
        },
        "versioned": {"put": (keys, maybe, TIMES), "get": (keys,), "get_as_of": (keys, TIMES)},
        "buffer": {
            "put": (keys, st.builds(Update, maybe, maybe, TIMES, TIMES), TIMES),
            "find": (keys,),
            "pop_until": (TIMES,),
            "pop_oldest": (),
        },
        "prefix": {"put": (both, value), "get": (both,), "delete": (both,), "beginning_with": (keys,)},
        "pair": pair,
    }[store]


def builder_of(store: str, key: Any, value: Any) -> StoreBuilder:
    declared = {"key": key, "value": value}
    return {
        "key-value": lambda: key_value_store("s", **declared),
        "window": lambda: window_store("s", size="2ms", retention="6ms", **declared),
        "session": lambda: session_store("s", retention="6ms", **declared),
        "join": lambda: join_store("s", retention="6ms", **declared),
        "records": lambda: StoreBuilder("s", RECORDS, **declared),
        "versioned": lambda: versioned_store("s", history="5ms", **declared),
        "buffer": lambda: StoreBuilder("s", BUFFER, sends_tombstones=False, **declared),
        "prefix": lambda: StoreBuilder("s", PREFIX, None, value),
    }[store]()


KINDS = ["key-value", "window", "session", "join", "records", "versioned", "buffer", "prefix"]


@st.composite
def stories(draw: st.DrawFn, kinds: list[str]) -> tuple[StoreBuilder, list[Step]]:
    """Draw a store and calls of its methods. The calls in an ``attempt`` are rolled back."""
    store, types = draw(st.sampled_from(kinds)), draw(st.sampled_from(list(TYPES)))
    key, value, keys = TYPES[types]
    methods = steps_of(store, keys, values(types))
    some = [st.tuples(st.just(name), st.tuples(*arguments)) for name, arguments in methods.items()]
    one = st.one_of(*some, some[0], some[0])
    of_all = [st.tuples(st.sampled_from(["len", "checkpoint", "restore"]), st.just(()))]
    if builder_of(store, key, value).kind in UNDOABLE:
        of_all.append(st.tuples(st.sampled_from(["attempt", "done"]), st.lists(one, max_size=5).map(tuple)))
    return builder_of(store, key, value), draw(
        st.lists(st.one_of(one, one, *of_all), min_size=draw(LENGTHS), max_size=40)
    )


def empty_store(builder: StoreBuilder, disk: Disk | None) -> Store:
    part = SubTopology(0, (SourceNode("in"), ProcessorNode("p", ("in",), stores=("s",))), (builder,))
    return new_store(bound(part, {}).stores[0], disk)


def called(store: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    if name == "pop_oldest" and not len(store):
        return None
    try:
        found = getattr(store, name)(*arguments)
    except DataError as error:
        return str(error)
    return list(found) if name == "pop_until" or isinstance(found, Iterator | list) else found


def observed(make: Callable[[], Store], steps: list[Step], *, attempts: bool) -> Iterator[Any]:
    """Perform the steps. Yield everything observable, except in attempts that are rolled back."""
    store = make()
    undo = Undo(store)
    rows: dict[Any, Any] = {}
    for name, arguments in steps:
        if name == "len":
            yield (
                len(store),
                store.clock_ms,
                store.expired.total,
                getattr(store, "size", None),
                getattr(store, "results", None),
            )
        elif name in ("attempt", "done"):
            if name == "attempt" and not attempts:
                continue
            counted = store.expired
            if name == "attempt":
                store.expired = Measure()  # the error policy restores metrics
            undo.begin()
            seen = [called(store, *one) for one in arguments]
            if name == "done":
                undo.end()
                yield seen
            else:
                undo.roll_back()
                store.expired = counted
        elif name in ("checkpoint", "restore"):
            changes = list(store.take_changes())
            yield changes
            rows.update(changes)
            if name == "restore":
                clock_ms, store = store.clock_ms, make()
                undo = Undo(store)
                store.restore(sorted(rows.items(), key=repr), clock_ms)
                yield getattr(store, "size", None), getattr(store, "results", None)
        else:
            yield called(store, name, arguments)
    yield len(store), store.clock_ms, store.expired.total, list(store.rows()), list(store.take_changes())
    yield len(store), list(store.rows()), list(store.take_changes())


@pytest.mark.parametrize("spill", [MemorySpill, SqliteSpill])
@given(stories(KINDS[2:]), st.sampled_from([1, 2000, 6000]))
@examples(300)
def test_a_spilling_store_equals_one_in_memory(
    spill: OpenSpill, story: tuple[StoreBuilder, list[Step]], memory: int
) -> None:
    builder, steps = story
    in_memory = list(observed(lambda: empty_store(builder, None), steps, attempts=True))
    assert list(observed(lambda: empty_store(builder, Disk(spill, memory)), steps, attempts=True)) == in_memory


@given(stories([kind for kind in KINDS if kind not in ("buffer", "prefix")]), st.sampled_from([None, 1, 4000]))
@examples(300)
def test_an_attempt_that_is_rolled_back_leaves_no_trace(
    story: tuple[StoreBuilder, list[Step]], memory: int | None
) -> None:
    builder, steps = story
    disk = None if memory is None else Disk(MemorySpill, memory)
    never = list(observed(lambda: empty_store(builder, disk), steps, attempts=False))
    assert list(observed(lambda: empty_store(builder, disk), steps, attempts=True)) == never


PUTS: dict[str, Callable[[Any, str], None]] = {
    "key-value": lambda store, key: store.put(key, 1),
    "window": lambda store, key: store.put(key, 1, 0),
    "session": lambda store, key: store.put(Windowed(key, Window(0, 1, is_session=True)), 1),
    "join": lambda store, key: store.put(key, 1, 1),
    "records": lambda store, key: store.put(key, 1, 1),
    "versioned": lambda store, key: store.put(key, 1, 1),
    "buffer": lambda store, key: store.put(key, Update(1, None, 1), 1),
    "prefix": lambda store, key: store.put((key, key), 1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_policy", [False, True])
def test_a_spill_is_used_when_memory_is_full_and_not_before(kind: str, *, has_policy: bool) -> None:
    for memory, is_full in ((1_000_000, False), (20_000, True)):
        store = empty_store(builder_of(kind, str, int), Disk(MemorySpill, memory))
        undo, before = Undo(store), MemorySpill.writes
        for number in range(200):
            if has_policy:
                undo.begin()
            PUTS[kind](store, str(number))
            if has_policy:
                undo.end()
        assert (MemorySpill.writes > before) is is_full
        assert len(store) == 200


def test_a_session_comes_back_that_a_rolled_back_attempt_loads_and_forgets() -> None:
    builder = builder_of("session", str, int)
    old, other, new = (
        Windowed(key, Window(0, end_ms, is_session=True)) for key, end_ms in (("a", 0), ("", 0), ("a", 6))
    )
    steps: list[Step] = [("put", (old, 1)), ("put", (other, 2)), ("attempt", (("put", (new, 3)),))]
    for disk in (None, Disk(SqliteSpill, 1)):
        left = list(observed(partial(empty_store, builder, disk), steps, attempts=True))
        assert left[-1][:2] == (2, [(other, 2), (old, 1)])
