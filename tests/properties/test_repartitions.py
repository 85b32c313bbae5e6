"""D21: the order of an epoch's internal log does not depend on which task ran first."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples

PARTITIONS = 3
LAST = 2**63 - 1


class Crossing(Processor):
    """Forwards every record twice, and one record for each punctuation and each end of an epoch."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("7ms", PunctuationType.STREAM_TIME, self.fire, args=("stream",))
        context.schedule("9ms", PunctuationType.WALL_CLOCK_TIME, self.fire, args=("wall",))

    def process(self, record: Record) -> None:
        for copy in ("first", "second"):
            self.context.forward(Record(record.key, (copy, record.value)))

    def fire(self, now_ms: int, type_: str) -> None:
        self.context.forward(Record(type_, (type_, now_ms, self.context.scheduled_ms)))

    def on_watermark(self, watermark_ms: int) -> None:
        self.context.forward(Record("end", ("end", watermark_ms)))


class Arriving(Processor):
    """Forwards each record with its offset in the internal log."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value((record.value, self.context.record_metadata.offset)))


def topology(*, is_busy: bool) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    if is_busy:
        stream = stream.process(Crossing, name="crossing")
    stream = stream.map(lambda key, value: ("all", (key, value))).repartition(name="all")
    stream.process(Arriving, name="arriving").to("out")
    return builder.build()


@given(epochs(["in"], keys=list("abcdef")))
@examples(80)
def test_records_cross_in_the_order_of_running_maximum_task_and_number(given_epochs: list[Epoch]) -> None:
    replay = LocalReplay(topology(is_busy=False), partitions=PARTITIONS)
    replay.run(given_epochs, backwards=True)
    arrived: list[tuple[Any, Any]] = []
    for epoch in given_epochs:
        emitted = []
        numbers: dict[int, int] = defaultdict(int)
        for _, key, value, timestamp in epoch.records:
            task = partition_of(key, PARTITIONS)
            maximum = max(t for _, k, _, t in seen(epoch, numbers, task, timestamp))
            numbers[task] += 1
            emitted.append(((maximum, task, numbers[task]), (key, value)))
        arrived += [what for _, what in sorted(emitted)]
    assert [sent.record.value[0] for sent in replay.sent] == arrived
    assert [sent.record.value[1] for sent in replay.sent] == list(range(len(arrived)))


def seen(epoch: Epoch, numbers: dict[int, int], task: int, timestamp: int) -> list[tuple[str, Any, Any, int]]:
    """Return the task's records up to and including its next one."""
    mine = [record for record in epoch.records if partition_of(record[1], PARTITIONS) == task]
    assert mine[numbers[task]][3] == timestamp
    return mine[: numbers[task] + 1]


@given(
    epochs(["in"], keys=list("abcdef")),
    st.builds(Semantics, stream_time_from=st.sampled_from(["records", "watermark"])),
    st.sampled_from(["open", "sealed"]),
)
@examples(80)
def test_which_task_ran_first_makes_no_difference(given_epochs: list[Epoch], semantics: Semantics, end: str) -> None:
    if end == "sealed":
        given_epochs = [*given_epochs, Epoch(watermark_ms=given_epochs[-1].watermark_ms, is_final=True)]
    forwards = LocalReplay(topology(is_busy=True), partitions=PARTITIONS, semantics=semantics)
    forwards.run(given_epochs)
    backwards = LocalReplay(topology(is_busy=True), partitions=PARTITIONS, semantics=semantics)
    backwards.run(given_epochs, backwards=True)
    assert forwards.sent == backwards.sent


def test_what_the_end_of_an_epoch_sends_comes_last() -> None:
    records = tuple(("in", key, number, 5 * number) for number, key in enumerate("abcdef"))
    replay = LocalReplay(
        topology(is_busy=True), partitions=PARTITIONS, semantics=Semantics(stream_time_from="watermark")
    )
    replay.run([Epoch(records, 40), Epoch(watermark_ms=40, is_final=True)])
    for epoch in (0, 1):
        kinds = [sent.record.value[0][0] for sent in replay.sent if sent.epoch == epoch]
        ends = [index for index, kind in enumerate(kinds) if kind == "end"]
        records_and_clock = [index for index, kind in enumerate(kinds) if kind not in ("end", "stream")]
        assert len(ends) >= PARTITIONS
        assert not records_and_clock or max(records_and_clock) < min(ends)
