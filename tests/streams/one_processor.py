"""One processor with two children and a store, for tests of its context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewindow import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Topology,
    key_value_store,
)
from rewindow.testing import TopologyTestDriver

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME
Action = Callable[[ProcessorContext, Record], None]


def driver(supplier: Callable[[], Processor], **settings: Any) -> TopologyTestDriver:
    """Return a driver of one processor with the children c1 and c2, which prefix values with their names."""
    return TopologyTestDriver(topology(supplier), **settings)


def topology(supplier: Callable[[], Processor]) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in").process(supplier, name="p", stores=[key_value_store("seen", key=str)])
    children = [stream.map_values(lambda value, n=name: f"{n}:{value}", name=name) for name in ("c1", "c2")]
    children[0].merge(children[1]).to("out")
    return builder.build()


def doing(action: Action) -> Callable[[], Processor]:
    class Doing(Processor):
        def process(self, record: Record) -> None:
            action(self.context, record)

    return Doing


def sent(by: TopologyTestDriver) -> list[tuple[Any, int | None]]:
    return [(record.value, record.timestamp) for record in by.read("out")]
