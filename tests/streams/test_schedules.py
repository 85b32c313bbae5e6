"""Which schedules are rejected, and which survive a run, a replacement or a cancellation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rewindow import (
    Processor,
    ProcessorContext,
    Record,
    To,
)
from tests.refusals import Refusal, containing, refused
from tests.streams.one_processor import STREAM, doing, driver, sent


class Planning(Processor):
    """A processor with the schedule of the test."""

    plan: dict[str, Any]

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        plan = {"interval": "10ms", "type": STREAM, "callback": self.fire, **self.plan}
        context.schedule(plan.pop("interval"), plan.pop("type"), plan.pop("callback"), **plan)

    def fire(self, now_ms: int, *args: Any) -> None:
        self.context.forward(Record("fired", (now_ms, *args)))


def planning(**plan: Any) -> type[Planning]:
    return type("Planned", (Planning,), {"plan": plan})


@pytest.mark.parametrize(
    ("plan", "refusal"),
    [
        ({"interval": "0s"}, refused("schedule-time-too-small", argument="interval", minimum=1)),
        ({"interval": "-5ms"}, refused("schedule-time-too-small", argument="interval", minimum=1)),
        ({"start_time": "-1ms"}, refused("schedule-time-too-small", argument="start_time", minimum=0)),
        ({"start_time": "1ms", "time_shift": "1ms"}, refused("schedule-time-shift-and-start")),
        ({"callback": print}, refused("schedule-callback-not-method")),
        ({"callback": lambda _now: None}, refused("schedule-callback-not-method")),
    ],
)
def test_an_invalid_schedule_is_rejected_at_once(plan: dict[str, Any], refusal: Refusal) -> None:
    with refusal:
        driver(planning(**plan))


class Yielding(Planning):
    plan = planning().plan

    def fire(self, now_ms: int, *args: Any) -> Any:
        yield self.context.forward(Record("fired", (now_ms, *args)))


class Awaiting(Planning):
    plan = planning().plan

    async def fire(self, now_ms: int, *args: Any) -> None:  # type: ignore[override]
        self.context.forward(Record("fired", (now_ms, *args)))


@pytest.mark.parametrize(("processor", "what"), [(Yielding, "generator"), (Awaiting, "coroutine")])
def test_a_callback_that_would_never_run_is_refused(processor: type[Planning], what: str) -> None:
    with refused("process-returned-value", type=what):
        driver(processor).pipe("in", "a", 1, 5)


class Late(Processor):
    def process(self, record: Record) -> Iterator[Record]:
        yield record


def test_a_process_that_would_never_run_is_refused_though_a_function_made_it() -> None:
    def make() -> Processor:
        return Late()

    with refused("process-returned-value", type="generator", function=containing("Late.process")):
        driver(make).pipe("in", "a", 1, 5)


def test_arguments_of_a_schedule_outlive_a_run() -> None:
    one = driver(planning(args=("a", {"b": [1]})))
    one.pipe("in", "k", None, 5)
    one.cut()
    one.pipe("in", "k", None, 15)
    assert [value for value, _ in sent(one)] == [
        f"{child}:({now}, 'a', {{'b': [1]}})" for now in (5, 15) for child in ("c1", "c2")
    ]


def test_a_missing_callback_is_reported_when_the_checkpoint_is_restored() -> None:
    class Changed(Processor):
        def process(self, _record: Record) -> None:
            self.context.schedule("10ms", STREAM, self.old)

        def old(self, now_ms: int) -> None: ...

    one = driver(Changed)
    one.pipe("in", "k", None, 5)
    one.cut()
    del Changed.old
    with refused("schedule-method-missing", node="p", method="old"):
        one.pipe("in", "k", None, 15)


def test_using_a_name_again_replaces_and_unnamed_calls_add_schedules() -> None:
    class Renaming(Processor):
        def process(self, record: Record) -> None:
            for interval in ("10ms", "20ms"):
                self.context.schedule(interval, STREAM, self.fire, name=record.value, args=(interval,))

        def fire(self, now_ms: int, interval: str) -> None:
            self.context.forward(Record("fired", interval, now_ms), to=To.child("c1"))

    named = driver(Renaming)
    named.pipe("in", "k", "same", 0)
    assert [schedule.interval_ms for schedule in named.schedules] == [20]
    nameless = driver(Renaming)
    nameless.pipe("in", "k", None, 0)
    assert [schedule.interval_ms for schedule in nameless.schedules] == [10, 20]


def test_a_schedule_of_init_that_was_cancelled_stays_cancelled() -> None:
    class Cancelling(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            for number in range(2):
                context.schedule("10ms", STREAM, self.fire, name=f"n{number}", args=(number,))

        def process(self, _record: Record) -> None:
            self.context.cancellable("n0").cancel()

        def fire(self, _now_ms: int, number: int) -> None:
            self.context.forward(Record("fired", number), to=To.child("c1"))

    one = driver(Cancelling)
    for timestamp in (0, 10, 20):
        one.pipe("in", "k", None, timestamp)
        one.cut()
    assert [value for value, _ in sent(one)] == ["c1:1", "c1:1", "c1:1"]
    with refused("schedule-name-unknown"):
        driver(doing(lambda context, _record: context.cancellable("nobody").cancel())).pipe("in", "k", None, 1)
