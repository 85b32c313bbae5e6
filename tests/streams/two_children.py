"""One node with two children, and the records that they received."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewindow import (
    KStream,
    StreamsBuilder,
)
from rewindow.testing import TopologyTestDriver

Made = Callable[[KStream], KStream]


def driver(verb: Made) -> TopologyTestDriver:
    """Return a driver of one node with the children ``left`` and ``right``, which add their names to values."""
    builder = StreamsBuilder()
    stream = verb(builder.stream("in"))
    children = [stream.map_values(lambda value, n=name: (n, value), name=name) for name in ("left", "right")]
    children[0].merge(children[1]).to("out")
    return TopologyTestDriver(builder.build())


def sent(by: TopologyTestDriver) -> list[tuple[Any, ...]]:
    return [(r.key, *r.value, r.timestamp) for r in by.read("out")]
