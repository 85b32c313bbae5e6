"""Aggregates: types, arithmetic, and isolation of stored and sent values from user functions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Count, Max, Mean, Min, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes
from rewindow.dsl.operators.compound import Several
from rewindow.streams.nodes import SinkNode
from rewindow.streams.serde.schema import Column, row_shape
from rewindow.streams.serde.types_to_columns import bind, bind_sink, bind_store, log_shape
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused

COLUMNS = (
    Column("amount", "double"),
    Column("late", "boolean"),
    Column("price", "decimal(10,2)"),
    Column("number", "long"),
    Column("name", "string"),
)
KEY = log_shape((Column("user", "string"),), is_scalar=True)
LOGS = {"in": (KEY, row_shape(COLUMNS)), "flags": (KEY, log_shape((Column("flag", "boolean"),), is_scalar=True))}


class Sale(NamedTuple):
    """A row."""

    amount: float


def topology(aggregate: Any, topic: str = "in") -> Topology:
    builder = StreamsBuilder()
    builder.stream(topic).group_by_key().aggregate(aggregate, store="s").to_stream().to("out")
    return builder.build()


def types(aggregate: Any, topic: str = "in") -> tuple[list[str], list[str]]:
    """Return the column types of state and result."""
    built = topology(aggregate, topic)
    sink = built.nodes["out-sink"]
    assert isinstance(sink, SinkNode)
    state, result = bind_store(built.stores["s"], LOGS)[1], bind_sink(sink, LOGS)[1]
    return [column.type for column in state.columns[:-1]], [column.type for column in result.columns]


@pytest.mark.parametrize(
    ("aggregate", "state", "result"),
    [
        (Count(), ["long"], ["long"]),
        (Sum("amount"), ["double"], ["double"]),
        (Sum("number"), ["long"], ["long"]),
        (Sum("late"), ["long"], ["long"]),
        (Sum("price"), ["decimal(38,2)"], ["decimal(38,2)"]),
        (Min("late"), ["boolean"], ["boolean"]),
        (Max("price"), ["decimal(10,2)"], ["decimal(10,2)"]),
        (Mean("late"), ["long", "long"], ["double"]),
        (Mean("price"), ["decimal(38,2)", "long"], ["double"]),
        ({"n": Count(), "mean": Mean("amount")}, ["long", "double", "long"], ["long", "double"]),
    ],
)
def test_the_types_of_an_aggregate(aggregate: Any, state: list[str], result: list[str]) -> None:
    assert types(aggregate) == (state, result)


def test_a_reducer_that_adds_rows_is_told_to_take_a_field() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().reduce(lambda one, other: one + other, store="r")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", Sale(1.0), 0)
    with refused("reduced-rows-joined", field="amount"):
        driver.pipe("in", "a", Sale(1.0), 1)
    driver.pipe("in", "b", (1, 2), 2)
    driver.pipe("in", "b", (3,), 3)
    assert driver.store("r")["b"].value == (1, 2, 3)


def test_an_aggregate_of_bare_values() -> None:
    assert types(Sum(), "flags") == (["long"], ["long"])
    with refused("aggregate-field-of-bare-value", field="flag"):
        types(Sum("flag"), "flags")


@pytest.mark.parametrize("aggregate", [Sum(), Min(), Max(), Mean(), {"a": Sum()}])
def test_an_aggregate_of_rows_needs_a_field(aggregate: Any) -> None:
    with refused("aggregate-without-field", fields="amount, late, price, number, name"):
        types(aggregate)
    driver = TopologyTestDriver(topology(aggregate))
    with refused("aggregate-of-whole-rows", fields="amount"):
        driver.pipe("in", "a", Sale(1.0), 0)


@pytest.mark.parametrize(
    ("aggregate", "what"), [(Sum("name"), "Sum"), (Mean("name"), "Mean"), ({"n": Sum("name")}, "Sum")]
)
def test_a_sum_of_text_says_which_column_was_landed_as_text(aggregate: Any, what: str) -> None:
    with refused("landed-field-not-number", aggregate=f'{what}("name")', field="name", type="text"):
        types(aggregate)


def test_a_sum_of_computed_text_says_so() -> None:
    builder = StreamsBuilder()
    texts = builder.stream("in").map_values(lambda _row: "x", value=str)
    node = texts.group_by_key().aggregate(Sum(), store="sums")
    with refused("aggregate-field-not-number", aggregate="Sum()", field="the value", type="text"):
        bind(node.value, "value", {})


def folded(aggregate: Any, values: list[Any]) -> Any:
    state = aggregate.start()
    for value in values:
        state = aggregate.add("k", value, state)
    return aggregate.result(state)


DECIMALS = st.decimals(min_value=-(10**15), max_value=10**15, places=18)


@given(st.lists(st.none() | DECIMALS))
def test_sums_of_decimals_are_exact_and_their_mean_is_rounded_once(values: list[Decimal | None]) -> None:
    exact = [Fraction(value) for value in values if value is not None]
    total, mean = folded(Sum(), values), folded(Mean(), values)
    assert (total is None) is (mean is None) is (not exact)
    if exact:
        assert Fraction(total) == sum(exact)
        assert mean == float(sum(exact) / len(exact))


def test_a_sum_of_decimals_that_would_be_rounded_is_rejected() -> None:
    with refused("decimal-sum-too-long"):
        folded(Sum(), [Decimal(10) ** 37, Decimal(1).scaleb(-18)])


@given(st.lists(st.none() | st.booleans()))
def test_a_sum_of_booleans_is_an_integer(values: list[bool | None]) -> None:
    known = [value for value in values if value is not None]
    total = folded(Sum(), values)
    assert total == (sum(known) if known else None)
    assert total is None or total.__class__ is int
    assert folded(Mean(), values) == (sum(known) / len(known) if known else None)


def test_an_aggregator_that_modifies_its_state_does_not_change_the_old_result() -> None:
    def changing(_key: str, value: int, state: list[int]) -> list[int]:
        state.append(value)
        return state

    def copying(_key: str, value: int, state: list[int]) -> list[int]:
        return [*state, value]

    sent = []
    for aggregator in (changing, copying):
        builder = StreamsBuilder()
        table = builder.stream("in").group_by_key().aggregate(list, aggregator, store="s")
        table.filter(lambda _key, value: len(value) < 2).to_stream().to("out")
        driver = TopologyTestDriver(builder.build())
        driver.pipe("in", "a", 1, 1)
        driver.pipe("in", "a", 2, 2)
        sent.append([(record.key, record.value) for record in driver.read("out")])
    assert sent[0] == sent[1] == [("a", [1]), ("a", None)]


def test_keys_do_not_share_a_start_state() -> None:
    shared: list[int] = []
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.aggregate(lambda: shared, lambda _k, v, state: (state.append(v), state)[1], store="s").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", 1, 1)
    driver.pipe("in", "b", 2, 2)
    assert [record.value for record in driver.read("out")] == [[1], [2]]
    assert shared == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Sum("amount"), Sum("number")),
        (Sum("amount"), Max("amount")),
        ({"a": Min("amount")}, {"a": Max("amount")}),
        ({"a": Min("amount")}, {"b": Min("amount")}),
        (Mean("amount"), Mean("number")),
    ],
)
def test_the_fingerprint_distinguishes_aggregates(one: Any, other: Any) -> None:
    assert topology(one).fingerprint() != topology(other).fingerprint()
    assert topology(one).fingerprint() == topology(one).fingerprint()


def test_the_fingerprint_distinguishes_filter_and_filter_not() -> None:
    def built(verb: str) -> str:
        builder = StreamsBuilder()
        getattr(builder.stream("in"), verb)(lambda _key, value: value, name="f").to("out")
        return builder.build().fingerprint()

    assert built("filter") != built("filter_not")


def test_suppress_accepts_until_window_closes() -> None:
    table = StreamsBuilder().stream("in").group_by_key().windowed_by(TimeWindows.of("1h", grace="0s")).count(store="c")
    with refused("suppress-argument-invalid", given="'10m'", node="c"):
        table.suppress("10m")  # type: ignore[arg-type]  # that is the test
    table.suppress(until_window_closes())


def test_several_aggregates_have_a_description() -> None:
    assert Several((("n", Count()), ("most", Max("x")))).describe() == "n=count, most=max(x)"
