"""Dropped records are counted by reason and reported with source, node and reason."""

from __future__ import annotations

from typing import Any

from rewindow import Processor, Record, StreamsBuilder, TimeWindows, key_value_store, window_store
from rewindow.streams.metrics import (
    EXPIRED_WINDOW_DROP,
    GRACE_NEEDED,
    LATE_RECORD_DROP,
    RECORD_LATENESS,
    SKIPPED_RECORDS,
)
from rewindow.streams.record import RecordMetadata
from rewindow.streams.task_context import record_text
from rewindow.testing import TopologyTestDriver


def hourly(size: str = "10ms", advance: str = "5ms") -> TopologyTestDriver:
    builder = StreamsBuilder()
    windows = TimeWindows.of(size, grace="0s").advance_by(advance)
    builder.stream("in").group_by_key().windowed_by(windows).count(store="counts").to_stream().to("out")
    return TopologyTestDriver(builder.build())


def counted(driver: TopologyTestDriver) -> dict[tuple[str, str, str], int]:
    return {
        (row["node"], row["name"], row["reason"]): row["total"]
        for row in driver.metrics
        if row["level"] != "task" and row["name"] not in (RECORD_LATENESS, GRACE_NEEDED)
    }


def test_a_late_record_is_reported_once_and_counted_for_each_window() -> None:
    driver = hourly()
    driver.pipe("in", "a", 1, 30)
    driver.pipe("in", "a", 2, 12)
    (late,) = driver.dropped
    assert late.at == RecordMetadata("in", 0, 1)
    assert late[1:] == (12, "counts", "window-closed", '{"key":"a","value":2}')
    assert counted(driver) == {("counts", LATE_RECORD_DROP, "window-closed"): 2}


def test_a_record_that_is_late_for_one_window_only_is_reported() -> None:
    driver = hourly()
    driver.pipe("in", "a", 1, 15)
    driver.pipe("in", "a", 2, 12)  # late for [5, 15), not for [10, 20)
    assert [late.record for late in driver.dropped] == ['{"key":"a","value":2}']
    assert counted(driver)["counts", LATE_RECORD_DROP, "window-closed"] == 1


def test_a_skipped_record_has_a_reason() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", None, 1, 5)
    driver.pipe("in", "a", None, 6)
    assert [(one.reason, one.record) for one in driver.dropped] == [
        ("null-key", '{"key":null,"value":1}'),
        ("null-value", '{"key":"a","value":null}'),
    ]
    assert counted(driver) == {
        ("counts", SKIPPED_RECORDS, "null-key"): 1,
        ("counts", SKIPPED_RECORDS, "null-value"): 1,
    }


def test_a_record_that_a_window_store_has_expired_is_reported() -> None:
    class Keep(Processor):
        def process(self, record: Record) -> None:
            self.context.store("windows").put(record.key, record.value, record.timestamp)

    builder = StreamsBuilder()
    store = window_store("windows", size="10ms", retention="20ms")
    builder.stream("in").process(Keep, name="keep", stores=[store]).to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", 1, 50)
    driver.pipe("in", "a", 2, 30)
    (lost,) = driver.dropped
    assert (lost.at.offset, lost.timestamp, lost.node, lost.reason) == (1, 30, "windows", "window-expired")
    assert counted(driver) == {("windows", EXPIRED_WINDOW_DROP, "window-expired"): 1}


def test_a_processor_can_drop_records() -> None:
    class Strict(Processor):
        def process(self, record: Record) -> None:
            if record.value < 0:
                self.context.drop(record, SKIPPED_RECORDS, reason="negative")
            else:
                self.context.forward(record)

    builder = StreamsBuilder()
    builder.stream("in").process(Strict, name="strict", stores=[key_value_store("none")]).to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", -1, 50)
    assert driver.read("out") == []
    assert [(one.node, one.reason) for one in driver.dropped] == [("strict", "negative")]


def test_an_object_that_cannot_be_encoded_is_named_by_its_class() -> None:
    thing: Any = type("Thing", (), {})()
    assert record_text("a", thing) == '{"key":"a","value":"<Thing>"}'
