"""Random topologies as data: Hypothesis draws the data, and `build` makes the topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from rewindow import (
    Count,
    JoinWindows,
    KStream,
    KTable,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Sum,
    TimeWindows,
    To,
    Topology,
    Windowed,
    key_value_store,
    until_window_closes,
    versioned_store,
)
from tests.properties.cogrouped import cogrouped, cogroupings, transformed, transformings

STREAMS = ("left", "right")
TOPICS = (*STREAMS, "rows")
"""The streams, and the topic of a global table, which only some topologies read."""


@dataclass(frozen=True)
class Planned:
    """A schedule of `Busy`, unnamed if ``name`` is None."""

    type: PunctuationType
    interval_ms: int
    name: str | None
    time_shift_ms: int | None
    start_time_ms: int | None


@dataclass(frozen=True)
class Busy:
    """A processor that uses everything: a store, schedules of every kind, cancelling, timestamps."""

    name: str
    in_init: tuple[Planned, ...]
    in_process: Planned
    every: int
    holds_ms: int

    def __call__(self) -> Processor:
        return _Busy(self)


class _Busy(Processor):
    def __init__(self, plan: Busy) -> None:
        self.plan = plan

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.store(f"{self.plan.name}-seen")
        self.in_this_epoch = 0
        for planned in self.plan.in_init:
            self.schedule(planned)

    def schedule(self, planned: Planned) -> None:
        self.context.schedule(
            f"{planned.interval_ms}ms",
            planned.type,
            self.punctuate,
            name=planned.name,
            time_shift=None if planned.time_shift_ms is None else f"{planned.time_shift_ms}ms",
            start_time=None if planned.start_time_ms is None else f"{planned.start_time_ms}ms",
            args=(planned.name or "nameless", planned.interval_ms),
        )

    def process(self, record: Record) -> None:
        context, total = self.context, self.count("total")
        record = record.with_key(_text_key(record.key, None))  # one type of key below, as punctuations use text
        self.count(str(record.key))
        self.in_this_epoch += 1
        counts = (self.seen.get(str(record.key)), self.in_this_epoch)
        self.say(record.key, ("record", str(record.value), counts, context.timestamp))
        if total % self.plan.every == 0:
            self.schedule(self.plan.in_process)
            context.forward(record.with_value("later"), to=To.all().with_timestamp(record.timestamp + 3))
        elif total % self.plan.every == 1 and self.plan.in_init and self.plan.in_init[0].name:
            context.cancellable(self.plan.in_init[0].name).cancel()

    def punctuate(self, now_ms: int, name: str, interval_ms: int) -> None:
        context, fired = self.context, self.count("fired")
        self.say(name, ("fired", now_ms, context.scheduled_ms, interval_ms))
        if fired % 4 == 0 and fired < 12:
            self.schedule(self.plan.in_process)

    def on_watermark(self, watermark_ms: int) -> None:
        self.context.observe(watermark_ms)
        self.say("watermark", ("watermark", watermark_ms))

    def say(self, key: Any, what: tuple[Any, ...]) -> None:
        context = self.context
        clocks = (context.stream_time_ms, context.wall_clock_ms, context.observed_time_ms)
        context.forward(Record(key, repr((what, clocks, tuple(context.record_metadata)))))

    def count(self, key: str) -> int:
        number = (self.seen.get(key) or 0) + 1
        self.seen.put(key, number)
        return number


def planned(draw: st.DrawFn) -> Planned:
    """Draw a schedule."""
    alignment = draw(st.sampled_from(["none", "shift", "start"]))
    return Planned(
        draw(st.sampled_from(list(PunctuationType))),
        draw(st.integers(1, 25)),
        draw(st.sampled_from([None, None, "one", "two"])),
        draw(st.integers(-30, 30)) if alignment == "shift" else None,
        draw(st.integers(0, 60)) if alignment == "start" else None,
    )


VERBS = ["filter", "map_values", "split", "rekey", "busy", "window", "finals", "total", "join", "lookup"]
VERBS += ["cogroup", "transform", "global"]


@st.composite
def plans(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Draw a list of steps: a verb, the stream to which it is applied, and its arguments."""
    steps: list[tuple[Any, ...]] = [("merge",)] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 4))):
        verb = draw(st.sampled_from(VERBS))
        onto = draw(st.integers(0, 5))
        if verb == "busy":
            named = tuple(planned(draw) for _ in range(draw(st.integers(0, 3))))
            distinct = tuple({one.name or index: one for index, one in enumerate(named)}.values())
            busy = Busy(
                f"busy-{number}", distinct, planned(draw), draw(st.integers(2, 5)), draw(st.sampled_from([0, 9]))
            )
            steps.append((verb, onto, busy))
        elif verb in ("window", "finals"):
            size = draw(st.integers(1, 20))
            steps.append((verb, onto, size, draw(st.integers(1, size)), draw(st.sampled_from([0, 0, 5, 13]))))
        elif verb == "cogroup":
            steps.append((verb, onto, draw(st.integers(0, 5)), draw(cogroupings())))
        elif verb == "transform":
            steps.append((verb, onto, draw(transformings())))
        elif verb in ("join", "lookup"):
            how = draw(st.sampled_from(["join", "left_join", *(["outer_join"] if verb == "join" else [])]))
            spans = (draw(st.integers(0, 12)), draw(st.integers(0, 12)), draw(st.sampled_from([0, 0, 7])))
            steps.append((verb, onto, draw(st.integers(0, 5)), how, *spans))
        else:
            steps.append((verb, onto, draw(st.integers(2, 3))))
    return steps


def build(steps: list[tuple[Any, ...]]) -> Topology:
    """Build the topology of the steps. Every stream has a sink."""
    builder = StreamsBuilder()
    streams = [builder.stream(topic) for topic in STREAMS]
    rows = builder.global_table("rows", store="rows") if any(verb == "global" for verb, *_ in steps) else None
    for number, (verb, *needs) in enumerate(steps):
        if verb == "merge":
            streams.append(streams[0].merge(streams[1]))
            continue
        stream, name = streams[needs[0] % len(streams)], f"{verb}-{number}"
        if verb == "filter":
            streams.append(stream.filter(lambda _key, value, m=needs[1]: len(str(value)) % m != 0))
        elif verb == "map_values":
            streams.append(stream.map_values(lambda value, m=needs[1]: f"{value}*{m}"))
        elif verb == "split":
            split = stream.split(name=name).branch(lambda _key, value, m=needs[1]: len(str(value)) % m == 0, name="one")
            branches = split.default_branch(name="other")
            streams.append(
                branches[f"{name}-other"].merge(branches[f"{name}-one"].map_values(lambda value: f"{value}!"))
            )
        elif verb == "rekey":
            streams.append(
                stream.select_key(lambda _key, value, m=needs[1]: str(len(str(value)) % m)).repartition(name=name)
            )
        elif verb == "busy":
            busy = needs[1]
            store = key_value_store(f"{busy.name}-seen", key=str, value=int)
            streams.append(stream.process(busy, name=busy.name, stores=[store], holds=f"{busy.holds_ms}ms"))
        elif verb in ("join", "lookup"):
            streams.append(_joined(verb, name, stream, streams[needs[1] % len(streams)], *needs[2:]))
        elif verb == "cogroup":
            one, other = together(stream, streams[needs[1] % len(streams)])
            streams.append(cogrouped(name, one, other, needs[2]))
        elif verb == "transform":
            table = stream.select_key(_text_key).to_table(store=f"{name}-rows")
            streams.append(transformed(name, table, needs[1]))
        elif verb == "global":
            join = stream.left_join if needs[1] % 2 else stream.join
            streams.append(join(rows, _text_key if needs[1] % 2 else _by_length, _both, name=name))
        elif verb == "total":
            streams.append(_as_stream(stream.group_by_key().count(store=name)))
        else:
            size, advance, grace = needs[1:]
            windows = TimeWindows.of(f"{size}ms", grace=f"{grace}ms").advance_by(f"{advance}ms")
            grouped = stream.group_by(_text_key).windowed_by(windows)
            if verb == "finals":
                streams.append(_as_stream(grouped.count(store=name).suppress(until_window_closes())))
            else:
                joined = grouped.aggregate(lambda: "", lambda _key, value, state: f"{state};{value}"[-40:], store=name)
                streams.append(_as_stream(joined))
    for number, stream in enumerate(streams):
        stream.to(f"out-{number}")
    return builder.build()


def _joined(verb: str, name: str, one: KStream, other: KStream, how: str, *spans: int) -> KStream:
    """Join two streams, or a stream with the table of the other one."""
    one, other = together(one, other)
    before, after, grace = (f"{span}ms" for span in spans)
    if verb == "join":
        windows = JoinWindows.of(after, grace=grace).before(before)
        return getattr(one, how)(other, _both, windows, name=name)
    history = f"{spans[0] + spans[2]}ms"
    table = other.to_table(store=versioned_store(f"{name}-rows", history=history))
    return getattr(one, how)(table, _both, name=name, grace=grace if spans[1] % 3 else None)


def together(one: KStream, other: KStream) -> tuple[KStream, KStream]:
    """Return two streams that can be joined: streams other than logs are repartitioned first."""
    if one.node in STREAMS and other.node in STREAMS:
        return one, other
    return one.select_key(_text_key), other.select_key(_text_key)


def _both(one: Any, other: Any) -> str:
    return f"{one}&{other}"[-40:]


def _as_stream(table: KTable) -> KStream:
    return table.to_stream()


def _text_key(key: Any, _value: Any) -> str:
    return f"{key.key}@{key.window.start_ms}" if isinstance(key, Windowed) else str(key)


def _by_length(_key: Any, value: Any) -> str:
    return "abc"[len(str(value)) % 3]


__all__ = ["STREAMS", "TOPICS", "Count", "Sum", "build", "plans"]
