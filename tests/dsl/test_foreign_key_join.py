"""Foreign-key joins (KIP-213): example K11 and section 6.4 of the semantics reference."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from rewindow import KTable, StreamsBuilder, Topology, versioned_store
from rewindow.streams.checkpoint import new_store
from rewindow.streams.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.streams.nodes import ProcessorNode, SourceNode
from rewindow.streams.serde.types_to_columns import bound
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.stores import PREFIX, StoreBuilder
from rewindow.streams.topology import SubTopology
from rewindow.testing import Epoch, LocalReplay, TopologyTestDriver
from rewindow.testing.local_task import MemorySpill
from tests.dsl.test_tables import both_modes, dropped
from tests.refusals import refused

Steps = list[tuple[str, str, Any, int, list[str]]]
"""Topic, key, value, timestamp, what is sent. A left value starts with the key of its right row."""


def named(_key: Any, value: str) -> str | None:
    return value[0] if value and value[0] != "-" else None


def text(left: Any, right: Any) -> str:
    return f"{left}-{right}"


def topology(how: str = "inner", *, history: str | None = None) -> Topology:
    builder = StreamsBuilder()
    left, right = (
        builder.table(name, store=versioned_store(name, history=history) if history else name) for name in "LR"
    )
    join = {"inner": left.join, "left": left.left_join}[how]
    join(right, text, foreign_key=named, store="joined", value=str).to_stream().to("out")
    return builder.build()


def play(driver: TopologyTestDriver, steps: Steps, *, cut: bool) -> None:
    for topic, key, value, at, expected in steps:
        driver.pipe(topic, key, value, at)
        sent = [f"{record.key}={record.value}@{record.timestamp}" for record in driver.read("out")]
        assert sent == expected, (topic, key, value, at)
        if cut:
            driver.cut()


INNER: Steps = [
    ("L", "k", "x1", 5, []),
    ("R", "x", "r", 3, ["k=x1-r@3"]),
    ("L", "k", "y2", 6, ["k=None@6"]),
    ("R", "x", "s", 7, []),
    ("L", "k", "x3", 4, ["k=x3-s@7"]),
    ("L", "m", "x4", 9, ["m=x4-s@9"]),
    ("R", "x", "t", 8, ["k=x3-t@8", "m=x4-t@8"]),
    ("L", "m", None, 10, ["m=None@10"]),
    ("R", "x", None, 11, ["k=None@11"]),
    ("R", "x", None, 12, ["k=None@12"]),
    ("L", "k", "x9", 12, []),
    ("L", "k", "-", 13, ["k=None@13"]),
    ("L", "k", None, 14, []),
    ("L", "k", None, 15, []),
    ("R", "x", "u", 30, []),
    ("L", "k", "x5", 16, ["k=x5-u@30"]),
    ("L", "k", None, 17, ["k=None@30"]),
]
"""Kafka Streams 4.4.0 sends the same here and in `LEFT`."""
LEFT: Steps = [
    ("L", "k", "x1", 5, ["k=x1-None@5"]),
    ("R", "x", "r", 3, ["k=x1-r@3"]),
    ("L", "k", "y2", 6, ["k=y2-None@6"]),
    ("L", "k", "-", 7, ["k=--None@7"]),
    ("L", "k", "x3", 2, ["k=x3-r@3"]),
    ("R", "x", None, 8, ["k=x3-None@8"]),
    ("L", "k", None, 9, ["k=None@9"]),
    ("L", "k", None, 10, []),
]


@both_modes
@pytest.mark.parametrize(("how", "steps"), [("inner", INNER), ("left", LEFT)])
@pytest.mark.parametrize("partitions", [1, 3])
def test_each_row_follows_the_row_of_its_foreign_key(how: str, steps: Steps, partitions: int, cut: bool) -> None:  # noqa: FBT001
    play(TopologyTestDriver(topology(how), partitions=partitions), steps, cut=cut)


def test_a_foreign_key_join_has_three_sub_topologies_without_shared_stores() -> None:
    parts = topology().sub_topologies()
    assert [[store.name for store in part.stores] for part in parts] == [
        ["L", "joined-updates"],
        ["R", "joined-subscribers"],
        ["joined-left", "joined"],
    ]


def test_an_early_answer_waits_for_its_update() -> None:
    """In the log of the subscription to d, the running maximum is behind that of the left updates."""
    replay = LocalReplay(topology("left"), partitions=2)
    replay.run([Epoch((("L", "a", "a", 1), ("L", "a", "d", 0)))])
    assert [(sent.record.value, sent.record.timestamp) for sent in replay.sent] == [("d-None", 0)]


def test_a_row_without_a_foreign_key_deletes_its_result_although_a_late_answer_follows() -> None:
    replay = LocalReplay(topology(), partitions=1)
    replay.run([Epoch((("L", "k", "x1", 0),))])
    replay.run([Epoch((("L", "k", None, 1), ("L", "k", "-", 0), ("R", "x", "r", 0)))])
    assert [sent.record.value for sent in replay.sent] == ["x1-r", None]


@both_modes
def test_a_row_without_a_foreign_key_is_counted(cut: bool) -> None:  # noqa: FBT001
    driver = TopologyTestDriver(topology())
    play(driver, [("L", "k", "-", 5, []), ("L", "k", "x", 6, []), ("R", "x", "r", 6, ["k=x-r@6"])], cut=cut)
    assert dropped(driver, SKIPPED_RECORDS) == {"null-foreign-key": 1}


@both_modes
def test_late_updates_of_versioned_tables_are_dropped(cut: bool) -> None:  # noqa: FBT001
    driver = TopologyTestDriver(topology(history="1h"))
    steps: Steps = [
        ("L", "k", "x1", 5, []),
        ("R", "x", "r", 3, ["k=x1-r@3"]),
        ("R", "x", "q", 2, []),
        ("L", "k", "x0", 4, []),
        ("L", "k", "x2", 5, ["k=x2-r@5"]),
    ]
    play(driver, steps, cut=cut)
    assert dropped(driver, LATE_RECORD_DROP) == {"not-latest": 2}


class Order(NamedTuple):
    """A left row."""

    user: int
    price: Decimal


class User(NamedTuple):
    """A right row, whose fields may be null."""

    name: str | None


@both_modes
def test_rows_keep_their_types_across_internal_logs(cut: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()

    def typed(topic: str, key: Any, value: Any) -> KTable:
        return (
            builder.stream(topic)
            .map(lambda k, v: (key(k), v and value(*v)), key=key, value=value)
            .to_table(store=topic)
        )

    seen: list[Any] = []
    joined = typed("L", str, Order).left_join(
        typed("R", int, User),
        lambda order, user: seen.append((order, user)) or f"{order.price} by {user and user.name}",
        foreign_key=lambda _key, order: order.user,
        store="joined",
        value=str,
    )
    joined.to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), partitions=2)
    steps: Steps = [
        ("L", "k", (7, Decimal("1.5")), 5, ["k=1.500000000000000000 by None@5"]),
        ("R", "7", (None,), 3, ["k=1.500000000000000000 by None@3"]),
        ("R", "7", ("ann",), 3, ["k=1.500000000000000000 by ann@3"]),
    ]
    play(driver, steps, cut=cut)
    assert seen[1:] == [(Order(7, Decimal("1.5")), User(None)), (Order(7, Decimal("1.5")), User("ann"))]


def employees(*, parted: bool) -> Topology:
    builder = StreamsBuilder()
    table = builder.table("L", store="L")
    other = table.to_stream().repartition(name="bosses").to_table(store="bosses") if parted else table
    table.join(other, text, foreign_key=named, store="joined", value=str).to_stream().to("out")
    return builder.build()


def test_a_table_is_joined_with_itself_after_a_repartition() -> None:
    with refused("repartitions-form-cycle"):
        employees(parted=False)
    driver = TopologyTestDriver(employees(parted=True))
    play(driver, [("L", "b", "-", 1, []), ("L", "k", "b", 2, ["k=b--@2"]), ("L", "b", "c", 3, ["k=b-c@3"])], cut=True)


@both_modes
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_joiner_may_take_the_key_of_the_row(how: str, *, cut: bool) -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(name, store=name) for name in "LR")
    join = {"inner": left.join, "left": left.left_join}[how]
    keyed = join(right, lambda *both: ":".join(map(str, both)), foreign_key=named, store="j", with_key=True, value=str)
    keyed.to_stream().to("out")
    steps: Steps = [
        ("L", "k", "x1", 5, [] if how == "inner" else ["k=k:x1:None@5"]),
        ("R", "x", "r", 7, ["k=k:x1:r@7"]),
        ("L", "m", "x2", 8, ["m=m:x2:r@8"]),
        ("R", "x", "s", 9, ["k=k:x1:s@9", "m=m:x2:s@9"]),
    ]
    play(TopologyTestDriver(builder.build()), steps, cut=cut)


def test_a_foreign_key_needs_a_store() -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(name, store=name) for name in "LR")
    with refused("foreign-key-join-without-store"):
        left.join(right, text, foreign_key=named)


KEYS: dict[str, tuple[Any, list[Any]]] = {
    "text": (str, ["", "A", "AA", "AB", "B", "a", "z" * 300, "ä", "äA", "語"]),
    "numbers": (int, [0, 1, 255, 256, 2**40, -(2**40), -2, -1]),  # two's complement, unsigned: Kafka's LongSerializer
    "bytes": (bytes, [b"", b"\x00", b"A", b"AA", b"B", b"\xff", b"\xff\xff"]),
}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("kind", KEYS)
def test_one_right_update_sends_its_results_by_the_bytes_of_the_left_keys(kind: str, *, cut: bool) -> None:
    key_type, in_order = KEYS[kind]
    builder = StreamsBuilder()
    left = builder.stream("L").map(lambda key, value: (key, value), key=key_type, value=str).to_table(store="L")
    right = builder.table("R", store="R")
    left.join(right, text, foreign_key=lambda _key, _value: "x", store="joined", value=str).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for at, key in enumerate([*in_order[1::2], *reversed(in_order[::2])]):
        driver.pipe("L", key, "l", at)
    if cut:
        driver.cut()
    driver.pipe("R", "x", "r", 99)
    assert [record.key for record in driver.read("out")] == in_order


@pytest.mark.parametrize("spilled", [0, 5, 9, 10])
def test_subscribers_on_disk_and_in_memory_are_in_one_order(spilled: int) -> None:
    in_order = KEYS["text"][1]
    declared = StoreBuilder("s", PREFIX, None, int)
    part = SubTopology(0, (SourceNode("in"), ProcessorNode("p", ("in",), stores=("s",))), (declared,))
    store: Any = new_store(bound(part, {}).stores[0], Disk(MemorySpill, 10**6))
    mixed = [*in_order[1::2], *reversed(in_order[::2])]
    for number, key in enumerate(mixed):
        if number == spilled:
            store._rows.spilling.flush()  # as when memory is full
        for foreign_key in ("x", "xx", ""):
            store.put((foreign_key, key), number)
    for foreign_key in ("x", "xx", ""):
        assert [key for key, _ in store.beginning_with(foreign_key)] == [(foreign_key, key) for key in in_order]
