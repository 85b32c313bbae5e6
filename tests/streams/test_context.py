"""The processor context: forwarding, timestamps, metadata and stores."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    RecordMetadata,
    StreamsBuilder,
    To,
    window_store,
)
from rewindow.errors import DataError
from rewindow.testing import TopologyTestDriver
from tests.refusals import Refusal, containing, refused
from tests.streams.one_processor import STREAM, WALL, Action, doing, driver, sent


def test_forwarding_is_depth_first_in_the_order_of_children() -> None:
    def action(context: ProcessorContext, record: Record) -> None:
        context.forward(record.with_value("1").with_timestamp(15))
        context.forward(record.with_value("2"))
        context.forward(record.with_value("3"), to=To.child("c2"))

    one = driver(doing(action))
    one.pipe("in", "k", None, 10)
    assert sent(one) == [("c1:1", 15), ("c2:1", 15), ("c1:2", 10), ("c2:2", 10), ("c2:3", 10)]


def test_a_timestamp_comes_from_to_or_the_record_or_the_input() -> None:
    def action(context: ProcessorContext, _record: Record) -> None:
        context.forward(Record("k", "a", 5), to=To.child("c1").with_timestamp(7))
        context.forward(Record("k", "b", 5), to=To.child("c1"))
        context.forward(Record("k", "c"), to=To.child("c1"))

    one = driver(doing(action))
    one.pipe("in", "k", None, 10)
    assert sent(one) == [("c1:a", 7), ("c1:b", 5), ("c1:c", 10)]


def test_a_timestamp_holds_for_the_branch_it_was_given_to_only() -> None:
    class Below(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(Record(record.key, self.context.timestamp))

    def action(context: ProcessorContext, record: Record) -> None:
        context.forward(record, to=To.all().with_timestamp(99))
        context.forward(record.with_value(context.timestamp))

    builder = StreamsBuilder()
    builder.stream("in").process(doing(action), name="p").process(Below, name="below").to("out")
    one = TopologyTestDriver(builder.build())
    one.pipe("in", "k", None, 10)
    assert sent(one) == [(99, 99), (10, 10)]


@pytest.mark.parametrize(
    ("action", "refusal"),
    [
        (
            lambda context, record: context.forward(record, to=To.child("nope")),
            refused("child-unknown", child="'nope'", children="c1, c2"),
        ),
        (lambda context, record: context.forward(record.with_timestamp(-1)), refused("forward-timestamp-invalid")),
        (
            lambda context, record: context.forward(record, to=To.all().with_timestamp(-2)),
            refused("target-timestamp-invalid"),
        ),
        (lambda _context, record: 1 // record.value, refused("node-failed", error=containing("ZeroDivisionError"))),
        (lambda context, _record: context.store("other"), refused("store-not-connected", store="other")),
    ],
)
def test_an_error_names_node_and_record(action: Action, refusal: Refusal) -> None:
    one = driver(doing(action))
    with refusal as raised:
        one.pipe("in", "k", 0, 10)
    assert "in offset 0" in str(raised.value)


def test_metadata_is_that_of_the_record_and_nothing_in_a_punctuation() -> None:
    seen: list[RecordMetadata] = []

    class Looking(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule("10ms", STREAM, self.look)
            context.schedule("10ms", WALL, self.look)

        def process(self, _record: Record) -> None:
            self.look(0)

        def look(self, _now_ms: int) -> None:
            seen.append(self.context.record_metadata)

    one = driver(Looking)
    one.pipe("in", "a", None, 3)
    one.advance_wall_clock("10ms")
    assert seen == [RecordMetadata("in", 0, 0), RecordMetadata(None, -1, -1), RecordMetadata(None, -1, -1)]


def test_stores_keep_what_fields_forget() -> None:
    class Counting(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            self.field = 0
            self.seen = context.store("seen")

        def process(self, record: Record) -> None:
            self.field += 1
            self.seen.put(record.key, (self.seen.get(record.key) or 0) + 1)
            self.context.forward(record.with_value((self.field, self.seen.get(record.key))), to=To.child("c1"))

    one = driver(Counting)
    for _ in range(2):
        one.pipe("in", "k", None, 1)
        one.cut()
    assert [value for value, _ in sent(one)] == ["c1:(1, 1)", "c1:(1, 2)"]
    assert one.store("seen") == {"k": 2}


@pytest.mark.parametrize("timestamp", [True, 10.0, "10", -1])
@pytest.mark.parametrize("by", ["record", "to"])
def test_an_invalid_timestamp_is_rejected_at_its_node(timestamp: Any, by: str) -> None:
    def action(context: ProcessorContext, record: Record) -> None:
        if by == "to":
            context.forward(record, to=To(timestamp=timestamp))
        context.forward(record.with_timestamp(timestamp))

    with pytest.raises(
        DataError, match=rf"p forwarded .* timestamp {timestamp!r} .*int of epoch milliseconds.*in offset 0"
    ):
        driver(doing(action)).pipe("in", "k", None, 10)
    with refused("target-timestamp-invalid"):
        To.all().with_timestamp(timestamp)


def test_a_received_record_always_has_a_timestamp() -> None:
    one = driver(doing(lambda context, record: context.forward(Record(record.key, record.timestamp + 1))))
    one.pipe("in", "k", None, 10)
    assert sent(one) == [("c1:11", 10), ("c2:11", 10)]


def test_records_that_a_window_store_expired_are_in_the_metrics() -> None:
    class Late(Processor):
        def process(self, record: Record) -> None:
            self.context.store("hours").put(record.key, 1, record.timestamp)

    builder = StreamsBuilder()
    builder.stream("in").process(Late, name="p", stores=[window_store("hours", size="10ms", retention="10ms")])
    one = TopologyTestDriver(builder.build())
    for timestamp in (100, 90, 95, 80):
        one.pipe("in", "k", None, timestamp)
    lost = [row for row in one.metrics if row["level"] == "store"]
    assert [(row["node"], row["name"], row["reason"], row["total"]) for row in lost] == [
        ("hours", "expired-window-record-drop", "window-expired", 2)
    ]


def test_a_value_that_a_store_rejects_names_node_and_record() -> None:
    one = driver(doing(lambda context, record: context.store("seen").put(record.key, object())))
    record = r"The record: {\"key\":\"k\",\"value\":null}$"
    with pytest.raises(
        DataError, match=rf"store 'seen', key 'k': .* \[at in offset 0, partition 0, node 'p'\] {record}"
    ):
        one.pipe("in", "k", None, 10)


def test_a_record_has_a_topic_and_a_punctuation_has_none() -> None:
    class Says(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule("1ms", PunctuationType.STREAM_TIME, self.punctuate)

        def process(self, record: Record) -> None:
            self.context.forward(record.with_value(self.context.topic))

        def punctuate(self, now_ms: int) -> None:
            self.context.forward(Record("fired", self.context.topic, now_ms))

    builder = StreamsBuilder()
    builder.stream("in").process(Says, name="says").to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "k", "v", 1)
    assert [(record.key, record.value) for record in driver.read("out")] == [("k", "in"), ("fired", None)]
