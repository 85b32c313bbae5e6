"""When schedules fire (D2-D6, D8): the driver equals a model that tries every millisecond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.properties.effort import examples

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME
UNKNOWN = -1


@dataclass(frozen=True)
class Spec:
    """A schedule made in `init`."""

    type: PunctuationType
    interval: int
    shift: int | None = None
    start: int | None = None


@dataclass
class Model:
    """One schedule: its grid, once the clock is known, and the first millisecond at which it may fire."""

    spec: Spec
    number: int
    base: int | None = None
    earliest: int = 0

    def made_at(self, now: int) -> None:
        """Set the grid from the clock at the time of `schedule`, which may be unknown."""
        spec = self.spec
        if spec.start is not None and (now != UNKNOWN or spec.type is STREAM):
            self.base, self.earliest = spec.start, spec.start if spec.start >= now else now + 1
        elif now != UNKNOWN:
            self.base = now if spec.shift is None else spec.shift
            self.earliest = now if spec.shift is not None else now + 1

    def clock_began(self, now: int) -> None:
        """Set the grid from the first value of an unknown clock."""
        if self.base is None:
            self.made_at(now)
            if self.spec.type is STREAM and self.spec.shift is None:
                self.earliest = now  # without a shift or start time, it fires at the first record (D2)

    def due(self) -> int | None:
        """Return the next millisecond at which the schedule is due."""
        if self.base is None:
            return None
        at = self.earliest
        while (at - self.base) % self.spec.interval != 0:
            at += 1
        return at


def expected(specs: list[Spec], steps: list[tuple[str, int]], *, glides: bool) -> list[tuple[Any, ...]]:
    """Return the expected events."""
    models = [Model(spec, number) for number, spec in enumerate(specs)]
    clocks = {STREAM: UNKNOWN, WALL: UNKNOWN if glides else 0}
    happened: list[tuple[Any, ...]] = []
    for model in models:
        model.made_at(clocks[model.spec.type])

    def fire(type_: PunctuationType, until: int, *, each: bool) -> None:
        if clocks[type_] == UNKNOWN:
            for model in models:
                if model.spec.type is type_:
                    model.clock_began(until)
        while True:
            due = [(model.due(), model) for model in models if model.spec.type is type_]
            ready = [(at, model) for at, model in due if at is not None and at <= until]
            if not ready:
                break
            at, model = min(ready, key=lambda pair: (pair[0], pair[1].number))
            now = at if each else until
            clocks[type_] = max(clocks[type_], now)
            happened.append(("fire", model.number, now, at, clocks[STREAM], clocks[WALL]))
            model.earliest = now + 1
        clocks[type_] = max(clocks[type_], until)

    for what, amount in steps:
        if what == "jump":
            clocks_before = clocks[WALL]
            fire(WALL, clocks_before + amount, each=False)
            continue
        if glides and amount > clocks[WALL]:
            fire(WALL, amount, each=True)
        reached = max(clocks[STREAM], amount)
        happened.append(("record", amount, reached, clocks[WALL]))
        fire(STREAM, reached, each=False)
    return happened


class Told(Processor):
    """Makes the given schedules and forwards every event."""

    def __init__(self, specs: list[Spec]) -> None:
        self.specs = specs

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        for number, spec in enumerate(self.specs):
            context.schedule(
                f"{spec.interval}ms",
                spec.type,
                self.fire,
                time_shift=None if spec.shift is None else f"{spec.shift}ms",
                start_time=None if spec.start is None else f"{spec.start}ms",
                args=(number,),
            )

    def process(self, record: Record) -> None:
        told = ("record", record.timestamp, self.context.stream_time_ms, self.context.wall_clock_ms)
        self.context.forward(record.with_value(told))

    def fire(self, now_ms: int, number: int) -> None:
        context = self.context
        told = ("fire", number, now_ms, context.scheduled_ms, context.stream_time_ms, context.wall_clock_ms)
        context.forward(Record("fire", told))


def topology(specs: list[Spec]) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").process(lambda: Told(specs), name="told").to("out")
    return builder.build()


GRID = st.one_of(
    st.just({}),
    st.builds(lambda shift: {"shift": shift}, st.integers(-40, 40)),
    st.builds(lambda start: {"start": start}, st.integers(0, 60)),
)
SPECS = st.lists(
    st.builds(lambda t, i, a: Spec(t, i, **a), st.sampled_from([STREAM, WALL]), st.integers(1, 20), GRID), max_size=4
)
RECORDS = st.tuples(st.just("record"), st.integers(0, 90))
STEPS = st.lists(st.one_of(RECORDS, st.tuples(st.just("jump"), st.integers(0, 40))), max_size=10)


@given(SPECS, STEPS, st.sets(st.integers(0, 9)))
@examples(150)
def test_a_clock_that_jumps_fires_once_and_keeps_the_phase(
    specs: list[Spec], steps: list[tuple[str, int]], cuts: set[int]
) -> None:
    driver = TopologyTestDriver(topology(specs), semantics=Semantics(wall_clock="run"))
    for number, (what, amount) in enumerate(steps):
        if what == "jump":
            driver.advance_wall_clock(f"{amount}ms")
        else:
            driver.pipe("in", "k", None, amount)
        if number in cuts:
            driver.cut()
    assert [record.value for record in driver.read("out")] == expected(specs, steps, glides=False)


@given(SPECS, st.lists(RECORDS, max_size=10), st.sets(st.integers(0, 9)))
@examples(150)
def test_a_clock_that_glides_fires_at_each_due_time_between_the_records(
    specs: list[Spec], steps: list[tuple[str, int]], cuts: set[int]
) -> None:
    driver = TopologyTestDriver(topology(specs), semantics=Semantics(wall_clock="stream_time"))
    for number, (_, timestamp) in enumerate(steps):
        driver.pipe("in", "k", None, timestamp)
        if number in cuts:
            driver.cut()
    assert [record.value for record in driver.read("out")] == expected(specs, steps, glides=True)
