"""Every verb that adds a node takes its name (Kafka's `Named`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import rewindow
from rewindow import KGroupedStream, KGroupedTable, KStream, KTable, SessionWindows, StreamsBuilder, TimeWindows
from rewindow.streams.nodes import ProcessorNode
from rewindow.testing import TopologyTestDriver

CLASSES = ("KStream", "KTable", "KGroupedStream", "KGroupedTable", "TimeWindowedKStream", "SessionWindowedKStream")
WITHOUT = {
    "group_by_key": "adds no node",
    "windowed_by": "adds no node",
    "emit_strategy": "adds no node",
    "check_old": "is internal",
    "cogroup": "adds no node",
}


@pytest.mark.parametrize("kind", CLASSES)
def test_every_verb_takes_a_name(kind: str) -> None:
    verbs = {
        name: function
        for name, function in inspect.getmembers(getattr(rewindow, kind), inspect.isfunction)
        if not name.startswith("_") and name not in WITHOUT
    }
    assert [name for name, function in verbs.items() if "name" not in inspect.signature(function).parameters] == []


def add(one: Any, other: Any) -> Any:
    return one + other


def grouped(stream: KStream) -> KGroupedStream:
    return stream.group_by(lambda key, _value: key, name="grouping")


def grouped_table(table: KTable) -> KGroupedTable:
    return table.group_by(lambda key, value: (key, value), name="regrouping")


AGGREGATES: dict[str, Callable[[KStream, KTable], KTable]] = {
    "count": lambda stream, _: grouped(stream).count(store="kept", name="mine"),
    "reduce": lambda stream, _: grouped(stream).reduce(add, store="kept", name="mine"),
    "windowed count": lambda stream, _: (
        grouped(stream).windowed_by(TimeWindows.of("10ms", grace="0s")).count(store="kept", name="mine")
    ),
    "windowed reduce": lambda stream, _: (
        grouped(stream).windowed_by(TimeWindows.of("10ms", grace="0s")).reduce(add, store="kept", name="mine")
    ),
    "session count": lambda stream, _: (
        grouped(stream).windowed_by(SessionWindows.of("10ms", grace="0s")).count(store="kept", name="mine")
    ),
    "table count": lambda _, table: grouped_table(table).count(store="kept", name="mine"),
    "table reduce": lambda _, table: grouped_table(table).reduce(add, lambda one, _: one, store="kept", name="mine"),
}


@pytest.mark.parametrize("verb", AGGREGATES)
def test_a_named_aggregate_keeps_its_state_in_the_store(verb: str) -> None:
    builder = StreamsBuilder()
    table = AGGREGATES[verb](builder.stream("in"), builder.table("rows", store="rows-store", name="rows-node"))
    table.to_stream(name="as-stream").to("out")
    topology = builder.build()
    mine = topology.nodes["mine"]
    assert isinstance(mine, ProcessorNode)
    assert mine.stores == ("kept",)
    assert {"rows-node", "as-stream"} < topology.nodes.keys()
    driver = TopologyTestDriver(topology)
    for at in range(3):
        driver.pipe("in", "k", 1, at)
        driver.pipe("rows", "k", 1, at)
        driver.cut()
    assert len(driver.store("kept")) == 1
    assert driver.read("out")[-1].value in (1, 2, 3)
