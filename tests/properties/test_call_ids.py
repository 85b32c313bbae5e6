"""L2 for random numbers, UUIDs and idempotency keys: cuts, batches and restarts do not change them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology, key_value_store
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples


class Drawing(Processor):
    """Draws numbers and ids in every callback: for records, punctuations of both clocks, and at an epoch's end."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.store = context.store("seen")
        context.schedule("7ms", PunctuationType.STREAM_TIME, self.tell)
        context.schedule("5ms", PunctuationType.WALL_CLOCK_TIME, self.tell, name="wall")

    def process(self, record: Record) -> None:
        for _ in range(self.context.random().randint(1, 3)):
            self._draw()
        if self.context.random().random() < 0.3:
            self.context.schedule("11ms", PunctuationType.STREAM_TIME, self.tell).cancel()

    def tell(self, now_ms: int) -> None:
        self._draw()

    def on_watermark(self, watermark_ms: int) -> None:
        self._draw()

    def _draw(self) -> None:
        context = self.context
        value = (context.uuid(), context.idempotency_key(), context.random().getrandbits(64))
        self.store.put(value[0], value[1])
        context.forward(Record(value[1], value))


class Below(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_value((*record.value, self.context.uuid())))


def topology() -> Topology:
    builder = StreamsBuilder()
    made = builder.stream("left").merge(builder.stream("right"))
    drawn = made.process(Drawing, name="draw", stores=[key_value_store("seen")])
    drawn.process(Below, name="below").to("out")
    drawn.repartition(name="again").process(Below, name="far").to("far")
    return builder.build()


def replayed(given_epochs: list[Epoch], *, size: int, semantics: Semantics, **varied: Any) -> tuple[Any, ...]:
    replay = LocalReplay(topology(), partitions=2, semantics=semantics)
    for start in range(0, len(given_epochs), size):
        replay.run(given_epochs[start : start + size], **varied)
    return replay.sent, replay.checkpoints(), replay.metrics


@given(
    epochs(("left", "right")),
    st.sampled_from(["records", "watermark"]),
    st.sampled_from(["open", "sealed"]),
    st.integers(1, 3),
    st.integers(1, 4),
)
@examples(80)
def test_cuts_change_nothing(given_epochs: list[Epoch], follows: str, end: str, size: int, batch: int) -> None:
    if end == "sealed":
        given_epochs = [*given_epochs, Epoch(watermark_ms=given_epochs[-1].watermark_ms, is_final=True)]
    semantics = Semantics(stream_time_from=follows, wall_clock="stream_time")
    whole = replayed(given_epochs, size=len(given_epochs), semantics=semantics, restarts=False)
    assert replayed(given_epochs, size=size, semantics=semantics, batch=batch) == whole
    values = [row.record.value for row in whole[0]]
    ids = [value[index] for value in values for index in (0, 3)]
    firsts = {(row.topic, value[0]) for row, value in zip(whole[0], values, strict=True)}
    assert len(firsts) == len(values), "each call has a distinct id"
    assert len(set(ids)) == len(values) + len(values) // 2, "the nodes below draw distinct ids too"
