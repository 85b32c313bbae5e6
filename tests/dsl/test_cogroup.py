"""`cogroup` (KIP-150): several streams, each with its own aggregator, make one table. The rows are Kafka's unless stated."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    CogroupedKStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    UnlimitedWindows,
    until_window_closes,
)
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.dsl.windowed import counted, told
from tests.refusals import refused

TEN = TimeWindows.of("10ms", grace="0s")


def tagged(tag: str) -> Any:
    return lambda _key, value, text: f"{text}{tag}{value}"


def texts(cogrouped: CogroupedKStream, windows: Any = None) -> KTable:
    """Concatenate values, each with the tag of its stream."""
    if windows is None:
        return cogrouped.aggregate(str, store="texts", value=str)
    windowed = cogrouped.windowed_by(windows)
    if isinstance(windows, SessionWindows):
        return windowed.aggregate(str, lambda _key, one, later: f"{one}{later}", store="texts", value=str)
    return windowed.aggregate(str, store="texts", value=str)


def driver(windows: Any = None, *, finals: bool = False, **settings: Any) -> TopologyTestDriver:
    """Return a driver of the topics x and y, cogrouped."""
    builder = StreamsBuilder()
    x, y = (builder.stream(topic).group_by_key() for topic in ("x", "y"))
    table = texts(x.cogroup(tagged("x")).cogroup(y, tagged("y")), windows)
    (table.suppress(until_window_closes()) if finals else table).to_stream().to("out")
    return TopologyTestDriver(builder.build(), **settings)


def piped(one: TopologyTestDriver, *steps: tuple[str, Any, Any, int]) -> list[str]:
    for step in steps:
        one.pipe(*step)
    return told(one)


def test_the_streams_update_one_aggregate() -> None:
    one = driver()
    for step in (("x", "a", 1, 5), ("y", "a", 2, 3), ("y", "b", 3, 7), ("x", "a", 4, 9)):
        one.pipe(*step)
    sent = [(record.key, record.value, record.timestamp) for record in one.read("out")]
    assert sent == [("a", "x1", 5), ("a", "x1y2", 5), ("b", "y3", 7), ("a", "x1y2x4", 9)]
    assert {key: stamped.value for key, stamped in one.store("texts").items()} == {"a": "x1y2x4", "b": "y3"}


def test_without_windows_null_keys_and_values_are_skipped_and_counted() -> None:
    one = driver()
    for step in (("x", None, 1, 1), ("y", "a", None, 2), ("y", "a", 2, 3)):
        one.pipe(*step)
    assert [(record.key, record.value) for record in one.read("out")] == [("a", "y2")]
    assert counted(one, SKIPPED_RECORDS) == 2


@pytest.mark.parametrize(
    ("windows", "rows"),
    [
        (TEN, ["a[0,10]=x1@1", "a[0,10]=x1y2@4", "a[0,10]=x1y2yNone@4", "a[10,20]=x3@12"]),
        (
            TimeWindows.of("10ms", grace="0s").advance_by("5ms"),
            ["a[0,10]=x1@1", "a[0,10]=x1y2@4", "a[0,10]=x1y2yNone@4", "a[5,15]=x3@12", "a[10,20]=x3@12"],
        ),
        (SessionWindows.of("5ms", grace="0s"), None),
        (SlidingWindows.of("10ms", grace="5ms"), None),
        (
            UnlimitedWindows.of(),
            ["a[0,MAX]=x1@1", "a[0,MAX]=x1y2@4", "a[0,MAX]=x1y2yNone@4", "a[0,MAX]=x1y2yNonex3@12"],
        ),
    ],
    ids=["tumbling", "hopping", "session", "sliding", "unlimited"],
)
def test_a_window_has_the_records_of_all_streams(windows: Any, rows: list[str] | None) -> None:
    sent = piped(driver(windows), ("x", "a", 1, 1), ("y", "a", 2, 4), ("y", "a", None, 4), ("x", "a", 3, 12))
    if isinstance(windows, SessionWindows):
        rows = [
            "a[1,1]=x1@1",
            "a[1,1]=None@1",
            "a[1,4]=x1y2@4",
            "a[1,4]=None@4",
            "a[1,4]=x1y2yNone@4",
            "a[12,12]=x3@12",
        ]
    elif isinstance(windows, SlidingWindows):  # which skip null values
        rows = ["a[0,10]=x1@1", "a[2,12]=y2@4", "a[0,10]=x1y2@4", "a[2,12]=y2x3@12", "a[5,15]=x3@12"]
    assert sent == rows


def test_a_session_of_one_stream_is_merged_by_a_record_of_another() -> None:
    sent = piped(driver(SessionWindows.of("5ms", grace="20ms")), ("x", "a", 1, 1), ("x", "a", 2, 11), ("y", "a", 3, 6))
    assert sent == ["a[1,1]=x1@1", "a[11,11]=x2@11", "a[1,1]=None@1", "a[11,11]=None@11", "a[1,11]=x1x2y3@11"]


def test_records_are_aggregated_in_the_order_of_their_timestamps() -> None:
    one = driver()
    one.pipe_all([("x", "a", 1, 1), ("x", "a", 4, 9), ("y", "a", 2, 3), ("y", "a", 3, 5)])
    assert [record.value for record in one.read("out")] == ["x1", "x1y2", "x1y2y3", "x1y2y3x4"]


def test_a_stream_may_be_aggregated_by_two_functions() -> None:
    builder = StreamsBuilder()
    x = builder.stream("x")
    texts(x.group_by_key().cogroup(tagged("1:")).cogroup(x.group_by_key(), tagged("2:"))).to_stream().to("out")
    one = TopologyTestDriver(builder.build())
    one.pipe("x", "a", "v", 1)
    assert [record.value for record in one.read("out")] == ["1:v", "1:v2:v"]


def test_a_rekeyed_stream_crosses_a_repartition_named_after_its_aggregate() -> None:
    builder = StreamsBuilder()
    x, y = builder.stream("x").group_by_key(), builder.stream("y").group_by(lambda _key, value: value[0], key=str)
    texts(x.cogroup(tagged("x")).cogroup(y, tagged("y"))).to_stream().to("out")
    topology = builder.build()
    names = [node["name"] for part in topology.describe() for node in part["nodes"]]
    assert "texts-cogroup-agg-1-repartition-source" in names
    assert names[-5:-2] == ["texts-cogroup-agg-0", "texts-cogroup-agg-1", "texts-cogroup-merge"]
    one = TopologyTestDriver(topology)
    one.pipe("y", "other", "a1", 1)
    one.pipe("x", "a", 2, 2)
    assert [(record.key, record.value) for record in one.read("out")] == [("a", "ya1"), ("a", "ya1x2")]


LATE = (("x", "a", 1, 1), ("y", "b", 2, 3), ("x", "a", 3, 25), ("y", "a", 4, 4), ("y", "a", 5, 12))


def test_a_record_that_is_late_only_by_the_clock_of_another_stream_is_aggregated_as_in_kafka() -> None:
    one = driver(TEN)
    assert piped(one, *LATE) == ["a[0,10]=x1@1", "b[0,10]=y2@3", "a[20,30]=x3@25", "a[0,10]=y4@4", "a[10,20]=y5@12"]
    assert (counted(one, LATE_RECORD_DROP), counted(one, EXPIRED_WINDOW_DROP)) == (0, 2)


def test_with_a_longer_retention_the_window_of_such_a_record_goes_on() -> None:
    builder = StreamsBuilder()
    x, y = (builder.stream(topic).group_by_key() for topic in ("x", "y"))
    windowed = x.cogroup(tagged("x")).cogroup(y, tagged("y")).windowed_by(TEN)
    windowed.aggregate(str, store=Materialized.as_("texts", retention="1m"), value=str).to_stream().to("out")
    one = TopologyTestDriver(builder.build())
    assert piped(one, *LATE)[-2:] == ["a[0,10]=x1y4@4", "a[10,20]=y5@12"]
    assert counted(one, EXPIRED_WINDOW_DROP) == 0


def test_there_is_one_final_result_per_window_although_the_streams_are_at_different_times() -> None:
    one = driver(TEN, finals=True)
    assert piped(one, *LATE, ("y", "z", 9, 99)) == ["a[0,10]=x1@1", "b[0,10]=y2@3", "a[20,30]=x3@25"]
    assert counted(one, LATE_RECORD_DROP) == 2


@pytest.mark.parametrize("windows", [TEN, SessionWindows.of("5ms", grace="0s"), SlidingWindows.of("5ms", grace="0s")])
def test_a_watermark_closes_the_windows_of_all_streams_for_a_final_result(windows: Any) -> None:
    one = driver(windows, finals=True, semantics=Semantics(stream_time_from="watermark"))
    one.pipe("x", "a", 1, 1)
    one.advance_watermark(100)
    one.pipe("y", "a", 2, 2)
    one.advance_watermark(200)
    assert [text.split("=")[1] for text in told(one)] == ["x1@1"]
    assert counted(one, LATE_RECORD_DROP) == 1


def test_the_clock_that_the_streams_share_is_in_the_checkpoint() -> None:
    one = driver(TEN, finals=True)
    assert piped(one, *LATE[:3]) == ["a[0,10]=x1@1", "b[0,10]=y2@3"]
    one.cut()
    assert piped(one, *LATE[3:]) == []
    assert counted(one, LATE_RECORD_DROP) == 2


def test_the_type_of_the_aggregate_is_that_of_the_aggregators() -> None:
    def longer(_key: Any, value: Any, total: int) -> int:
        return total + len(value)

    def text(_key: Any, value: Any, total: str) -> str:
        return total + value

    builder = StreamsBuilder()
    x, y = builder.stream("x").group_by_key(), builder.stream("y").group_by_key()
    assert x.cogroup(tagged("")).cogroup(y, longer).aggregate(int, store="lengths").value is int
    with refused("cogroup-types-differ", store="both", types="str, int"):
        x.cogroup(text).cogroup(y, longer).aggregate(int, store="both")


def test_misuse_is_rejected_with_the_fix() -> None:
    builder, other = StreamsBuilder(), StreamsBuilder()
    x = builder.stream("x").group_by_key()
    cogrouped = x.cogroup(tagged("x"))
    numbers = builder.stream("n").group_by(lambda _key, value: value, key=int)
    words = builder.stream("w").group_by(lambda _key, value: value, key=str)
    with refused("cogroup-input-not-grouped"):
        cogrouped.cogroup(builder.stream("y"), tagged("y"))  # type: ignore[arg-type]
    with refused("sides-from-two-builders"):
        cogrouped.cogroup(other.stream("y").group_by_key(), tagged("y"))
    with refused("cogroup-stream-twice"):
        cogrouped.cogroup(x, tagged("y"))
    with refused("join-key-types-differ", left="int", right="str"):
        numbers.cogroup(tagged("n")).cogroup(words, tagged("w"))
    with refused("function-parameters-wrong", arguments="key, value, aggregate"):
        x.cogroup(lambda value: value)  # type: ignore[arg-type, misc]
    with refused("windows-invalid"):
        cogrouped.windowed_by("10m")  # type: ignore[call-overload]
    with refused("function-not-callable"):
        cogrouped.aggregate("", store="s")  # type: ignore[arg-type]
