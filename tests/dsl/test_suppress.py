"""Suppress: examples S01 to S05 and S20 of the semantics reference, time limits and buffer limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewindow import (
    StreamsBuilder,
    TimeWindows,
    UnlimitedWindows,
    max_bytes,
    max_records,
    unbounded,
    until_time_limit,
    until_window_closes,
)
from rewindow.streams.metrics import SUPPRESSION_EMIT, SUPPRESSION_OVERTIME
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.refusals import Refusal, refused

Steps = list[tuple[str, int, list[str]]]
Sizes = tuple[int, int | None, int]
"""Size, advance, grace."""


def finals(size: int, advance: int | None = None, grace: int = 0) -> TopologyTestDriver:
    """Concatenate the values of each window. Each value is its record's index in the input."""
    builder = StreamsBuilder()
    windows = TimeWindows.of(f"{size}ms", grace=f"{grace}ms")
    windows = windows.advance_by(f"{advance}ms") if advance else windows
    windowed = builder.stream("in").group_by_key().windowed_by(windows)
    table = windowed.aggregate(lambda: "", lambda _key, value, text: f"{text}{value}", store="texts")
    table.suppress(until_window_closes()).to_stream().to("out")
    return TopologyTestDriver(builder.build())


EXAMPLES: dict[str, tuple[Sizes, Steps]] = {
    "S01": (
        (10, None, 5),
        [
            ("b", 2, []),
            ("a", 9, []),
            ("a", 14, []),
            ("c", 15, ["a[0,10)=2@9", "b[0,10)=1@2"]),
            ("d", 24, []),
            ("d", 25, ["a[10,20)=3@14", "c[10,20)=4@15"]),
            ("d", 60, ["d[20,30)=56@25"]),
        ],
    ),
    "S02": (
        (10, None, 0),
        [
            ("b", 2, []),
            ("a", 9, []),
            ("ab", 5, []),
            ("B", 1, []),
            ("z", 10, ["B[0,10)=4@1", "a[0,10)=2@9", "ab[0,10)=3@5", "b[0,10)=1@2"]),
        ],
    ),
    "S03": ((10, None, 0), [("a", 9, []), ("a", 10, ["a[0,10)=1@9"]), ("a", 19, []), ("a", 20, ["a[10,20)=23@19"])]),
    "S05": (
        (10, 5, 0),
        [
            ("a", 2, []),
            ("a", 7, []),
            ("a", 10, ["a[0,10)=12@7"]),
            ("a", 14, []),
            ("a", 30, ["a[5,15)=234@14", "a[10,20)=34@14"]),
        ],
    ),
    "S20": (
        (10, None, 5),
        [("a", 3, []), ("c", 15, ["a[0,10)=1@3"]), ("a", 4, []), ("c", 24, [])],
    ),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(("sizes", "steps"), EXAMPLES.values(), ids=list(EXAMPLES))
def test_example(sizes: Sizes, steps: Steps, *, cut: bool) -> None:
    driver, emitted = finals(*sizes), 0
    for number, (key, timestamp, expected) in enumerate(steps, start=1):
        driver.pipe("in", key, number, timestamp)
        got = [
            f"{r.key.key}[{r.key.window.start_ms},{r.key.window.end_ms})={r.value}@{r.timestamp}"
            for r in driver.read("out")
        ]
        assert got == expected, (key, timestamp)
        emitted += len(got)
        if cut:
            driver.cut()
    assert sum(row["total"] for row in driver.metrics if row["name"] == SUPPRESSION_EMIT) == emitted


def test_s04_until_window_closes_needs_windows() -> None:
    table = StreamsBuilder().stream("in").group_by_key().count(store="counts")
    with refused("suppress-without-windows"):
        table.suppress(until_window_closes())


def test_a_tombstone_of_a_window_is_not_sent() -> None:
    builder = StreamsBuilder()
    windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of("10ms", grace="0s"))
    table = windowed.count(store="counts").filter(lambda _key, count: count > 1)
    table.suppress(until_window_closes()).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for key, timestamp in (("a", 1), ("b", 2), ("b", 3), ("z", 10), ("z", 11), ("z", 20), ("z", 21)):
        driver.pipe("in", key, None, timestamp)
    assert [(record.key.key, record.value) for record in driver.read("out")] == [("b", 2), ("z", 2)]


def test_buffered_updates_are_in_a_store() -> None:
    driver = finals(10)
    driver.pipe("in", "a", 1, 5)
    ((key, held),) = driver.store("texts-suppress").items()
    assert (key.key, held.value, held.timestamp, held.buffer_time) == ("a", "1", 5, 10)


def held_back(*args: Any, name: str = "held", **words: Any) -> TopologyTestDriver:
    """Suppress a table of texts."""
    semantics = words.pop("semantics", None)
    builder = StreamsBuilder()
    table = builder.table("in", store="in").suppress(until_time_limit(*args, **words), name=name)
    table.to_stream().to("out")
    return TopologyTestDriver(builder.build(), semantics=semantics)


Row = tuple[str, str | None, int, list[str]]
LIMITED: dict[str, tuple[tuple[Any, ...], list[Row]]] = {
    "S09": (
        ("2ms",),
        [
            ("A", "w", 0, []),
            ("A", "x", 1, []),
            ("B", "y", 2, ["A=x@1"]),
            ("C", "z", 3, []),
            ("D", "v", 5, ["B=y@2", "C=z@3"]),
        ],
    ),
    "S10": (("2ms",), [("A", "w", 3, []), ("A", "x", 1, []), ("B", "y", 1, ["B=y@1"]), ("C", "z", 5, ["A=x@1"])]),
    "S11": (
        ("1h", max_records(2)),
        [("A", "w", 0, []), ("A", "x", 1, []), ("B", "y", 2, []), ("C", "z", 0, ["A=x@1"])],
    ),
    "S11, a tie": (("1h", max_records(2)), [("D", "w", 0, []), ("E", "y", 2, []), ("C", "z", 0, ["C=z@0"])]),
    "S15, none": (("1h", max_records(0)), [("A", "w", 5, ["A=w@5"]), ("B", "x", 1, ["B=x@1"])]),
    "S15, one": (("1h", max_records(1)), [("A", "w", 5, []), ("B", "x", 1, ["B=x@1"]), ("B", "y", 7, ["A=w@5"])]),
    "S15, 31 bytes": (("1h", max_bytes(31)), [("A", "w", 5, ["A=w@5"]), ("B", "x", 6, ["B=x@6"])]),
    "S15, 32 bytes": (("1h", max_bytes(32)), [("A", "w", 5, []), ("B", "x", 6, ["A=w@5"])]),
    "S15, 64 bytes": (("1h", max_bytes(64)), [("A", "w", 5, []), ("B", "x", 6, []), ("C", "y", 7, ["A=w@5"])]),
    "S17": (
        ("2ms",),
        [("A", "w", 0, []), ("A", None, 1, []), ("B", None, 2, ["A=None@1"]), ("C", "v", 5, ["B=None@2"])],
    ),
    "S18": (("0s",), [("A", "w", 5, ["A=w@5"]), ("B", "x", 3, ["B=x@3"])]),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(("given", "steps"), LIMITED.values(), ids=list(LIMITED))
def test_time_limits_and_bounds(given: tuple[Any, ...], steps: list[Any], *, cut: bool) -> None:
    driver = held_back(*given)
    for key, value, timestamp, expected in steps:
        driver.pipe("in", key, value, timestamp)
        assert [f"{r.key}={r.value}@{r.timestamp}" for r in driver.read("out")] == expected, (key, timestamp)
        if cut:
            driver.cut()


def test_a_watermark_advances_the_clock_and_a_final_run_empties_the_buffer() -> None:
    driver = held_back("10ms", semantics=Semantics(stream_time_from="watermark", wall_clock="run"))
    driver.pipe("in", "A", "x", 5)
    driver.advance_watermark(14)
    assert driver.read("out") == []
    driver.advance_watermark(15)
    assert [(r.key, r.timestamp) for r in driver.read("out")] == [("A", 5)]
    driver.pipe("in", "B", "y", 20)
    driver.cut()
    driver.finish()
    assert [(r.key, r.timestamp) for r in driver.read("out")] == [("B", 20)]


def test_a_final_run_closes_unlimited_windows() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(UnlimitedWindows.of())
    grouped.count(store="counts").suppress(until_window_closes()).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", 1, 5)
    driver.pipe("in", "a", 1, 10**12)
    assert driver.read("out") == []
    driver.finish()
    assert [(r.key.key, r.value) for r in driver.read("out")] == [("a", 2)]


def test_the_overtime_is_how_long_the_last_update_waited() -> None:
    driver = held_back("10ms")
    driver.pipe("in", "A", "x", 0)
    driver.pipe("in", "A", "y", 4)
    driver.pipe("in", "B", "z", 10)  # A's last update is of 4, and leaves at 10
    (row,) = [row for row in driver.metrics if row["name"] == SUPPRESSION_OVERTIME]
    assert (row["count"], row["minimum"], row["total"]) == (1, 6, 6)


def test_a_buffer_beyond_its_limit_fails_and_names_the_record() -> None:
    driver = held_back("1h", max_bytes(40).shut_down_when_full(), name="slow")
    driver.pipe("in", "A", "x", 0)
    with refused(
        "suppress-buffer-full",
        node="slow",
        topic="in",
        partition=0,
        offset=1,
        records=2,
        size=64,
        limits="max_bytes=40",
    ):
        driver.pipe("in", "B", "y", 1)


def test_only_options_that_affect_results_are_in_the_fingerprint() -> None:
    def print_of(*args: Any, **words: Any) -> str:
        builder = StreamsBuilder()
        builder.table("in", store="in").suppress(until_time_limit(*args, **words), name="held").to_stream().to("out")
        return builder.build().fingerprint()

    few = max_records(3)
    assert print_of("1h") == print_of("1h", few.shut_down_when_full()) == print_of("1h", few.spill_to_disk_when_full())
    others = [print_of("2h"), print_of("1h", few), print_of("1h", max_records(4)), print_of("1h", buffer_time="latest")]
    assert len({print_of("1h"), *others}) == 5


@pytest.mark.parametrize(
    ("made", "refusal"),
    [
        (lambda: until_window_closes(max_records(3)), refused("suppress-buffer-not-strict")),
        (lambda: until_window_closes(unbounded().emit_early_when_full()), refused("suppress-buffer-not-strict")),
        (lambda: until_window_closes("1h"), refused("suppress-buffer-invalid")),
        (lambda: until_time_limit("-1s"), refused("suppress-time-negative")),
        (
            lambda: until_time_limit("1s", buffer_time="newest"),
            refused("buffer-time-unknown", words="first, latest, window_start"),
        ),
        (lambda: max_records(-1), refused("buffer-limit-invalid")),
        (lambda: max_bytes(True), refused("buffer-limit-invalid")),
        (lambda: unbounded().with_max_bytes("3"), refused("buffer-limit-invalid")),  # type: ignore[arg-type]
    ],
)
def test_misuse_is_rejected_with_the_fix(made: Callable[[], object], refusal: Refusal) -> None:
    with refusal:
        made()


def test_buffer_time_window_start_needs_windows() -> None:
    table = StreamsBuilder().table("in", store="in")
    with refused("suppress-without-windows"):
        table.suppress(until_time_limit("1s", buffer_time="window_start"))


def test_removing_all_limits_makes_a_buffer_strict() -> None:
    assert max_records(3).with_no_bound().is_strict
    assert unbounded().with_max_records(3).is_strict
    assert not max_records(3).with_max_bytes(5).is_strict
