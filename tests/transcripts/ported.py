"""Topologies with the API from before KIP-138 and KIP-251, as in code that is being ported.

The classes are created when a case is played, because the old API warns where it is used.
"""

from __future__ import annotations

from typing import Any

from rewindow import (
    JoinWindows,
    KStream,
    LegacyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    To,
    Topology,
    Transformer,
)


def punctuate() -> Topology:
    """Call KIP-138's one-argument ``schedule`` in a processor."""

    class Old(LegacyProcessor):
        def init(self, context: Any) -> None:
            self.context = context
            context.schedule("10ms")

        def punctuate(self, timestamp: int) -> None:
            self.context.forward("fired", timestamp)

    return _one(lambda stream: stream.process(Old, name="p"))


def transformer() -> Topology:
    """Call KIP-138's one-argument ``schedule`` in a transformer. A null result is not forwarded."""

    class Old(Transformer):
        def init(self, context: Any) -> None:
            self.context = context
            context.schedule("10ms")

        def transform(self, key: Any, value: Any) -> tuple[Any, Any] | None:
            return (key, f"{value}!") if value else None

        def punctuate(self, timestamp: int) -> tuple[Any, Any] | None:
            return ("fired", timestamp) if timestamp < 30 else None

    return _one(lambda stream: stream.transform(Old, name="t"))


def forwards() -> Topology:
    """Use each overload of ``forward`` that KIP-251 names."""

    class Old(LegacyProcessor):
        def init(self, context: Any) -> None:
            self.context = context
            context.schedule("10ms")

        def process(self, key: Any, value: Any) -> None:  # type: ignore[override]
            forward = self.context.forward
            forward(key, "all")
            forward(key, "by index", 1)
            forward(key, "by name", "left")
            forward(key, "To.all", To.all())
            forward(key, "To.all at", To.all().with_timestamp(3))
            forward(key, "To.child", To.child("right"))
            forward(key, "To.child at", To.child("right").with_timestamp(4))

        def punctuate(self, timestamp: int) -> None:
            self.context.forward("fired", "inherits the time that fired it", "left")

    builder = StreamsBuilder()
    stream = builder.stream("in").process(Old, name="p")
    for name in ("left", "right"):
        stream.map_values(lambda value: value, name=name).to(name)
    return builder.build()


def by_partition(type: str, interval: str) -> Topology:  # noqa: A002 - KIP-138's word
    """Forward stream time in each punctuation of a schedule over two topics."""

    class Scheduled(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            context.schedule(interval, PunctuationType(type), self.punctuate)

        def punctuate(self, now_ms: int) -> None:
            self.context.forward(Record("fired", self.context.stream_time_ms, now_ms))

    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).process(Scheduled, name="p").to("out")
    return builder.build()


def told_times() -> Topology:
    """Append to each record of two topics the stream time at which it is processed."""

    class Telling(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_value(f"{record.value} at {self.context.stream_time_ms}"))

    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).process(Telling, name="p").to("out")
    return builder.build()


def _one(verb: Any) -> Topology:
    builder = StreamsBuilder()
    made: KStream = verb(builder.stream("in"))
    made.to("out")
    return builder.build()


def joined(kind: str) -> Topology:
    """Join the records of two streams that are up to 10 ms apart."""
    builder = StreamsBuilder()
    left, right = builder.stream("a"), builder.stream("b")
    join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[kind]
    join(right, lambda one, other: f"{one}+{other}", JoinWindows.of("10ms", grace="5ms"), name="j").to("out")
    return builder.build()
