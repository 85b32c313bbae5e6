"""Random topologies with a processor that takes batches, and the same ones in which it gets one record at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from rewindow import Batch, BatchProcessor, Record, StreamsBuilder, To, Topology, key_value_store
from tests.properties.topologies import Busy, Planned, planned

SECOND = ("none", "apart", "merged", "below")
"""What becomes of the second topic: unread, a branch of its own, also read by the processor, merged with its results."""
BELOW = ("sink", "busy", "busy and sink", "repartition")


@dataclass(frozen=True)
class Batching:
    """A processor that takes batches and uses everything that it may."""

    in_init: tuple[Planned, ...]
    later: Planned
    every: int

    def __call__(self) -> BatchProcessor:
        return _Batching(self)


class _Batching(BatchProcessor):
    def __init__(self, plan: Batching) -> None:
        self.plan = plan

    def init(self, context: Any) -> None:
        self.context = context
        self.seen = context.store("seen")
        for one in self.plan.in_init:
            self.schedule(one)

    def schedule(self, one: Planned) -> None:
        self.context.schedule(
            f"{one.interval_ms}ms",
            one.type,
            self.punctuate,
            name=one.name,
            time_shift=None if one.time_shift_ms is None else f"{one.time_shift_ms}ms",
            start_time=None if one.start_time_ms is None else f"{one.start_time_ms}ms",
            args=(one.name or "nameless",),
        )

    def process_batch(self, batch: Batch) -> None:
        before = dict(zip(keys := [str(key) for key in batch.keys], self.seen.get_many(keys), strict=True))
        outputs = []
        for index, record in enumerate(batch):
            key = str(record.key)
            count = before[key] = (before[key] or 0) + 1
            told = (record.value, count, batch.topic, batch.offsets[index], batch.stream_times_ms[index])
            outputs += [(index, Record(record.key, repr((*told, number)))) for number in range(count % 3)]
            if count % self.plan.every == 0:
                later = To.all().with_timestamp(record.timestamp + 3)
                batch.forward(index, Record(record.key, repr((*told, "later"))), to=later)
                batch.drop(index, "skipped-records", reason="every")
            if count % self.plan.every == 1 and self.plan.in_init and (name := self.plan.in_init[0].name):
                self.context.cancellable(name).cancel()
        # The indexes of the calls may fall: outputs leave in the order of their records.
        for index, record in sorted(outputs, key=lambda output: -output[0]):
            batch.forward(index, record)
        odd = [index for index in range(len(batch)) if batch.offsets[index] % 2]
        batch.forward_many(odd, [batch.keys[index] for index in odd], [str(batch.timestamps[index]) for index in odd])
        self.seen.put_many(before)

    def punctuate(self, now_ms: int, name: str) -> None:
        context, fired = self.context, self.seen.get("fired") or 0
        self.seen.put("fired", fired + 1)
        clocks = (now_ms, context.scheduled_ms, context.stream_time_ms, context.wall_clock_ms)
        rows = dict(self.seen.all())
        context.forward_many(list(rows), [repr((name, clocks, count)) for count in rows.values()])
        if fired % 5 == 4:
            # The number of calls stays: otherwise each deletion would let `later` be scheduled again, without end.
            self.seen.delete_many([key for key, count in rows.items() if count % 2 and key != "fired"])
        if fired % 4 == 0 and fired < 12:
            self.schedule(self.plan.later)

    def on_watermark(self, watermark_ms: int) -> None:
        self.context.forward(Record("watermark", str(watermark_ms)))


@dataclass(frozen=True)
class Plan:
    """A topology with a `Batching`."""

    batching: Batching
    busy: Busy
    second: str
    below: str

    def build(self, *, takes_many: bool) -> Topology:
        """Build it. ``takes_many``: whether batches may have several records."""
        builder = StreamsBuilder()
        left = builder.stream("left")
        right = None if self.second == "none" else builder.stream("right")
        if not takes_many:
            left.foreach(_ignore, name="left-too")
            if right is not None:
                right.foreach(_ignore, name="right-too")
        if self.second == "merged" and right is not None:
            topology = builder.build()
            topology.add_store(key_value_store("seen", key=str, value=int))
            topology.add_processor("batching", self.batching, "left", "right", stores=("seen",))
            topology.add_sink("out", "out", "batching")
            return topology
        stream = left.process(self.batching, name="batching", stores=[key_value_store("seen", key=str, value=int)])
        if self.second == "below" and right is not None:
            stream = stream.merge(right)
        elif right is not None:
            right.to("right-out")
        if self.below == "repartition":
            stream = stream.select_key(lambda key, value: str(len(str(value)) % 3)).repartition(name="again")
        if self.below != "sink":
            store = key_value_store(f"{self.busy.name}-seen", key=str, value=int)
            stream.process(self.busy, name=self.busy.name, stores=[store], holds=f"{self.busy.holds_ms}ms").to("busy")
        if self.below != "busy":
            stream.to("out")
        return builder.build()


def _ignore(key: object, value: object) -> None:
    del key, value


@st.composite
def batch_plans(draw: st.DrawFn) -> Plan:
    """Draw a topology."""
    named = [planned(draw) for _ in range(draw(st.integers(0, 3)))]
    distinct = tuple({one.name or str(index): one for index, one in enumerate(named)}.values())
    busy_named = [planned(draw) for _ in range(draw(st.integers(0, 2)))]
    busy_distinct = tuple({one.name or str(index): one for index, one in enumerate(busy_named)}.values())
    return Plan(
        Batching(distinct, planned(draw), draw(st.integers(2, 5))),
        Busy("busy", busy_distinct, planned(draw), draw(st.integers(2, 5)), draw(st.sampled_from([0, 9]))),
        draw(st.sampled_from(SECOND)),
        draw(st.sampled_from(BELOW)),
    )
