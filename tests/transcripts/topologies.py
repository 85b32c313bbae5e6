"""Small topologies for the transcripts."""

from __future__ import annotations

from typing import Any

from rewindow import (
    Cancellable,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    TimeWindows,
    To,
    Topology,
    max_bytes,
    max_records,
    unbounded,
    until_time_limit,
    until_window_closes,
)

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME


class Scheduled(Processor):
    """Makes one schedule and forwards a record per punctuation. It ignores its input."""

    def __init__(self, type_: PunctuationType, interval: str, alignment: dict[str, Any]) -> None:
        self.type, self.interval, self.alignment = type_, interval, alignment

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(self.interval, self.type, self.punctuate, **self.alignment)

    def punctuate(self, now_ms: int) -> None:
        self.context.forward(Record("fired", self.context.scheduled_ms, now_ms))


def scheduled(type: str, interval: str, **alignment: str) -> Topology:  # noqa: A002 - KIP-138's word
    builder = StreamsBuilder()
    builder.stream("in").process(lambda: Scheduled(PunctuationType(type), interval, alignment), name="p").to("out")
    return builder.build()


class Hybrid(Processor):
    """KIP-138's hybrid pattern: stream time with an upper bound in wall-clock time. Each schedule re-arms the other by name."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.arm_stream()
        self.arm_wall()

    def arm_stream(self) -> Cancellable:
        return self.context.schedule("10ms", STREAM, self.on_stream_time, name="stream")

    def arm_wall(self) -> Cancellable:
        return self.context.schedule("15ms", WALL, self.on_wall_clock, name="wall")

    def on_stream_time(self, now_ms: int) -> None:
        self.business("stream", now_ms)
        self.context.cancellable("wall").cancel()
        self.arm_wall()

    def on_wall_clock(self, now_ms: int) -> None:
        self.business("wall", now_ms)
        self.context.cancellable("stream").cancel()
        self.arm_stream()

    def business(self, side: str, now_ms: int) -> None:
        self.context.forward(Record(side, self.context.stream_time_ms, now_ms))


def hybrid() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").process(Hybrid, name="hybrid").to("out")
    return builder.build()


class Stamping(Processor):
    """KIP-251: the timestamp comes from `To`, else from the record, else from the input."""

    def process(self, record: Record) -> None:
        context = self.context
        context.forward(Record(record.key, "inherited"))
        context.forward(Record(record.key, "of the record", 42))
        context.forward(Record(record.key, "of To", 42), to=To.all().with_timestamp(7))
        context.forward(Record(record.key, "right only"), to=To.child("right"))
        if record.value == "backwards":
            context.forward(Record(record.key, "negative", -1))
        if record.value == "astray":
            context.forward(Record(record.key, "astray"), to=To.child("nobody"))


def stamping() -> Topology:
    builder = StreamsBuilder()
    stamped = builder.stream("in").process(Stamping, name="stamping")
    stamped.map_values(lambda value: value, name="left").to("left")
    stamped.map_values(lambda value: value, name="right").to("right")
    return builder.build()


def window_finals(size: str, grace: str, advance: str | None = None) -> Topology:
    builder = StreamsBuilder()
    windows = TimeWindows.of(size, grace=grace)
    windows = windows.advance_by(advance) if advance else windows
    table = builder.stream("in").group_by_key().windowed_by(windows).aggregate(_nothing, _joined, store="texts")
    table.suppress(until_window_closes()).to_stream().to("finals")
    return builder.build()


def window_updates(size: str, grace: str, advance: str | None = None) -> Topology:
    builder = StreamsBuilder()
    windows = TimeWindows.of(size, grace=grace)
    windows = windows.advance_by(advance) if advance else windows
    table = builder.stream("in").group_by_key().windowed_by(windows).aggregate(_nothing, _joined, store="texts")
    table.to_stream().to("updates")
    return builder.build()


def merged() -> Topology:
    builder = StreamsBuilder()
    builder.stream("t1").merge(builder.stream("t2")).to("out")
    return builder.build()


def _nothing() -> str:
    return ""


def _joined(_key: str, value: object, text: str) -> str:
    return f"{text}{value}"


def negative() -> Topology:
    class Negative(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record, to=To.all().with_timestamp(-1))

    builder = StreamsBuilder()
    builder.stream("in").process(Negative, name="negative").to("out")
    return builder.build()


def suppressed(
    limit: str = "1h", records: int | None = None, size: int | None = None, full: str = "emit_early", **time: str
) -> Topology:
    """Suppress a table. Each letter of a value takes 100 bytes, because KIP-328's byte examples count letters."""
    buffer = unbounded() if records is None else max_records(records)
    if size is not None:
        buffer = max_bytes(size)
    when_full = {"shut_down": buffer.shut_down_when_full, "spill_to_disk": buffer.spill_to_disk_when_full}
    buffer = when_full[full]() if full in when_full else buffer
    builder = StreamsBuilder()
    heavy = builder.stream("in").map_values(lambda value: value and value * 100)
    table = heavy.to_table(store="table").suppress(until_time_limit(limit, buffer, **time), name="held")
    table.to_stream().map_values(lambda value: value and value[::100]).to("out")
    return builder.build()


def rate_limited_windows(limit: str, buffer_time: str) -> Topology:
    """Suppress hourly counts for a time limit."""
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TimeWindows.of("1h", grace="1d")).count(store="counts")
    counts.suppress(until_time_limit(limit, buffer_time=buffer_time), name="held").to_stream().to("out")
    return builder.build()


def twice_counted() -> Topology:
    """Group the updates of a suppress by first letter. The result is a trace of the added and subtracted values."""
    builder = StreamsBuilder()
    held = builder.table("in", store="in").suppress(until_time_limit("2ms"), name="held")
    grouped = held.group_by(lambda key, value: (key[0], value))
    trace = grouped.aggregate(
        lambda: "",
        lambda _key, value, text: f"{text}+{value}",
        lambda _key, value, text: f"{text}-{value}",
        store="trace",
        value=str,
    )
    trace.to_stream().to("out")
    return builder.build()


def few_events() -> Topology:
    """KIP-328's first example. The alert is a record."""
    builder = StreamsBuilder()
    (
        builder.stream("events")
        .group_by_key()
        .windowed_by(TimeWindows.of("1h", grace="10m"))
        .count(store="events-per-hour")
        .suppress(until_window_closes(unbounded()))
        .to_stream()
        .filter(lambda _hour, events: events < 3)
        .map(lambda hour, events: (hour.key, f"{events} events from {hour.window.start_ms // 3_600_000}:00"))
        .to("alerts")
    )
    return builder.build()


def rate_limited() -> Topology:
    """KIP-328's second example."""
    builder = StreamsBuilder()
    table = builder.table("in", store="table")
    table.suppress(until_time_limit("30s", max_records(1000)), name="limited").to_stream().to("out")
    return builder.build()
