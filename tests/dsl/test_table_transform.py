"""`KTable.transform_values` (KIP-292): when the transformer is called, and what it sends. The rows are Kafka's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewindow import (
    KTable,
    ProcessorContext,
    PunctuationType,
    StreamsBuilder,
    ValueTransformerWithKey,
    key_value_store,
    until_time_limit,
)
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused


class Keyed(ValueTransformerWithKey):
    """Prefixes the key. A tombstone becomes the row ``none``."""

    def transform(self, key: Any, value: Any) -> Any:
        return f"{key}:{'none' if value is None else value}"


class Numbered(ValueTransformerWithKey):
    """Numbers its calls, by key, in a store."""

    def init(self, context: ProcessorContext) -> None:  # type: ignore[override]
        super().init(context)  # type: ignore[arg-type]
        self.calls = context.store("calls")

    def transform(self, key: Any, value: Any) -> Any:
        number = (self.calls.get(key) or 0) + 1
        self.calls.put(key, number)
        return None if value is None else f"{value}#{number}"


def driver(verbs: Callable[[KTable], KTable]) -> TopologyTestDriver:
    builder = StreamsBuilder()
    verbs(builder.table("in", store="rows")).to_stream().to("out")
    return TopologyTestDriver(builder.build())


def piped(one: TopologyTestDriver, *values: Any, key: str = "a", topic: str = "in") -> list[Any]:
    for number, value in enumerate(values):
        one.pipe(topic, key, value, number)
    return [record.value for record in one.read("out")]


def numbered(table: KTable, **options: Any) -> KTable:
    return table.transform_values(Numbered, name="n", stores=[key_value_store("calls", value=int)], **options)


def test_the_transformer_gets_the_key_and_tombstones() -> None:
    assert piped(driver(lambda table: table.transform_values(Keyed, name="t")), 1, None) == ["a:1", "a:none"]


def test_the_transformer_has_state() -> None:
    assert piped(driver(numbered), 1, None, 2) == ["1#1", None, "2#3"]


def test_nothing_below_needs_old_values_so_the_transformer_is_called_once_per_update() -> None:
    one = driver(lambda table: numbered(table).map_values(lambda value: value))
    assert piped(one, 1, 2) == ["1#1", "2#2"]
    assert one.store("calls") == {"a": 2}


@pytest.mark.parametrize("verb", ["filter", "stored filter", "group_by", "suppress", "below map_values"])
def test_a_verb_below_that_needs_old_values_has_the_transformer_called_for_them(verb: str) -> None:
    def verbs(table: KTable) -> KTable:
        made = numbered(table)
        if verb == "below map_values":
            made = made.map_values(lambda value: value)
        if verb == "group_by":
            return made.group_by(lambda key, value: (key, value)).count(store="counts")
        if verb == "suppress":
            return made.suppress(until_time_limit("0ms"))
        return made.filter(lambda _key, _value: True, store="kept" if verb == "stored filter" else None)

    one = driver(verbs)
    piped(one, 1, 2)
    assert one.store("calls") == {"a": 4}


@pytest.mark.parametrize(("how", "calls"), [("join", [None, 1]), ("left_join", [None, 1, None])])
def test_a_left_join_below_has_the_transformer_called_for_old_values(how: str, calls: list[Any]) -> None:
    """The first call is a lookup for the other table's row."""
    seen = []

    class Noted(ValueTransformerWithKey):
        def transform(self, key: Any, value: Any) -> Any:
            del key
            seen.append(value)
            return value

    builder = StreamsBuilder()
    left = builder.table("in", store="rows").transform_values(Noted, name="t")
    right = builder.table("other", store="others")
    getattr(left, how)(right, lambda one, other: (one, other), store="joined").to_stream().to("out")
    one = TopologyTestDriver(builder.build())
    one.pipe("other", "a", 7, 0)
    one.pipe("in", "a", 1, 1)
    assert seen == calls


def test_with_a_store_the_transformer_is_called_once_and_the_old_value_is_the_stored_one() -> None:
    one = driver(
        lambda table: numbered(table, store="kept").group_by(lambda _key, value: ("all", value)).aggregate(
            str, lambda _k, value, state: f"{state}+{value}", lambda _k, value, state: f"{state}-{value}", store="trace"
        )
    )  # fmt: skip
    assert piped(one, 1, 2, None)[-1] == "+1#1-1#1+2#2-2#2"
    assert (one.store("calls"), one.store("kept")) == ({"a": 3}, {})


def test_a_join_looks_up_transformed_rows_and_transforms_a_missing_row_too() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", store="rows").transform_values(Keyed, name="t")
    builder.stream("left").join(table, lambda one, row: f"{one}|{row}").to("out")
    one = TopologyTestDriver(builder.build())
    assert piped(one, "l", topic="left") == ["l|a:none"]
    piped(one, 1)
    assert piped(one, "m", topic="left") == ["m|a:1"]


def test_a_lookup_sees_the_time_of_the_row() -> None:
    class Timed(ValueTransformerWithKey):
        def transform(self, key: Any, value: Any) -> Any:
            del key, value
            return self.context.timestamp

    builder = StreamsBuilder()
    table = builder.table("in", store="rows").transform_values(Timed, name="t")
    builder.stream("left").join(table, lambda one, at: (one, at)).to("out")
    one = TopologyTestDriver(builder.build())
    one.pipe("in", "a", 1, 5)
    one.pipe("left", "a", "l", 8)
    one.pipe("left", "b", "m", 9)
    assert [(record.value, record.timestamp) for record in one.read("out")] == [(("l", 5), 8), (("m", -1), 9)]


def test_schedules_of_the_transformer_fire() -> None:
    class Ticking(ValueTransformerWithKey):
        def init(self, context: ProcessorContext) -> None:  # type: ignore[override]
            super().init(context)  # type: ignore[arg-type]
            self.ticks = context.store("ticks")
            context.schedule("5ms", PunctuationType.STREAM_TIME, self.tick, name="tick")

        def tick(self, now_ms: int) -> None:
            self.ticks.put("last", now_ms)

        def transform(self, key: Any, value: Any) -> Any:
            del key
            return (value, self.ticks.get("last"))

    one = driver(lambda t: t.transform_values(Ticking, name="t", stores=[key_value_store("ticks")], store="kept"))
    one.pipe("in", "a", 1, 0)
    one.pipe("in", "a", 2, 7)
    one.cut()
    one.pipe("in", "a", 3, 8)
    assert [record.value for record in one.read("out")] == [(1, None), (2, 0), (3, 7)]


def test_misuse_is_rejected_with_the_fix() -> None:
    class Forwarding(ValueTransformerWithKey):
        def transform(self, key: Any, value: Any) -> Any:
            self.context.forward(key, value)

    class Scheduling(ValueTransformerWithKey):
        def init(self, context: Any) -> None:
            super().init(context)
            context.schedule("5ms", PunctuationType.STREAM_TIME, self.punctuate)

    builder = StreamsBuilder()
    table, left = builder.table("in", store="rows"), builder.table("left", store="lefts")
    stateful = numbered(table)
    with refused("joined-table-without-store"):
        left.join(stateful, lambda one, other: (one, other))
    with refused("function-not-callable"):
        table.transform_values(Keyed(), name="t")  # type: ignore[arg-type]
    with refused("stores-not-listed"):
        table.transform_values(Keyed, name="t", stores="calls")
    with refused("supplier-result-wrong-class", type="object", expected="ValueTransformerWithKey"):
        driver(lambda t: t.transform_values(object, name="t"))  # type: ignore[arg-type, return-value]
    with refused("value-transformer-forwards"):
        piped(driver(lambda t: t.transform_values(Forwarding, name="t")), 1)
    scheduling = table.transform_values(Scheduling, name="s")
    left.join(scheduling, lambda one, other: (one, other), store="j").to_stream().to("out")
    with refused("joined-transformer-with-schedule"):
        TopologyTestDriver(builder.build())


def test_explain_names_the_transformer_and_its_store() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", store="rows").transform_values(Keyed, name="t", store="kept")
    table.to_stream().to("out")
    described = {node["name"]: node for part in builder.build().describe() for node in part["nodes"]}
    assert described["t"]["processor"] == "table_transform_values(Keyed, store=kept)"
    assert described["t"]["stores"] == ["kept"]


def test_explain_says_if_a_transformer_with_state_is_called_for_old_values() -> None:
    builder = StreamsBuilder()
    numbered(builder.table("in", store="rows")).filter(lambda _key, _value: True).to_stream().to("out")
    stateless = builder.table("other", store="others").transform_values(Keyed, name="t")
    stateless.filter(lambda _key, _value: True).to_stream().to("kept")
    described = {node["name"]: node.get("processor") for part in builder.build().describe() for node in part["nodes"]}
    assert (described["n"], described["t"]) == (
        "table_transform_values(Numbered, calls_old)",
        "table_transform_values(Keyed)",
    )
