"""The versioned store (KIP-889) equals its definition over the whole history, also across checkpoints."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow import StoreBuilder, versioned_store
from rewindow.streams.checkpoint import new_store
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import bind_store, bound, log_shape
from rewindow.streams.state.stores import Stamped
from rewindow.streams.state.versioned_store import Put, VersionedStore, VersionKey
from rewindow.streams.topology import SubTopology
from tests.refusals import refused

PUTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9), st.integers(0, 30)) | st.just("cut"), max_size=25
)


def made(builder: StoreBuilder) -> VersionedStore:
    store = new_store(builder)
    assert isinstance(store, VersionedStore)
    return store


class History:
    """A store that keeps all puts and searches them for each read."""

    def __init__(self, history: int) -> None:
        self.history, self.clock, self.taken = history, -1, dict[tuple[str, int], Any]()

    def put(self, key: str, value: Any, at: int) -> Put:
        self.clock = max(self.clock, at)
        if at < self.clock - self.history:
            return Put.REFUSED
        self.taken[key, at] = value
        return Put.LATEST if at == self.times(key)[-1] else Put.PAST

    def times(self, key: str) -> list[int]:
        return sorted(at for one, at in self.taken if one == key)

    def get_as_of(self, key: str, asked: int) -> Stamped | None:
        times = self.times(key)
        held = [at for at in times if at <= asked]
        if not held or (asked < self.clock - self.history and held[-1] != times[-1]):
            return None
        value = self.taken[key, held[-1]]
        return None if value is None else Stamped(value, held[-1])


@given(PUTS, st.integers(0, 12))
def test_reads_equal_those_of_the_whole_history_across_checkpoints(puts: list[Any], history: int) -> None:
    logs = {"in": (log_shape((Column("key", "string"),), is_scalar=True),) * 2}
    (builder,) = bound(
        SubTopology(0, (), (versioned_store("s", history=f"{history}ms", key=str, value=int),)), logs
    ).stores
    shapes = bind_store(builder, logs)
    store, naive = made(builder), History(history)
    uncut = made(builder)
    changelog: dict[str, str | None] = {}
    for put in puts:
        if put == "cut":
            for key, version in store.take_changes():
                text = dump_value(shapes[0].encode_checked(key))
                changelog[text] = None if version is None else dump_value(shapes[1].encode_checked(version))
            restored = made(builder)
            restored.restore(
                [
                    (shapes[0].decode(load_value(key)), row and shapes[1].decode(load_value(row)))
                    for key, row in sorted(changelog.items())
                ],
                store.clock_ms,
            )
            store = restored
            continue
        expected = naive.put(*put)
        assert store.put(*put) is expected
        assert uncut.put(*put) is expected
        assert list(store.rows()) == list(uncut.rows())
        assert store.clock_ms == naive.clock
        for key in "ab":
            for asked in range(-1, 32):
                assert store.get_as_of(key, asked) == naive.get_as_of(key, asked), (key, asked)
            assert store.get(key) == naive.get_as_of(key, 99)


def test_unreachable_versions_leave_the_checkpoint() -> None:
    store = made(versioned_store("s", history="10ms"))
    for value, at in ((1, 0), (2, 5), (None, 8)):
        store.put("a", value, at)
    assert [key for key, _ in store.take_changes()] == [VersionKey("a", at) for at in (0, 5, 8)]
    store.put("b", 1, 16)
    assert store.take_changes() == [(VersionKey("a", 0), None), (VersionKey("b", 16), (1,))]
    store.put("b", 2, 18)
    assert [(key.valid_from, version) for key, version in store.take_changes()] == [(5, None), (8, None), (18, (2,))]


def test_a_value_that_is_changed_in_place_does_not_change_in_the_store() -> None:
    store = made(versioned_store("s", history="10ms"))
    value = [1]
    store.put("a", value, 0)
    value.append(2)
    found = store.get("a")
    assert found == Stamped([1], 0)
    found.value.append(3)
    assert store.get_as_of("a", 5) == Stamped([1], 0)


def test_misuse_is_refused_by_name() -> None:
    with refused("store-history-negative"):
        versioned_store("s", history="-1ms")
    store = made(versioned_store("s", history="10ms"))
    with refused("version-timestamp-invalid"):
        store.put("a", 1, -1)
    with refused("value-type-undeclared") as caught:
        store.put("a", object(), 1)
    assert "store 's'" in str(caught.value)
