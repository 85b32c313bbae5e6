"""Bugs that a review found, each as one run compared with many: small cases that random data rarely hit."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, To, Topology
from rewindow.errors import DataError
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from tests.refusals import refused

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME


def topology(supplier: Callable[[], Processor]) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").process(supplier, name="node").to("out")
    return builder.build()


def rows(made: Topology, epochs: list[Epoch], *, runs: bool, partitions: int = 1, **semantics: str) -> list[Any]:
    replay = LocalReplay(made, partitions=partitions, semantics=Semantics(**semantics))
    for some in [[epoch] for epoch in epochs] if runs else [epochs]:
        replay.run(some)
    return [(sent.record.key, sent.record.value, sent.record.timestamp) for sent in replay.sent]


def one_and_many(made: Topology, epochs: list[Epoch], **semantics: str) -> list[Any]:
    one, many = (rows(made, epochs, runs=runs, **semantics) for runs in (False, True))
    assert one == many
    return one


def epoch(*timestamps: int) -> Epoch:
    return Epoch(tuple(("in", "k", number, timestamp) for number, timestamp in enumerate(timestamps)))


class Word(StrEnum):
    A = "a"


class Arguments(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        shared: list[int] = []
        for name in ("one", "two"):
            context.schedule("10ms", STREAM, self.tick, name=name, args=(shared, Word.A))

    def tick(self, now_ms: int, shared: list[int], word: str) -> None:
        shared.append(now_ms)
        self.context.forward(Record("tick", (len(shared), type(word).__name__)))


def test_schedule_arguments_are_the_same_with_and_without_a_restart() -> None:
    ticks = one_and_many(topology(Arguments), [epoch(10), epoch(20), epoch(30)])
    assert {value for _, value, _ in ticks} == {(1, "str")}


class InInit(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        if context.stream_time_ms >= 0:
            context.forward(Record("init", (context.timestamp, tuple(context.record_metadata), context.scheduled_ms)))

    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_init_sees_nothing_of_the_epoch_before() -> None:
    sent = one_and_many(topology(InInit), [epoch(10, 7), epoch(20)])
    assert ("init", (10, (None, -1, -1), -1), 10) in sent


def test_nothing_is_forwarded_or_scheduled_in_close() -> None:
    class Forwards(InInit):
        def close(self) -> None:
            self.context.forward(Record("late", 1, 5))

    class Schedules(InInit):
        def close(self) -> None:
            self.context.schedule("1ms", STREAM, self.close)

    for supplier, said in ((Forwards, r"forwards 'late' in close\(\)"), (Schedules, r"schedules in close\(\)")):
        with pytest.raises(DataError, match=said):
            rows(topology(supplier), [epoch(1)], runs=False)


def test_a_stream_is_found_by_its_topic_not_by_a_node_of_that_name() -> None:
    builder = StreamsBuilder()
    builder.stream("a").group_by_key().count(store="events").to_stream().to("counts")
    with refused("named-twice", kind="nodes", name="events"):
        builder.stream("events")


def test_a_jump_of_the_clock_comes_after_the_records_of_the_run() -> None:
    class Ticks(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule("200ms", WALL, self.tick)

        def process(self, record: Record) -> None:
            self.context.forward(record)

        def tick(self, now_ms: int) -> None:
            self.context.forward(Record("k", "tick"))

    builder = StreamsBuilder()
    builder.stream("in").process(Ticks, name="ticks").repartition(name="again").to("out")
    replay = LocalReplay(builder.build(), semantics=Semantics(wall_clock="run"))
    replay.run([epoch(10)], wall_clock_ms=100)
    replay.run([epoch(250, 300)], wall_clock_ms=500)
    assert [sent.record.value for sent in replay.sent] == [0, 0, 1, "tick"]


def test_a_stream_merged_with_itself_has_every_record_twice() -> None:
    for make in (lambda s: s, lambda s: s.filter(lambda _key, _value: True)):
        builder = StreamsBuilder()
        stream = make(builder.stream("in"))
        stream.merge(stream).to("out")
        assert len(rows(builder.build(), [epoch(1)], runs=False)) == 2


def test_a_timestamp_is_put_back_when_a_child_fails_and_the_caller_goes_on() -> None:
    class Catches(Processor):
        def process(self, record: Record) -> None:
            with pytest.raises(ValueError, match="no"):
                self.context.forward(Record("bad", 1), to=To.all().with_timestamp(500))
            self.context.forward(Record("after", 2))

    def refuse(key: Any, _value: Any) -> bool:
        if key == "bad":
            raise ValueError("no")
        return True

    builder = StreamsBuilder()
    builder.stream("in").process(Catches, name="catches").filter(refuse).to("out")
    assert rows(builder.build(), [epoch(7)], runs=False) == [("after", 2, 7)]


def test_a_shared_processor_is_refused() -> None:
    shared = InInit()
    with refused("supplier-result-reused"):
        rows(topology(lambda: shared), [epoch(1)], runs=False)


class ReArms(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("10ms", STREAM, self.tick, name="tick", time_shift="0s")

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", now_ms))
        self.context.schedule("10ms", STREAM, self.tick, name="tick", time_shift="0s")


def test_a_shifted_schedule_that_arms_itself_again_goes_on() -> None:
    ticks = one_and_many(topology(ReArms), [epoch(26), epoch(30), epoch(40, 41), epoch(55)])
    assert [value for _, value, _ in ticks] == [30, 40, 55]


class Private(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("10ms", STREAM, self.__tick)

    def __tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", now_ms))


def test_a_private_method_is_a_callback_like_any_other() -> None:
    assert len(one_and_many(topology(Private), [epoch(1), epoch(11), epoch(21)])) == 3


class Churn(Processor):
    def process(self, record: Record) -> None:
        self.context.schedule("1h", STREAM, self.never).cancel()

    def never(self, now_ms: int) -> None:
        raise AssertionError(now_ms)


def test_cancelled_schedules_do_not_pile_up() -> None:
    replay = LocalReplay(topology(Churn))
    replay.run([epoch(*range(5000))], restarts=False)
    assert len(replay.task(0, 0).task_context.schedules._known) <= 512


def test_the_end_of_time_is_no_timestamp() -> None:
    class Says(Processor):
        def on_watermark(self, watermark_ms: int) -> None:
            self.context.forward(Record("end", 1))

    sent = rows(topology(Says), [epoch(7), Epoch(is_final=True)], runs=False)
    assert sent == [("end", 1, 7)]


def test_words_that_semantics_does_not_know_are_refused() -> None:
    with refused("semantics-word-unknown", option="stream_time_from", words="records, watermark", given="'watermarks'"):
        Semantics(stream_time_from="watermarks")


def test_an_annotation_without_columns_is_kept_as_json() -> None:
    def words(value: int) -> object:
        return [value]

    builder = StreamsBuilder()
    builder.stream("in").map_values(words).to("out")
    assert rows(builder.build(), [epoch(3)], runs=False) == [("k", [0], 3)]
