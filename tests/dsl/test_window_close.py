"""Results on window close: W19 to W24, watermarks (D22), final runs (D18), and that no result is lost (D11)."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    EmitStrategy,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    until_window_closes,
)
from rewindow.streams.metrics import LATE_RECORD_DROP, WINDOW_FINAL_EMIT
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.dsl.windowed import counted, sessions, sliding, told
from tests.refusals import refused

Steps = list[tuple[str, int, list[str]]]
TEN = TimeWindows.of("10ms", grace="0s")


def closing(windows: Any, *, suppressed: bool = False, retention: int | None = None) -> Topology:
    """Count by window and send only final results."""
    builder = StreamsBuilder()
    grouped: Any = builder.stream("in").group_by_key().windowed_by(windows)
    if not suppressed:
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    kept = None if retention is None else f"{retention}ms"
    counts = grouped.count(store=Materialized.as_("counts", retention=kept))
    (counts.suppress(until_window_closes()) if suppressed else counts).to_stream().to("out")
    return builder.build()


EXAMPLES: dict[str, tuple[Any, Steps, int]] = {
    "W19 by start and key": (
        TimeWindows.of("10ms", grace="5ms"),
        [
            ("b", 2, []),
            ("a", 9, []),
            ("a", 14, []),
            ("c", 15, ["a[0,10]=1@9", "b[0,10]=1@2"]),
            ("a", 9, []),
            ("d", 24, []),
            ("d", 25, ["a[10,20]=1@14", "c[10,20]=1@15"]),
        ],
        1,
    ),
    "W20 a jump loses nothing": (
        TEN,
        [
            ("a", 2, []),
            ("a", 10, ["a[0,10]=1@2"]),
            ("a", 20, ["a[10,20]=1@10"]),
            ("a", 29, []),
            ("a", 1_000_041, ["a[20,30]=2@29"]),
        ],
        0,
    ),
    "W22 sliding": (
        sliding(10),
        [
            ("a", 20, []),
            ("b", 30, ["a[10,20]=1@20"]),
            ("a", 20, []),
            ("b", 31, ["b[20,30]=1@30"]),
            ("b", 60, ["b[21,31]=2@31", "b[31,41]=1@31"]),
        ],
        1,
    ),
    "W23 sessions": (
        sessions(5),
        [
            ("a", 0, []),
            ("b", 5, []),
            ("b", 6, ["a[0,0]=1@0"]),
            ("c", 11, []),
            ("c", 12, ["b[5,6]=2@6"]),
            ("d", 1_000_050, ["c[11,12]=2@12"]),
        ],
        0,
    ),
    "W24 hopping": (
        TEN.advance_by("5ms"),
        [
            ("b", 2, []),
            ("a", 7, []),
            ("b", 11, ["a[0,10]=1@7", "b[0,10]=1@2"]),
            ("a", 12, []),
            ("z", 40, ["a[5,15]=2@12", "b[5,15]=1@11", "a[10,20]=1@12", "b[10,20]=1@11"]),
        ],
        0,
    ),
    "sessions by end, start and key": (
        sessions(3, 50),
        [
            ("c", 9, []),
            ("b", 7, []),
            ("b", 9, []),
            ("a", 9, []),
            ("a", 1, []),
            ("z", 900, ["a[1,1]=1@1", "b[7,9]=2@9", "a[9,9]=1@9", "c[9,9]=1@9"]),
        ],
        0,
    ),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(("windows", "steps", "late"), EXAMPLES.values(), ids=EXAMPLES)
def test_example(windows: Any, steps: Steps, late: int, *, cut: bool) -> None:
    driver = TopologyTestDriver(closing(windows))
    for key, timestamp, expected in steps:
        driver.pipe("in", key, 1, timestamp)
        assert told(driver) == expected, (key, timestamp)
        if cut:
            driver.cut()
    assert counted(driver, LATE_RECORD_DROP) == late
    assert counted(driver, WINDOW_FINAL_EMIT) == sum(len(expected) for *_, expected in steps)


FINALS = {
    "tumbling": (TimeWindows.of("10ms", grace="5ms"), 14, 15, "a[0,10]=1@3"),
    "sliding": (sliding(10, 5), 15, 16, "a[0,10]=1@3"),
    "session": (sessions(4, 5), 12, 13, "a[3,3]=1@3"),
}


@pytest.mark.parametrize("suppressed", [False, True], ids=["emit", "suppress"])
@pytest.mark.parametrize(("windows", "open_at", "closed_at", "final"), FINALS.values(), ids=FINALS)
def test_a_watermark_closes_a_window_at_its_time(
    windows: Any, open_at: int, closed_at: int, final: str, *, suppressed: bool
) -> None:
    driver = TopologyTestDriver(
        closing(windows, suppressed=suppressed), semantics=Semantics(stream_time_from="watermark", wall_clock="run")
    )
    driver.pipe("in", "a", 1, 3)
    driver.advance_watermark(open_at)
    assert told(driver) == []
    driver.cut()
    driver.advance_watermark(closed_at)
    assert told(driver) == [final]
    driver.pipe("in", "a", 1, 3)
    driver.finish()
    assert told(driver) == []
    assert counted(driver, LATE_RECORD_DROP) == 1


@pytest.mark.parametrize("suppressed", [False, True], ids=["emit", "suppress"])
@pytest.mark.parametrize(("windows", "open_at", "closed_at", "final"), FINALS.values(), ids=FINALS)
def test_a_final_run_closes_every_window(
    windows: Any, open_at: int, closed_at: int, final: str, *, suppressed: bool
) -> None:
    driver = TopologyTestDriver(closing(windows, suppressed=suppressed))
    driver.pipe("in", "a", 1, 3)
    driver.advance_watermark(closed_at)
    assert told(driver) == []
    driver.finish()
    assert told(driver) == [final]


def test_an_unlimited_window_is_final_only_in_a_final_run() -> None:
    driver = TopologyTestDriver(
        closing(UnlimitedWindows.of(), suppressed=True), semantics=Semantics(stream_time_from="watermark")
    )
    driver.pipe("in", "a", 1, 3)
    driver.advance_watermark(2**62)
    assert told(driver) == []
    driver.finish()
    assert told(driver) == ["a[0,MAX]=1@3"]


def test_an_unlimited_window_cannot_emit_on_close() -> None:
    windowed = StreamsBuilder().stream("in").group_by_key().windowed_by(UnlimitedWindows.of())
    assert windowed.emit_strategy(EmitStrategy.on_window_update()) == windowed
    with refused("unlimited-window-never-closes"):
        windowed.emit_strategy(EmitStrategy.on_window_close())


@pytest.mark.parametrize("windows", [TEN, sessions(5)])
def test_an_unknown_emit_strategy_is_rejected(windows: Any) -> None:
    with refused("emit-strategy-invalid"):
        StreamsBuilder().stream("in").group_by_key().windowed_by(windows).emit_strategy("close")


def test_a_record_at_the_bound_is_in_the_final_result() -> None:
    """The store retains a session or sliding window while it accepts records (D10)."""
    for suppressed in (False, True):
        driver = TopologyTestDriver(closing(sessions(5), suppressed=suppressed))
        for key, timestamp in (("a", 0), ("b", 5), ("a", 5), ("b", 90)):
            driver.pipe("in", key, 1, timestamp)
        assert "a[0,5]=2@5" in told(driver)


@pytest.mark.parametrize("suppressed", [False, True], ids=["emit", "suppress"])
@pytest.mark.parametrize(
    ("retention", "finals"),
    [(None, ["a[0,0]=1@0", "a[1,1]=1@1"]), (21, ["a[0,0]=1@0", "a[0,1]=2@1"])],
    ids=["default", "longer"],
)
def test_a_session_that_a_watermark_closed_is_merged_while_it_is_retained(
    retention: int | None, finals: list[str], *, suppressed: bool
) -> None:
    """It behaves like a session that a record closed: by default it expires, and the record at 0 is in one final result."""
    topology = closing(sessions(19), suppressed=suppressed, retention=retention)
    for is_watermark in (True, False):
        driver = TopologyTestDriver(topology, semantics=Semantics(stream_time_from="watermark"))
        driver.pipe("in", "a", 1, 0)
        if is_watermark:
            driver.advance_watermark(20)
        else:
            driver.pipe("in", "b", 1, 20)
        driver.pipe("in", "a", 1, 1)
        driver.advance_watermark(39)
        assert told(driver) == finals


def test_a_late_session_that_touches_nothing_is_dropped() -> None:
    driver = TopologyTestDriver(closing(sessions(5)))
    for key, timestamp in (("a", 50), ("a", 44), ("b", 44)):
        driver.pipe("in", key, 1, timestamp)
    assert counted(driver, LATE_RECORD_DROP) == 2


@pytest.mark.parametrize("suppressed", [False, True], ids=["emit", "suppress"])
@pytest.mark.parametrize("windows", [windows for windows, *_ in FINALS.values()], ids=FINALS)
def test_a_window_below_final_results_accepts_them_all(windows: Any, *, suppressed: bool) -> None:
    """The watermark below is lowered by the longest time that a final result is held (D22)."""
    builder = StreamsBuilder()
    grouped: Any = builder.stream("in").group_by_key().windowed_by(windows)
    if not suppressed:
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    counts = grouped.count(store="counts")
    finals = (counts.suppress(until_window_closes()) if suppressed else counts).to_stream()
    finals.group_by(lambda key, _value: key.key).windowed_by(TEN).count(store="finals").to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), semantics=Semantics(stream_time_from="watermark", wall_clock="run"))
    for watermark in range(0, 60, 3):
        driver.pipe("in", "a", 1, watermark + 1)
        driver.advance_watermark(watermark + 2)
    driver.finish()
    assert counted(driver, LATE_RECORD_DROP) == 0


def test_windows_and_emit_strategy_are_in_the_fingerprint() -> None:
    kinds: list[Any] = [TEN, TEN.advance_by("5ms"), sliding(10), sessions(5), sessions(5, 1), sliding(10, 1)]
    prints = [
        closing(windows, suppressed=suppressed).fingerprint() for windows in kinds for suppressed in (False, True)
    ]
    assert len({*prints}) == len(prints)
    assert SessionWindows.of("5ms", grace="0s") == sessions(5)
    assert SlidingWindows.of("10ms", grace="0s") == sliding(10)
