"""A spilling store equals one in memory: the same reads, changes and replays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import (
    SessionWindows,
    StreamsBuilder,
    Topology,
    WindowStore,
    key_value_store,
    until_time_limit,
    window_store,
)
from rewindow.engine.worker.sqlite_spill import SqliteSpill
from rewindow.streams.error_policy import Undo
from rewindow.streams.nodes import ProcessorNode, SourceNode
from rewindow.streams.serde.types_to_columns import bind_store, bound
from rewindow.streams.settings import Limits, Settings
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.spill import Disk, OpenSpill
from rewindow.streams.topology import SubTopology
from rewindow.testing import LocalReplay
from rewindow.testing.local_task import LocalTask, MemorySpill
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples
from tests.properties.topologies import STREAMS, TOPICS, build, plans

SPILLS = [MemorySpill, SqliteSpill]
TYPES: dict[str, tuple[Any, Any, Any]] = {
    "text": (str, int, st.sampled_from([*"abcdefgh", "", "é"])),
    "long": (int, str, st.integers(-4, 4)),
    "pairs": (None, None, st.tuples(st.sampled_from("ab"), st.integers(0, 3))),
    "json": (None, list, st.integers(-4, 4)),
}
LENGTHS = st.sampled_from([1, 25])
"""The least length of a story: lists of any length are short on average, so few of them would outgrow memory."""
STEPS = ("put", "put", "put", "get", "delete", "absent", "all", "walk", "checkpoint", "restore", "undo", "range", "len")


def store_of(kind: str, spill: OpenSpill | None, memory: int) -> KeyValueStore:
    key, value, _ = TYPES[kind]
    builder = key_value_store("s", key=key, value=None if value is list else value)
    part = SubTopology(0, (SourceNode("in"), ProcessorNode("p", ("in",), stores=("s",))), (builder,))
    (ready,) = bound(part, {}).stores
    return KeyValueStore(ready, None if spill is None else Disk(spill, memory))


def windows_of(kind: str, spill: OpenSpill | None, memory: int) -> WindowStore:
    key, value, _ = TYPES[kind]
    builder = window_store("s", size="2ms", retention="6ms", key=key, value=None if value is list else value)
    part = SubTopology(0, (SourceNode("in"), ProcessorNode("p", ("in",), stores=("s",))), (builder,))
    (ready,) = bound(part, {}).stores
    return WindowStore(ready, None if spill is None else Disk(spill, memory))


def value_of(kind: str, number: int) -> Any:
    return {"text": number, "long": str(number), "pairs": number, "json": [number]}[kind]


def played(kind: str, store: KeyValueStore, steps: list[tuple[str, Any]], again: Any) -> list[Any]:
    """Perform the steps; return everything observable."""
    seen: list[Any] = []
    rows: dict[Any, Any] = {}
    walks: list[Any] = []
    undo = Undo(store)
    for number, (step, key) in enumerate(steps):
        value = value_of(kind, number)
        if step == "put":
            store.put(key, value)
        elif step == "get":
            seen.append(store.get(key))
        elif step == "delete":
            seen.append(store.delete(key))
        elif step == "absent":
            seen.append(store.put_if_absent(key, value))
        elif step == "all":
            seen += store.all()
        elif step == "walk":  # continues during later writes
            walks.append(store.all())
            seen.append(next(walks[-1], None))
        elif step == "range":
            seen += store.range(key, key)
        elif step == "len":
            seen += [len(store), sorted(map(repr, store))]
        elif step == "undo":
            undo.begin()
            store.put(key, value)
            store.delete(steps[0][1])
            seen += store.all()
            undo.roll_back()
        else:
            changes = list(store.take_changes())
            seen.append(changes)
            rows.update(changes)
            if step == "restore":
                for walk in walks:
                    seen += walk
                walks, store = [], again()
                undo = Undo(store)
                store.restore([*rows.items(), *((k, v) for k, v in rows.items() if k == key)])
    for walk in walks:
        seen += walk
    return [*seen, *store.rows(), len(store), list(store.take_changes())]


def played_windows(kind: str, store: WindowStore, steps: list[tuple[str, Any, int]], again: Any) -> list[Any]:
    """Perform the steps on windows; return everything observable."""
    seen: list[Any] = []
    rows: dict[Any, Any] = {}
    walks: list[Any] = []
    undo = Undo(store)
    for number, (step, key, start) in enumerate(steps):
        value = value_of(kind, number)
        if step == "put":
            store.put(key, value, start)
        elif step == "delete":
            store.put(key, None, start)
        elif step == "get":
            seen.append(store.fetch(key, start))
        elif step == "key":
            seen += store.fetch_range(key, start - 3, start + 3)
        elif step == "all":
            seen += store.fetch_all(start - 3, start + 1)
        elif step == "walk":  # continues during later writes
            walks.append(store.fetch_all(0, start))
            seen.append(next(walks[-1], None))
        elif step == "len":
            seen += [len(store), store.clock_ms]
        elif step in ("undo", "done"):
            undo.begin()
            store.put(key, value, start)
            store.put(steps[0][1], None, steps[0][2])
            seen += store.fetch_all(0, start)
            store.put(steps[-1][1], value, start + 1)
            undo.roll_back() if step == "undo" else undo.end()
        else:
            changes = list(store.take_changes())
            seen.append(changes)
            rows.update(changes)
            if step == "restore":
                for walk in walks:
                    seen += walk
                clock_ms, walks, store = store.clock_ms, [], again()
                undo = Undo(store)
                store.restore([*rows.items(), *((k, v) for k, v in rows.items() if k.key == key)], clock_ms)
    for walk in walks:
        seen += walk
    return [*seen, *store.rows(), len(store), store.expired.total, list(store.take_changes())]


WINDOW_STEPS = (
    "put",
    "put",
    "put",
    "get",
    "delete",
    "key",
    "all",
    "walk",
    "checkpoint",
    "restore",
    "undo",
    "done",
    "len",
)


@pytest.mark.parametrize("spill", SPILLS)
@given(st.data(), st.sampled_from(list(TYPES)), st.sampled_from([1, 900, 2000, 4000]))
@examples(120)
def test_spilling_windows_equal_windows_in_memory(
    spill: OpenSpill, data: st.DataObject, kind: str, memory: int
) -> None:
    step = st.tuples(st.sampled_from(WINDOW_STEPS), TYPES[kind][2], st.integers(0, 12))
    steps = data.draw(st.lists(step, min_size=data.draw(LENGTHS), max_size=40))
    in_memory = played_windows(kind, windows_of(kind, None, 0), steps, lambda: windows_of(kind, None, 0))
    on_spill = played_windows(kind, windows_of(kind, spill, memory), steps, lambda: windows_of(kind, spill, memory))
    assert on_spill == in_memory


@pytest.mark.parametrize("spill", SPILLS)
@given(st.data(), st.sampled_from(list(TYPES)), st.sampled_from([1, 900, 2000, 4000]))
@examples(120)
def test_a_spilling_store_equals_one_in_memory(spill: OpenSpill, data: st.DataObject, kind: str, memory: int) -> None:
    key = TYPES[kind][2]
    steps = data.draw(st.lists(st.tuples(st.sampled_from(STEPS), key), min_size=data.draw(LENGTHS), max_size=40))
    in_memory = played(kind, store_of(kind, None, 0), steps, lambda: store_of(kind, None, 0))
    on_spill = played(kind, store_of(kind, spill, memory), steps, lambda: store_of(kind, spill, memory))
    assert on_spill == in_memory


def build_tables() -> Topology:
    """Suppressed sessions, and a foreign-key join."""
    builder = StreamsBuilder()
    left, right = (builder.stream(topic) for topic in STREAMS)
    sessions = left.group_by(_text).windowed_by(SessionWindows.of("5ms", grace="5ms")).count(store="sessions")
    sessions.suppress(until_time_limit("4ms")).to_stream().to("held")
    rows = left.select_key(_text).to_table(store="rows")
    named = right.select_key(_length).to_table(store="named")
    rows.left_join(named, lambda row, name: f"{row}&{name}", foreign_key=_length, store="joined").to_stream().to(
        "joins"
    )
    return builder.build()


def _text(key: Any, _value: Any) -> str:
    return str(key)


def _length(_key: Any, value: Any) -> str:
    return str(len(str(value)) % 3)


@given(st.one_of(plans().map(build), st.builds(build_tables)), epochs(TOPICS), st.integers(1, 3))
@examples(90)
def test_a_replay_is_the_same(topology: Topology, given_epochs: list[Any], size: int) -> None:
    def replayed(settings: Settings) -> tuple[Any, ...]:
        replay = LocalReplay(topology, partitions=2, settings=settings)
        for start in range(0, len(given_epochs), size):
            replay.run(given_epochs[start : start + size])
        return replay.sent, replay.checkpoints(), replay.metrics

    in_memory = replayed(Settings())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LocalTask.__init__.__kwdefaults__, "is_bound", True)
        assert replayed(Settings(limits=Limits(store_memory=1))) == in_memory


def test_a_spill_is_used_only_when_memory_is_full() -> None:
    few, many = (store_of("text", MemorySpill, memory) for memory in (1_000_000, 10_000))
    before = MemorySpill.writes
    for number in range(100):
        few.put(str(number), number)
    assert MemorySpill.writes == before
    for number in range(100):
        many.put(str(number), number)
    assert MemorySpill.writes > before
    assert [many.get(str(number)) for number in range(100)] == list(range(100))
    assert bind_store(key_value_store("s", key=str, value=int), {})
