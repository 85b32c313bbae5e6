"""Error policies of joins: a retried join leaves its stores as if it had not failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rewindow import (
    JoinWindows,
    Record,
    StreamsBuilder,
    Topology,
    key_value_store,
    versioned_store,
)
from rewindow.dsl.operators.foreign_key_join import Answer, ForeignKeyJoin, Sent
from rewindow.dsl.operators.table_join import ValueJoiner
from rewindow.errors import ConfigError
from rewindow.streams.error_policy import check_policies
from rewindow.streams.settings import OnError
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.testing import TopologyTestDriver


class Shaky:
    """A joiner that fails in one of its calls."""

    fails_at = 0

    def __call__(self, *values: Any) -> str:
        self.fails_at -= 1
        if self.fails_at == 0:
            raise ValueError("once")
        return "&".join(map(str, values))


def stream_join(builder: StreamsBuilder, join: Shaky) -> None:
    one, other = builder.stream("one"), builder.stream("other")
    one.outer_join(other, join, JoinWindows.of("5ms", grace="5ms"), name="near").to("out")


def late_lookup(builder: StreamsBuilder, join: Shaky) -> None:
    table = builder.table("other", store=versioned_store("rows", history="50ms"))
    builder.stream("one").left_join(table, join, grace="5ms", name="looked").to("out")


def foreign_key(builder: StreamsBuilder, join: Shaky) -> None:
    one, other = builder.table("one", store="left"), builder.table("other", store="right")
    one.left_join(other, join, foreign_key=lambda _key, _value: "k", store="named").to_stream().to("out")


STORY = [
    *[("one", "a", 1), ("other", "x", 2), ("one", "b", 4), ("one", "c", 9), ("other", None, 9)],
    *[("other", "y", 10), ("one", None, 14), ("one", "d", 14), ("other", "z", 25), ("one", "e", 60)],
]


@pytest.mark.parametrize("build", [stream_join, late_lookup, foreign_key])
@pytest.mark.parametrize("call", range(1, 12))
def test_a_retried_join_has_the_same_results(build: Any, call: int) -> None:
    def played(fails_at: int) -> tuple[Any, ...]:
        join = Shaky()
        builder = StreamsBuilder()
        build(builder, join)
        topology = builder.build()
        driver = TopologyTestDriver(topology, on_error=dict.fromkeys(with_policy(topology), "retry 1"))
        join.fails_at = fails_at
        for number, (topic, value, at) in enumerate(STORY):
            driver.pipe(topic, "k", value, at)
            if number == 6:
                driver.cut()
        return driver.read("out"), driver.checkpoints(), driver.metrics, driver.dropped

    assert played(call) == played(0)


def with_policy(topology: Topology) -> Iterator[str]:
    """Yield the nodes that may have a policy."""
    for node in topology.nodes:
        with suppress(ConfigError):
            check_policies(topology, {node: OnError(1)})
            yield node


def test_an_early_answer_survives_a_retry_of_its_update() -> None:
    join, sent = Shaky(), []
    stores = {name: KeyValueStore(key_value_store(name)) for name in ("copy", "results")}
    node = ForeignKeyJoin(ValueJoiner(join, with_key=False), "copy", "results", keeps_left=False)()
    node.init(cast("Any", SimpleNamespace(store=stores.get, forward=sent.append)))
    node.process(Record("k", Answer(1, True, False, "right"), 5))
    join.fails_at = 1
    for _ in range(2):
        with suppress(ValueError):
            node.process(Record("k", Sent(1, True, "left", False), 5))
    assert [record.value.new for record in sent] == ["left&right"]
