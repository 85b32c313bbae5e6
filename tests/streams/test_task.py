"""The task: stream time, watermarks, final runs, lateness, and invalid calls."""

from __future__ import annotations

from typing import Any

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology
from rewindow.streams.metrics import PROCESS, RECORD_LATENESS
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay, TopologyTestDriver
from tests.refusals import refused


class Times(Processor):
    """Forwards the clocks."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("10ms", PunctuationType.STREAM_TIME, self.fire)
        context.schedule("10ms", PunctuationType.WALL_CLOCK_TIME, self.fire)

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(("record", self.context.stream_time_ms, self.context.wall_clock_ms)))

    def fire(self, now_ms: int) -> None:
        self.context.forward(Record("fired", (self.context.scheduled_ms, now_ms)))


def times() -> Topology:
    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).process(Times, name="times").to("out")
    return builder.build()


def values(replay: LocalReplay) -> list[Any]:
    return [sent.record.value for sent in replay.sent]


def test_stream_time_is_the_highest_timestamp_taken() -> None:
    driver = TopologyTestDriver(times())
    for topic, timestamp in (("a", 5), ("a", 3), ("b", 9)):
        driver.pipe(topic, "k", None, timestamp)
    sent = [record.value[1] for record in driver.read("out") if record.value[0] == "record"]
    assert sent == [5, 5, 9]


def test_stream_time_may_be_the_smallest_partition_time_as_kip_138_has_it() -> None:
    driver = TopologyTestDriver(times(), semantics=Semantics(stream_time="min", wall_clock="run"))
    for topic, timestamp in (("a", 50), ("b", 9), ("b", 30), ("a", 40), ("b", 70)):
        driver.pipe(topic, "k", None, timestamp)
    sent = [record.value for record in driver.read("out")]
    assert [value[1] for value in sent if value[0] == "record"] == [-1, 9, 30, 30, 50]
    assert [value for value in sent if value[0] != "record"] == [(9, 9), (19, 30), (39, 50)]


def test_the_wall_clock_ends_an_epoch_at_the_watermark() -> None:
    replay = LocalReplay(times())
    replay.run([Epoch((("a", "k", None, 5),), 26)])
    assert values(replay) == [("record", 5, 5), (5, 5), (15, 15), (25, 25)]
    assert replay.task(0, 0).state().wall_clock_ms == 26


def test_stream_time_can_follow_the_watermark() -> None:
    replay = LocalReplay(times(), semantics=Semantics(stream_time_from="watermark", wall_clock="run"))
    replay.run([Epoch((("a", "k", None, 5),), 26), Epoch((), 26)], wall_clock_ms=0)
    assert values(replay) == [("record", 5, -1), (5, 5), (15, 26)]


def test_a_final_run_fires_each_schedule_once_more_at_its_next_due_time() -> None:
    replay = LocalReplay(times())
    replay.run([Epoch((("a", "k", None, 5),)), Epoch(is_final=True)])
    assert values(replay)[2:] == [(15, 15), (15, 15)]
    assert [schedule for schedule in replay.task(0, 0).state().schedules if not schedule.is_cancelled] == []


def test_lateness_is_counted_for_every_record() -> None:
    driver = TopologyTestDriver(times())
    for timestamp in (5, 3, 9, 2):
        driver.pipe("a", "k", None, timestamp)
        driver.cut()
    counted = {row["name"]: row for row in driver.metrics if row["level"] == "task"}
    lateness = counted[RECORD_LATENESS]
    assert (lateness["count"], lateness["total"], lateness["minimum"], lateness["maximum"]) == (4, 9, 0, 7)
    assert counted[PROCESS]["total"] == 4


def test_events_out_of_order_are_rejected() -> None:
    replay = LocalReplay(times())
    task = replay.task(0, 0)
    with refused("event-order-violated", topic="a", offset=1):
        task.replay([(9, 0, 0, 9, "k", None), (8, 0, 1, 8, "k", None)])


def test_offsets_and_outputs_are_counted_across_runs() -> None:
    replay = LocalReplay(times())
    for number in range(3):
        replay.run([Epoch((("a", "k", None, number), ("b", "k", None, number)))])
    state = replay.task(0, 0).state()
    assert state.offsets == {"a": 3, "b": 3}
    assert state.emitted["out"] == len(replay.sent)
    assert [sent.offset for sent in replay.sent] == list(range(len(replay.sent)))
    assert [sent.epoch for sent in replay.sent] == sorted(sent.epoch for sent in replay.sent)
