"""Verbs that split or end a stream, or make several records of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused


def values(by: TopologyTestDriver, topic: str) -> list[Any]:
    return [record.value for record in by.read(topic)]


def test_a_record_goes_into_the_first_matching_branch() -> None:
    builder = StreamsBuilder()
    branches = (
        builder.stream("in")
        .split(name="size")
        .branch(lambda _key, value: value > 100, name="large")
        .branch(lambda _key, value: value > 10)
        .default_branch(name="small")
    )
    assert list(branches) == ["size-large", "size-2", "size-small"]
    for name, branch in branches.items():
        branch.to(name)
    one = TopologyTestDriver(builder.build())
    for at, value in enumerate((5, 500, 50, 7)):
        one.pipe("in", "k", value, at)
    assert {name: values(one, name) for name in branches} == {
        "size-large": [500],
        "size-2": [50],
        "size-small": [5, 7],
    }


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_repartition_drops_and_counts_records_with_a_null_key(partitions: int) -> None:
    builder = StreamsBuilder()
    moved = builder.stream("in").select_key(lambda _key, value: value or None, key=str)
    moved.repartition(name="again").to("out")
    one = TopologyTestDriver(builder.build(), partitions=partitions)
    for at, value in enumerate(["a", "", "b"]):
        one.pipe("in", "k", value, at)
    one.cut()
    assert [record.key for record in one.read("out")] == ["a", "b"]
    (dropped,) = one.dropped
    assert (dropped.node, dropped.reason) == ("keyed-only-1", "null-key")
    assert [row["total"] for row in one.metrics if row["name"] == "skipped-records"] == [1]


def test_a_repartition_drops_null_keys_of_a_log_too() -> None:
    builder = StreamsBuilder()
    builder.stream("in").repartition(name="again").to("out")
    one = TopologyTestDriver(builder.build())
    one.pipe("in", None, "a", 0)
    assert one.read("out") == []


def test_without_a_default_branch_the_rest_is_dropped() -> None:
    builder = StreamsBuilder()
    branches = builder.stream("in").split().branch(lambda key, _value: key == "a", name="a").no_default_branch()
    branches["split-1-a"].to("out")
    one = TopologyTestDriver(builder.build())
    one.pipe("in", "a", 1, 1)
    one.pipe("in", "b", 2, 2)
    assert values(one, "out") == [1]


def test_a_chain_replaces_or_ends_a_branch() -> None:
    builder = StreamsBuilder()
    branches = (
        builder.stream("in")
        .split(name="s")
        .branch(lambda key, _value: key == "a", name="a", chain=lambda s: s.map_values(str))
        .branch(lambda key, _value: key == "b", name="b", chain=lambda s: s.to("bs"))
        .default_branch()
    )
    assert list(branches) == ["s-a", "s-0"]
    branches["s-a"].merge(branches["s-0"]).to("out")
    one = TopologyTestDriver(builder.build())
    for at, key in enumerate("abc"):
        one.pipe("in", key, at, at)
    assert values(one, "bs") == [1]
    assert values(one, "out") == ["0", 2]


def test_the_default_branch_is_the_last() -> None:
    split = StreamsBuilder().stream("in").split(name="s")
    split.default_branch()
    with refused("branch-after-default", branch="1"):
        split.branch(lambda _key, _value: True)
    split = StreamsBuilder().stream("in").split(name="s").branch(lambda _key, _value: True, name="x")
    with refused("named-twice", name="s-x"):
        split.branch(lambda _key, _value: True, name="x")


def test_the_branches_are_part_of_the_fingerprint() -> None:
    def built(*names: str) -> str:
        builder = StreamsBuilder()
        split = builder.stream("in").split(name="s")
        for name in names:
            split.branch(lambda _key, _value: True, name=name)
        split.default_branch()["s-0"].to("out")
        return builder.build().fingerprint()

    assert len({built("a", "b"), built("b", "a"), built("a")}) == 3


def test_the_deprecated_branch_returns_a_list() -> None:
    builder = StreamsBuilder()
    with pytest.warns(DeprecationWarning, match="use split"):
        even, odd = builder.stream("in").branch(lambda _k, v: v % 2 == 0, lambda _k, v: v % 2 == 1)
    even.to("even")
    odd.to("odd")
    one = TopologyTestDriver(builder.build())
    for at in range(4):
        one.pipe("in", "k", at, at)
    assert (values(one, "even"), values(one, "odd")) == ([0, 2], [1, 3])


def test_map_values_and_flat_map_values_with_key() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.map_values(lambda key, value: f"{key}{value}", with_key=True).to("named")
    stream.flat_map_values(lambda value: [value, value]).to("twice")
    stream.flat_map_values(lambda key, value: [key] * value, with_key=True).to("keys")
    one = TopologyTestDriver(builder.build())
    one.pipe("in", "k", 3, 1)
    assert [values(one, topic) for topic in ("named", "twice", "keys")] == [["k3"], [3, 3], ["k", "k", "k"]]


class Doubling(Processor):
    """Forwards each record twice, and one record in each punctuation of both clocks."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        for kind in PunctuationType:
            context.schedule("10ms", kind, self.punctuate, name=kind.value)

    def process(self, record: Record) -> None:
        self.context.forward(record)
        self.context.forward(record)

    def punctuate(self, now_ms: int) -> None:
        self.context.forward(Record("punctuated", now_ms))


def called(action: Callable[[list[Any]], Callable[..., Any]], *, cut: bool = False) -> list[Any]:
    calls: list[Any] = []
    builder = StreamsBuilder()
    builder.stream("in").process(Doubling, name="d").foreach(action(calls), name="send")
    one = TopologyTestDriver(builder.build())
    for at in (12, 15, 22):
        one.pipe("in", "k", None, at)
        if cut:
            one.cut()
    return calls


def test_each_call_of_foreach_has_its_own_idempotency_key_in_every_cut() -> None:
    def action(calls: list[Any]) -> Callable[..., Any]:
        return lambda key, _value, idempotency_key: calls.append((key, idempotency_key))

    calls = called(action)
    assert calls == called(action, cut=True)
    assert [key for who, key in calls if who == "k"] == [
        f"in/0/{offset}/send/{n}" for offset in range(3) for n in (0, 1)
    ]
    assert len({key for _, key in calls}) == len(calls) == 9
    assert [key for who, key in calls if who != "k"] == [
        "0/schedule-0/12/send/0",
        "0/schedule-1/22/send/0",
        "0/schedule-0/22/send/0",
    ]


@pytest.mark.parametrize("how", ["two", "three", "keyword", "options"])
def test_an_action_may_take_the_idempotency_key(how: str) -> None:
    def action(calls: list[Any]) -> Callable[..., Any]:
        def two(key: Any, value: Any) -> None:
            calls.append("")

        def three(key: Any, value: Any, request: str) -> None:
            calls.append(request)

        def keyword(key: Any, value: Any, *, idempotency_key: str) -> None:
            calls.append(idempotency_key)

        def options(key: Any, value: Any, times: int = 1) -> None:
            calls.append("" if times == 1 else times)

        return {"two": two, "three": three, "keyword": keyword, "options": options}[how]

    wants = how in ("three", "keyword")
    assert called(action)[0] == ("in/0/0/send/0" if wants else "")


def test_an_action_of_any_other_signature_is_rejected() -> None:
    with refused("action-parameters-wrong"):
        StreamsBuilder().stream("in").foreach(lambda record: record, name="send")
    StreamsBuilder().stream("in").foreach(print, name="send")


def test_a_topology_may_end_in_foreach() -> None:
    calls: list[Any] = []
    builder = StreamsBuilder()
    builder.stream("in").foreach(lambda key, value: calls.append((key, value)), name="send")
    TopologyTestDriver(builder.build()).pipe("in", "k", "v", 1)
    assert calls == [("k", "v")]


@pytest.mark.parametrize("how", ["left_join", "join"])
def test_a_null_key_crosses_a_repartition_above_a_join_that_sends_it(how: str) -> None:
    builder = StreamsBuilder()
    rows = builder.table("rows", store="rows")
    crossed = builder.stream("in").repartition(name="first").peek(lambda _key, _value: None).repartition(name="second")
    crossed.to("crossed")
    getattr(crossed, how)(rows, lambda value, row: f"{value}-{row}").to("out")
    one = TopologyTestDriver(builder.build(), partitions=2)
    one.pipe("in", None, "a", 0)
    passes = how == "left_join"
    assert values(one, "out") == (["a-None"] if passes else [])
    assert values(one, "crossed") == (["a"] if passes else [])
    assert len(one.dropped) == (0 if passes else 1)
