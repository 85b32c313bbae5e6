"""Resource limits: exceeding one raises an error (71) that names limit, value, node, record and the key to raise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rewindow import (
    Collect,
    Count,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    key_value_store,
)
from rewindow.dsl.grouped import KGroupedStream
from rewindow.errors import LimitError
from rewindow.streams.settings import Semantics
from rewindow.testing import Limits, TopologyTestDriver
from tests.refusals import refused


class Greedy(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.store = context.store("kept")
        context.schedule("1ms", PunctuationType.WALL_CLOCK_TIME, self.tell)

    def process(self, record: Record) -> None:
        self.store.put(record.key, record.value)
        for number in range(record.value):
            self.context.forward(Record(number, number))

    def tell(self, now_ms: int) -> None:
        pass


def driver(**limits: int) -> TopologyTestDriver:
    builder = StreamsBuilder()
    builder.stream("in").process(Greedy, name="greedy", stores=[key_value_store("kept")]).to("out")
    semantics = Semantics(wall_clock="stream_time")
    return TopologyTestDriver(builder.build(), limits=Limits(**limits), semantics=semantics)


def fill(one: TopologyTestDriver) -> None:
    for number in range(4):
        one.pipe("in", number, 1, 10)


CASES: dict[str, tuple[dict[str, int], Callable[[TopologyTestDriver], Any], str]] = {
    "store_rows": ({"store_rows": 3}, fill, "the store 'kept' has 4 rows (node greedy, at in offset 3, partition 0)"),
    "outputs_per_record": (
        {"outputs_per_record": 5},
        lambda one: (one.pipe("in", "k", 5, 10), one.pipe("in", "k", 6, 10)),
        "one record caused 6 records in the topic 'out' (node greedy, at in offset 1, partition 0)",
    ),
    "punctuations_per_epoch": (
        {"punctuations_per_epoch": 20},
        lambda one: (one.pipe("in", "k", 1, 10), one.pipe("in", "k", 1, 30), one.pipe("in", "k", 1, 31)),
        "schedules were called 21 times in this epoch (node greedy, at the punctuation due at 31 ms, partition 0)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_exceeded_limit_names_everything(name: str) -> None:
    limits, play, said = CASES[name]
    play(driver())  # the default limits are large enough
    with pytest.raises(LimitError, match=re.escape(said)) as caught:
        play(driver(**limits))
    assert f"the limit {name} is {limits[name]}, and" in str(caught.value)
    assert f"limits: {{{name}: {2 * limits[name]}}}" in str(caught.value)
    assert caught.value.exit_code == 71


def collected(grouped: Any) -> Any:
    return grouped.aggregate(Collect(), store="lists")


AGGREGATES: dict[str, Callable[[KGroupedStream], Any]] = {
    "a table": collected,
    "one of several": lambda grouped: grouped.aggregate({"n": Count(), "all": Collect()}, store="lists"),
    "one's own": lambda grouped: grouped.aggregate(list, lambda _key, value, state: [*state, value], store="lists"),
    "windows": lambda grouped: grouped.windowed_by(TimeWindows.of("1h", grace="1h")).aggregate(
        Collect(), store="lists"
    ),
    "sliding windows": lambda grouped: grouped.windowed_by(SlidingWindows.of("1h", grace="1h")).aggregate(
        Collect(), store="lists"
    ),
    "sessions": lambda grouped: grouped.windowed_by(SessionWindows.of("1h", grace="1h")).aggregate(
        Collect(), store="lists"
    ),
}


@pytest.mark.parametrize("kind", AGGREGATES)
def test_a_list_that_grows_too_long_ends_with_its_key_store_and_size(kind: str) -> None:
    builder = StreamsBuilder()
    AGGREGATES[kind](builder.stream("in").group_by_key()).to_stream().to("out")
    one = TopologyTestDriver(builder.build(), limits=Limits(list_items=3))
    for at in range(3):
        one.pipe("in", "hot", 1, at)
    said = (
        "the limit list_items is 3, and the list of key 'hot' in store 'lists' has 4 items (node lists, at in offset 3"
    )
    with pytest.raises(LimitError, match=re.escape(said)) as caught:
        one.pipe("in", "hot", 1, 3)
    assert caught.value.code == "list-items-limit-exceeded"
    assert "limits: {list_items: 6}" in str(caught.value)


def test_a_list_of_a_grouped_table_is_limited_too() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", store="rows")
    table.group_by(lambda _key, value: ("hot", value)).aggregate(Collect(), store="lists").to_stream().to("out")
    one = TopologyTestDriver(builder.build(), limits=Limits(list_items=1))
    one.pipe("in", "a", 1, 1)
    with refused("list-items-limit-exceeded", key="'hot'", store="lists", items=2, node="lists", suggested=2):
        one.pipe("in", "b", 1, 2)


def test_a_limit_that_is_just_reached_is_not_exceeded() -> None:
    fill(driver(store_rows=4))
    driver(outputs_per_record=6).pipe("in", "k", 6, 10)
    cut = driver(punctuations_per_epoch=20)
    for at in (10, 30, 50):
        cut.pipe("in", "k", 1, at)
        cut.advance_watermark(at)
