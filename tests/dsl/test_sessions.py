"""Sessions: built-in aggregates, reducers and mergers, retention and stores."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    Collect,
    Count,
    Max,
    Mean,
    SlidingWindows,
    StreamsBuilder,
    Sum,
    session_store,
)
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, LATE_RECORD_DROP
from rewindow.streams.record import row_class
from rewindow.testing import TopologyTestDriver
from tests.dsl.windowed import counted, sessions, sliding, texts, told
from tests.refusals import refused


def test_a_session_that_is_expired_when_stored_is_sent_and_counted() -> None:
    driver = texts(sessions(5))
    for key, timestamp in (("b", 5), ("a", 0)):
        driver.pipe("in", key, 1, timestamp)
    assert told(driver) == ["b[5,5]=1@5", "a[0,0]=1@0"]
    assert counted(driver, EXPIRED_WINDOW_DROP) == 1
    assert counted(driver, LATE_RECORD_DROP) == 0
    assert len(driver.store("texts")) == 1


ROW = row_class(("amount", "city"))


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_built_in_aggregates_of_merged_sessions(*, cut: bool) -> None:
    builder = StreamsBuilder()
    parts = {
        "n": Count(),
        "total": Sum("amount"),
        "mean": Mean("amount"),
        "most": Max("amount"),
        "cities": Collect("city"),
    }
    stream = builder.stream("in").map_values(lambda pair: pair and ROW(*pair), value=ROW)
    stream.group_by_key().windowed_by(sessions(5, 100)).aggregate(parts, store="parts").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for value, timestamp in (((4, "x"), 0), ((None, None), 10), ((1, "y"), 20), ((7, None), 5), ((2, "z"), 15)):
        driver.pipe("in", "a", value, timestamp)
        if cut:
            driver.cut()
    assert tuple(driver.read("out")[-1].value) == (5, 14, 3.5, 7, ["x", "y", "z"])


def test_a_reducer_merges_two_sessions_in_order() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(sessions(5, 100))
    grouped.reduce(lambda one, other: f"({one}{other})", store="reduced").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for value, timestamp in (("2", 10), ("1", 0), ("3", 5)):
        driver.pipe("in", "a", value, timestamp)
    assert told(driver)[-1] == "a[0,10]=((12)3)@10"


def test_a_merger_may_modify_its_arguments() -> None:
    def merge(_key: Any, one: list[int], later: list[int]) -> list[int]:
        later[:0] = one
        return later

    def add(_key: Any, value: int, state: list[int]) -> list[int]:
        state.append(value)
        return state

    start: list[int] = []
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(sessions(5, 100))
    grouped.aggregate(lambda: start, add, merge, store="lists", value=list[int]).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for value, timestamp in ((1, 0), (2, 10), (3, 5), (4, 40)):
        driver.pipe("in", "a", value, timestamp)
    assert told(driver)[-2:] == ["a[0,10]=[1, 2, 3]@10", "a[40,40]=[4]@40"]


def test_an_update_carries_the_old_value() -> None:
    """Counted downstream by the key without its window, each session and window counts once (D13)."""
    for windows, total in ((sessions(5, 100), [1, 2, 1, 1, 1]), (sliding(4, 100), [1, 1, 2])):
        builder = StreamsBuilder()
        counts = builder.stream("in").group_by_key().windowed_by(windows).count(store="n")
        counts.group_by(lambda key, value: (key.key, value)).count(store="windows").to_stream().to("out")
        driver = TopologyTestDriver(builder.build())
        for timestamp in (9, 9, 30) if isinstance(windows, SlidingWindows) else (0, 9, 5, 5):
            driver.pipe("in", "a", 1, timestamp)
        assert driver.store("windows")["a"].value == total[-1]


def test_sessions_need_a_merger() -> None:
    grouped = StreamsBuilder().stream("in").group_by_key().windowed_by(sessions(5))
    with refused("session-states-not-mergeable"):
        grouped.aggregate(list, lambda _key, value, state: [*state, value], store="lists")
    with refused("session-states-not-mergeable"):
        grouped.aggregate({"n": Count(), "own": OwnAggregate()}, store="parts")


class OwnAggregate:
    """A user's aggregator, which cannot merge."""

    def start(self) -> int:
        return 0

    def add(self, key: Any, value: Any, state: int) -> int:
        return state + 1

    def result(self, state: int) -> int:
        return state

    def state_type(self, value: Any) -> Any:
        return int

    def result_type(self, value: Any) -> Any:
        return int


def test_sessions_keep_until_as_a_retention() -> None:
    with pytest.warns(DeprecationWarning, match="Materialized"):
        windows = sessions(5).until("1h")
    assert windows.retention_ms == 3_600_000


def test_sessions_in_a_ready_made_store() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(sessions(5))
    grouped.count(store=session_store("n", retention="1d", key=str)).to_stream().to("out")
    topology = builder.build()
    assert (topology.stores["n"].retention_ms, topology.stores["n"].value) == (86_400_000, int)
    driver = TopologyTestDriver(topology)
    for timestamp in (0, 5):
        driver.pipe("in", "a", 1, timestamp)
        driver.cut()
    assert told(driver) == ["a[0,0]=1@0", "a[0,0]=None@0", "a[0,5]=2@5"]
