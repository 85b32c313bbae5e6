"""Examples P01 to P25 of the semantics reference, through the driver: when schedules fire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder
from rewindow.streams.duration import at_or_after, strictly_after
from rewindow.testing import TopologyTestDriver

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME
Steps = str
"""``12`` pipes a record with that timestamp, ``+5`` advances the clock by that much."""


def fires(supplier: Callable[[], Processor], steps: Steps, *, now: int = 0, cut: bool = False) -> str:
    """Return what each step sent, as ``12:a b; 13:; ...``, without the input records."""
    builder = StreamsBuilder()
    builder.stream("in").process(supplier, name="p").to("out")
    driver = TopologyTestDriver(builder.build(), wall_clock_ms=now)
    fired = []
    for step in steps.split():
        if step.startswith("+"):
            driver.advance_wall_clock(f"{int(step)}ms")
        else:
            driver.pipe("in", "k", None, int(step))
        sent = " ".join(str(record.value) for record in driver.read("out"))
        if sent:
            fired.append(f"{step}:{sent}")
        if cut:
            driver.cut()
    return "; ".join(fired)


class Firing(Processor):
    """A processor with one schedule, made in `init`."""

    type = STREAM
    alignment: dict[str, str]

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("10ms", self.type, self.fire, **self.alignment)

    def fire(self, now_ms: int) -> None:
        self.context.forward(Record("fired", now_ms))


def firing(type_: PunctuationType, **alignment: str) -> type[Firing]:
    return type("Fires", (Firing,), {"type": type_, "alignment": alignment})


EXAMPLES = [
    (
        "P01",
        STREAM,
        "0",
        0,
        "12 13 19 20 21 35 36 39 40 100 105 109 110",
        "12:12; 20:20; 35:35; 40:40; 100:100; 110:110",
    ),
    ("P02", STREAM, "0", 0, "0 5 9 10 10 25", "0:0; 10:10; 25:25"),
    ("P03", STREAM, "0", 0, "15 3 19 4 20", "15:15; 20:20"),
    ("P04", WALL, None, 100, "+9 +1 +35 +4 +1 +10", "+1:110; +35:145; +1:150; +10:160"),
    ("P05", WALL, None, 0, "+25 +4 +1 +10", "+25:25; +1:30; +10:40"),
    ("P13", STREAM, "5ms", 0, "3 26 30 34 35 36 45 60 65", "26:26; 35:35; 45:45; 60:60; 65:65"),
    ("P14", STREAM, "5ms", 0, "3 4 5 14 15", "5:5; 15:15"),
    ("P16", WALL, "5ms", 100, "+0 +4 +1 +10", "+1:105; +10:115"),
    ("P17", WALL, "5ms", 105, "+0 +9 +1", "+1:115"),
    ("P18", WALL, "5ms", 5, "+0 +9 +1", "+0:5; +1:15"),
    ("P19", WALL, "33ms", 5, "+10 +10 +8 +9 +1", "+8:33; +1:43"),
    ("P20", WALL, "5ms", 0, "+4 +1 +37 +2 +1", "+1:5; +37:42; +1:45"),
]


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(
    ("start", "type_", "now", "steps", "fired"),
    [e[2:3] + e[1:2] + e[3:] for e in EXAMPLES],
    ids=[e[0] for e in EXAMPLES],
)
def test_a_schedule_of_init(
    start: str | None, type_: PunctuationType, now: int, steps: str, fired: str, *, cut: bool
) -> None:
    alignment = {} if start is None else {"start_time": start}
    assert fires(firing(type_, **alignment), steps, now=now, cut=cut) == fired


@pytest.mark.parametrize(
    ("made_at", "fired"),
    [
        (26, "35:35; 45:45"),
        (25, "35:35; 45:45"),
        (5, "5:5; 34:34; 35:35; 45:45"),
        (4, "34:34; 35:35; 45:45"),
    ],
)
def test_p15_a_start_time_given_while_processing(made_at: int, fired: str) -> None:
    class Later(Firing):
        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            if record.timestamp == made_at:
                self.context.schedule("10ms", STREAM, self.fire, start_time="5ms")

    assert fires(Later, f"{made_at} 34 35 45") == fired


def test_p07_a_plain_schedule_made_while_processing_counts_from_then() -> None:
    class Later(Firing):
        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            if record.timestamp == 12:
                self.context.schedule("10ms", STREAM, self.fire)

    assert fires(Later, "12 13 20 21 22 32") == "22:22; 32:32"  # Kafka 4: 12, 20, 30 (D2)


class Family(Processor):
    """A processor that makes named schedules and forwards their names."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.plan()

    def plan(self) -> None: ...

    def on(self, name: str, interval: str, type_: PunctuationType, **alignment: str) -> None:
        self.context.schedule(interval, type_, self.fire, name=name, args=(name,), **alignment)

    def fire(self, now_ms: int, name: str) -> None:
        self.context.forward(Record(name, f"{name}{now_ms}"))
        self.after(now_ms, name)

    def after(self, now_ms: int, name: str) -> None: ...


def test_p06_ties_fire_in_the_order_of_registration() -> None:
    class Four(Family):
        def plan(self) -> None:
            for name in "ABCD":
                self.on(name, "10ms", STREAM, start_time="0")

    assert fires(Four, "1 10 20") == "1:A1 B1 C1 D1; 10:A10 B10 C10 D10; 20:A20 B20 C20 D20"


def test_p09_a_wall_clock_schedule_made_in_a_wall_clock_callback() -> None:
    class Nested(Family):
        def plan(self) -> None:
            self.on("outer", "10ms", WALL)

        def after(self, now_ms: int, name: str) -> None:
            if name == "outer" and now_ms == 10:
                self.on("inner", "7ms", WALL)

    assert fires(Nested, "+10 +6 +1 +3 +4") == "+10:outer10; +1:inner17; +3:outer20; +4:inner24"


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_p10_cancelling_oneself_and_a_sibling(*, cut: bool) -> None:
    class Pair(Family):
        def plan(self) -> None:
            for name in "AB":
                self.on(name, "10ms", STREAM, start_time="0")

        def after(self, now_ms: int, name: str) -> None:
            if name == "A" and now_ms >= 10:
                self.context.cancellable("A").cancel()
                self.context.cancellable("B").cancel()

    assert fires(Pair, "1 10 20 30", cut=cut) == "1:A1 B1; 10:A10"


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_p11_cancelling_while_processing_comes_in_time(*, cut: bool) -> None:
    class Stopped(Family):
        def plan(self) -> None:
            self.on("A", "10ms", STREAM, start_time="0")

        def process(self, record: Record) -> None:
            if record.timestamp == 20:
                self.context.cancellable("A").cancel()

    assert fires(Stopped, "1 10 20 30", cut=cut) == "1:A1; 10:A10"


def test_p12_stream_time_is_moved_before_the_record_is_processed() -> None:
    class Seeing(Family):
        def plan(self) -> None:
            self.on("A", "10ms", STREAM, start_time="0")

        def process(self, record: Record) -> None:
            self.context.forward(record.with_value(f"st{self.context.stream_time_ms}"))

    assert fires(Seeing, "12 8") == "12:st12 A12; 8:st12"


def test_p24_the_wall_clock_of_the_driver_is_not_looked_at_for_records() -> None:
    class Both(Family):
        def plan(self) -> None:
            self.on("W", "10ms", WALL)
            self.on("S", "10ms", STREAM, start_time="0")

    assert fires(Both, "+30 5 +10 10") == "+30:W30; 5:S5; +10:W40; 10:S10"


@pytest.mark.parametrize(
    ("clock", "shift", "first"),
    [(26, 0, 30), (25, 5, 25), (26, 5, 35), (4, 5, 5), (0, 25, 5), (7, -3, 7), (8, -3, 17)],
)
def test_p25_the_time_shift_formula(clock: int, shift: int, first: int) -> None:
    assert at_or_after(clock, shift, 10) == first
    assert strictly_after(25, 5, 10) == 35

    class Shifted(Firing):
        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            if record.value is None and record.timestamp == clock:
                handle: Any = self.context.schedule("10ms", STREAM, self.fire, name="one", time_shift=f"{shift}ms")
                assert handle is not None

    fired = fires(Shifted, f"{clock} {first - 1 if first > clock + 1 else clock} {first}")
    assert fired.split(";")[0].split(":")[1] == str(first)


def test_several_shifts_in_one_task_keep_their_own_grids() -> None:
    class Shifted(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            for shift in ("0ms", "3ms", "-2ms"):
                context.schedule("10ms", STREAM, self.fire, name=shift, time_shift=shift, args=(shift,))

        def fire(self, now_ms: int, shift: str) -> None:
            self.context.forward(Record(shift, self.context.scheduled_ms, now_ms))

    builder = StreamsBuilder()
    builder.stream("in").process(Shifted, name="p").to("out")
    driver = TopologyTestDriver(builder.build())
    for at in (26, 28, 30, 33, 61):
        driver.pipe("in", "k", None, at)
    fired = [(record.key, record.value, record.timestamp) for record in driver.read("out")]
    assert fired == [
        ("-2ms", 28, 28),
        ("0ms", 30, 30),
        ("3ms", 33, 33),
        ("-2ms", 38, 61),
        ("0ms", 40, 61),
        ("3ms", 43, 61),
    ]
