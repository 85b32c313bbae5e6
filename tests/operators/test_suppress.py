"""Suppress until a window closes, by the semantics reference's examples S01 to S05 and S20."""

from __future__ import annotations

import pytest

from rewindow import StreamsBuilder, TimeWindows, until_window_closes
from rewindow.core.metrics import SUPPRESSION_EMIT
from rewindow.errors import TopologyError
from rewindow.testing import TopologyTestDriver

Steps = list[tuple[str, int, list[str]]]
Sizes = tuple[int, int | None, int]
"""Size, advance, grace."""


def finals(size: int, advance: int | None = None, grace: int = 0) -> TopologyTestDriver:
    """Number the records of each window: values are joined, each being its place in the input."""
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


def test_s04_there_must_be_a_window() -> None:
    table = StreamsBuilder().stream("in").group_by_key().count(store="counts")
    with pytest.raises(TopologyError, match="there is no window; use windowed_by before"):
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


def test_what_is_held_back_is_in_a_store() -> None:
    driver = finals(10)
    driver.pipe("in", "a", 1, 5)
    ((key, held),) = driver.store("texts-suppress").items()
    assert (key.key, held.value, held.timestamp, held.buffer_time) == ("a", "1", 5, 10)
