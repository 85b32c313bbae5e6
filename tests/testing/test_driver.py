"""The test driver: its results, its errors, partitions and repartitions."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import NamedTuple

import pytest

from rewindow import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    TimeWindows,
    Topology,
    key_value_store,
    until_window_closes,
)
from rewindow.streams.metrics import ENFORCED_PROCESSING
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from rewindow.testing.partition_group import InvalidTimestamp
from rewindow.testing.replay import Epoch, LocalReplay
from tests.refusals import refused


def counts() -> Topology:
    """Count by first letter after a repartition, and also forward the records."""
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.group_by(lambda key, _value: key[:1], key=str).count(store="counts").to_stream().to("counts")
    stream.to("copies")
    return builder.build()


def test_a_record_is_read_once() -> None:
    driver = TopologyTestDriver(counts())
    driver.pipe("in", "ab", 1, 5)
    driver.pipe("in", "ac", 1, 6)
    assert [(record.key, record.value, record.timestamp) for record in driver.read("counts")] == [
        ("a", 1, 5),
        ("a", 2, 6),
    ]
    assert driver.read("counts") == []
    assert [topic for topic, _ in driver.read_all()] == ["copies", "copies"]
    assert driver.read_all() == []


def test_a_record_passes_its_repartition_before_the_next_one_starts() -> None:
    driver = TopologyTestDriver(counts(), partitions=3)
    driver.pipe_all(("in", key, 1, 5) for key in ("ab", "bc", "ac"))
    assert [topic for topic, _ in driver.read_all()] == ["copies", "counts"] * 3
    assert {key: stamped.value for key, stamped in driver.store("counts").items()} == {"a": 2, "b": 1}


def test_each_partition_is_a_task_with_its_own_stream_time() -> None:
    builder = StreamsBuilder()
    windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of("10ms", grace="0s"))
    windowed.count(store="counts").suppress(until_window_closes()).to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), partitions=2)
    quiet, busy = "a", "b"
    assert partition_of(quiet, 2) == partition_of(busy, 2) == 1
    other = next(key for key in "cdefgh" if partition_of(key, 2) == 0)
    driver.pipe("in", quiet, None, 1)
    driver.pipe("in", other, None, 50)
    assert driver.read("out") == []
    driver.pipe("in", busy, None, 50)
    assert [record.key.key for record in driver.read("out")] == ["a"]


def test_unknown_topics_and_stores_are_reported() -> None:
    driver = TopologyTestDriver(counts())
    with refused("driver-topic-not-read", topic="out", topics="in"):
        driver.pipe("out", "k", None, 1)
    with refused("driver-topic-not-read", topic="counts-repartition"):
        driver.pipe("counts-repartition", "k", None, 1)
    with refused("driver-topic-not-written", topic="in", topics="copies, counts"):
        driver.read("in")
    with refused("driver-store-unknown", store="nothing", stores="counts"):
        driver.store("nothing")


def test_a_finished_driver_takes_no_more_records() -> None:
    driver = TopologyTestDriver(counts())
    driver.finish()
    for action in (
        driver.cut,
        driver.finish,
        lambda: driver.pipe("in", "k", None, 1),
        lambda: driver.advance_wall_clock("1ms"),
    ):
        with refused("driver-already-finished"):
            action()


def test_a_watermark_releases_waiting_records() -> None:
    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).to("out")
    driver = TopologyTestDriver(builder.build(), max_task_idle_ms=1000)
    for timestamp in (5, 9, 3):
        driver.pipe("a", "k", timestamp, timestamp)
    assert driver.read("out") == []
    driver.advance_watermark(8)
    assert [record.value for record in driver.read("out")] == [5]
    driver.advance_watermark(9)
    assert [record.value for record in driver.read("out")] == [9, 3]
    with refused("watermark-goes-back", watermark=9, given=8):
        driver.advance_watermark(8)


def test_waiting_is_counted_when_it_ends_without_data() -> None:
    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).to("out")
    driver = TopologyTestDriver(builder.build(), max_task_idle_ms=10)
    driver.pipe("a", "k", 1, 1)
    driver.advance_wall_clock(timedelta(milliseconds=10))
    assert [row["total"] for row in driver.metrics if row["name"] == ENFORCED_PROCESSING] == [1]
    assert driver.wall_clock_ms == 10


@pytest.mark.parametrize(("policy", "timestamps"), [("skip", [7, 3]), ("partition_time", [7, 3, 7])])
def test_invalid_timestamps_by_policy(policy: str, timestamps: list[int]) -> None:
    driver = TopologyTestDriver(counts(), invalid_timestamp=InvalidTimestamp(policy))
    for timestamp in (7, 3, -5):
        driver.pipe("in", "k", 1, timestamp)
    assert [record.timestamp for record in driver.read("copies")] == timestamps
    with refused("record-timestamp-negative"):
        TopologyTestDriver(counts()).pipe("in", "k", 1, -5)


def test_a_cut_changes_nothing_but_the_tasks() -> None:
    # A wall clock that follows the records is measured once per epoch, and so once per cut.
    semantics = Semantics(wall_clock="run")
    whole, cut = (TopologyTestDriver(counts(), partitions=2, semantics=semantics) for _ in range(2))
    for number in range(12):
        for driver in (whole, cut):
            driver.pipe("in", f"{'abc'[number % 3]}{number}", number, number)
        cut.cut()
    whole.cut()
    assert whole.read_all() == cut.read_all()
    assert whole.checkpoints() == cut.checkpoints()
    assert whole.metrics == cut.metrics


class Ticking(Processor):
    """Forwards a record at each punctuation of the wall clock."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("5s", PunctuationType.WALL_CLOCK_TIME, self.tick, name="tick")

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", now_ms))


@pytest.mark.parametrize("semantics", [None, Semantics(wall_clock="run"), Semantics(stream_time_from="watermark")])
def test_the_wall_clock_is_that_of_a_job_with_the_same_semantics(semantics: Semantics | None) -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Ticking, name="p").to("out")
    topology, times = builder.build(), range(2_000, 130_000, 7_000)
    driver, job = TopologyTestDriver(topology, semantics=semantics), LocalReplay(topology, semantics=semantics)
    for timestamp in times:
        driver.pipe("in", "k", None, timestamp)
    driver.advance_watermark(200_000)
    job.run([Epoch(tuple(("in", "k", None, timestamp) for timestamp in times), 200_000)])
    fired = [record.value for record in driver.read("out")]
    assert fired == [sent.record.value for sent in job.sent]
    assert len(fired) == (0 if semantics and semantics.wall_clock == "run" else 39)


class Scheduling(Processor):
    """Makes schedules in `init` and at the first record."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("5s", PunctuationType.STREAM_TIME, self.first, name="first")
        context.schedule("5s", PunctuationType.STREAM_TIME, self.on_grid, name="grid", start_time="0s")
        context.schedule("5s", PunctuationType.STREAM_TIME, self.on_grid, name="shifted", time_shift="1s")
        context.schedule("5s", PunctuationType.WALL_CLOCK_TIME, self.on_grid, name="wall")

    def process(self, record: Record) -> None:
        self.context.schedule("5s", PunctuationType.STREAM_TIME, self.later, name="later")
        self.context.forward(record)

    def first(self, now_ms: int) -> None: ...
    def on_grid(self, now_ms: int) -> None: ...
    def later(self, now_ms: int) -> None: ...


def test_a_schedule_that_is_not_on_kafkas_grid_is_named_once() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Scheduling, name="p").to("out")
    with pytest.warns(UserWarning, match="p: first$"):
        driver = TopologyTestDriver(builder.build(), partitions=2)
    with pytest.warns(UserWarning, match="p: later$"):
        driver.pipe("in", "k", None, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        driver.pipe("in", "k", None, 2)
        driver.cut()
        driver.pipe("in", "k", None, 3)


class Order(NamedTuple):
    item: str
    amount: int | None


@pytest.mark.parametrize("store", ["orders", key_value_store("orders", value=Order)])
def test_a_named_tuple_is_a_row_of_the_log(store):
    builder = StreamsBuilder()
    builder.table("in", store=store).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "k", Order("x", None), 0)
    driver.cut()
    assert driver.store("orders") == {"k": (("x", None), 0)}
    assert driver.read("out")[0].value == Order("x", None)


def test_a_row_of_a_log_is_taken_where_its_fields_are_declared():
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.reduce(lambda sum_, order: Order(sum_.item, sum_.amount + order.amount), store="sums", value=Order)
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "k", Order("x", 1), 0)
    assert driver.store("sums")["k"].value.__class__ is Order
    driver.pipe("in", "k", Order("y", 2), 1)
    assert driver.store("sums") == {"k": (Order("x", 3), 1)}
