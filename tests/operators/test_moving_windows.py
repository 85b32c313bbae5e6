"""Sessions, sliding and unlimited windows by the semantics reference's examples W09 to W18."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    Collect,
    Count,
    Materialized,
    Max,
    Mean,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Sum,
    UnlimitedWindows,
    Windowed,
    session_store,
    window_store,
)
from rewindow.core.metrics import EXPIRED_WINDOW_DROP, LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.core.record import MAX_MS, row_class
from rewindow.errors import ConfigError, TopologyError
from rewindow.testing import TopologyTestDriver

Steps = list[tuple[str | None, Any, int, list[str]]]


def sessions(gap: int, grace: int = 0) -> SessionWindows:
    return SessionWindows.of(f"{gap}ms", grace=f"{grace}ms")


def sliding(difference: int, grace: int = 0) -> SlidingWindows:
    return SlidingWindows.of(f"{difference}ms", grace=f"{grace}ms")


def texts(windows: Any, retention: int | None = None) -> TopologyTestDriver:
    """Join values as text, by window; ``del`` deletes the state."""
    builder = StreamsBuilder()
    functions: list[Any] = [str, lambda _key, value, text: None if value == "del" else f"{text}{value}"]
    if isinstance(windows, SessionWindows):
        functions.append(lambda _key, one, later: f"{one}{later}")
    grouped: Any = builder.stream("in").group_by_key().windowed_by(windows)
    grouped.aggregate(*functions, store=Materialized.as_("texts", retention=retention)).to_stream().to("out")
    return TopologyTestDriver(builder.build())


def told(driver: TopologyTestDriver) -> list[str]:
    """Return results as ``a[0,10]=12@9``."""
    return [f"{shown(record.key)}={record.value}@{record.timestamp}" for record in driver.read("out")]


def shown(key: Windowed) -> str:
    start_ms, end_ms, _ = key.window
    return f"{key.key}[{start_ms},{'MAX' if end_ms == MAX_MS else end_ms}]"


def counted(driver: TopologyTestDriver, name: str) -> int:
    return sum(row["total"] for row in driver.metrics if row["name"] == name)


W14 = [
    ("a", 1, 20, ["a[10,20]=1@20"]),
    ("a", 2, 25, ["a[21,31]=2@25", "a[15,25]=12@25"]),
    ("a", 3, 30, ["a[21,31]=23@30", "a[26,36]=3@30", "a[20,30]=123@30"]),
    (
        "a", 4, 22,
        ["a[21,31]=234@30", "a[20,30]=1234@30", "a[15,25]=124@25", "a[12,22]=14@22", "a[23,33]=23@30"],
    ),
]  # fmt: skip
EXAMPLES: dict[str, tuple[Any, int | None, Steps, int]] = {
    "W09 a record joins what it touches": (
        sessions(5, 100),
        None,
        [
            ("a", 1, 0, ["a[0,0]=1@0"]),
            ("a", 2, 5, ["a[0,0]=None@0", "a[0,5]=12@5"]),
            ("a", 3, 11, ["a[11,11]=3@11"]),
            ("a", 4, 8, ["a[0,5]=None@5", "a[11,11]=None@11", "a[0,11]=1234@11"]),
            ("a", 5, 3, ["a[0,11]=None@11", "a[0,11]=12345@11"]),
            ("a", 6, 20, ["a[20,20]=6@20"]),
            ("a", 7, 20, ["a[20,20]=67@20"]),
        ],
        0,
    ),
    "W10 what is late": (
        sessions(5),
        1000,
        [
            ("a", 1, 0, ["a[0,0]=1@0"]),
            ("b", 1, 5, ["b[5,5]=1@5"]),
            ("a", 2, 0, ["a[0,0]=12@0"]),
            ("b", 2, 6, ["b[5,5]=None@5", "b[5,6]=12@6"]),
            ("a", 3, 0, []),
            ("a", 4, 1, ["a[0,0]=None@0", "a[0,1]=124@1"]),
        ],
        1,
    ),
    "W11 what is as old as the default retention is seen no more": (
        sessions(5),
        None,
        [("a", 1, 0, ["a[0,0]=1@0"]), ("b", 1, 5, ["b[5,5]=1@5"]), ("a", 2, 5, ["a[5,5]=2@5"])],
        0,
    ),
    "W12 an old record joins an open session": (
        sessions(5),
        None,
        [
            ("a", 1, 10, ["a[10,10]=1@10"]),
            ("b", 1, 14, ["b[14,14]=1@14"]),
            ("a", 2, 6, ["a[10,10]=None@10", "a[6,10]=12@10"]),
            ("a", 3, 1, ["a[6,10]=None@10", "a[1,10]=123@10"]),
            ("a", 4, 8, ["a[1,10]=None@10", "a[1,10]=1234@10"]),
        ],
        0,
    ),
    "without gap and grace records of one time are together": (
        sessions(0),
        None,
        [("a", 1, 5, ["a[5,5]=1@5"]), ("a", 2, 5, ["a[5,5]=12@5"]), ("a", 3, 6, ["a[6,6]=3@6"]), ("a", 4, 5, [])],
        1,
    ),
    "a deleted session is not found": (
        sessions(5, 100),
        None,
        [
            ("a", 1, 0, ["a[0,0]=1@0"]),
            ("a", "del", 3, ["a[0,0]=None@0", "a[0,3]=None@3"]),
            ("a", 2, 4, ["a[4,4]=2@4"]),
            (None, 2, 900, []),
            ("a", None, 5, ["a[4,4]=None@4", "a[4,5]=2None@5"]),
        ],
        0,
    ),
    "W14 left and right windows": (sliding(10, 30), None, [*W14], 0),
    "W16 a window that is made twice is sent twice": (
        sliding(10, 30),
        None,
        [
            *W14,
            (
                "a",
                5,
                25,
                ["a[23,33]=235@30", "a[21,31]=2345@30", "a[20,30]=12345@30", "a[15,25]=1245@25", "a[26,36]=3@30"][:4],
            ),
            ("a", 6, 41, ["a[31,41]=6@41", "a[31,41]=6@41"]),
        ],
        0,
    ),
    "W15 early records share a window": (
        sliding(10, 30),
        None,
        [
            ("a", 1, 3, ["a[0,10]=1@3"]),
            ("a", 2, 7, ["a[4,14]=2@7", "a[0,10]=12@7"]),
            ("a", 3, 10, ["a[4,14]=23@10", "a[0,10]=123@10", "a[8,18]=3@10"]),
            ("a", 4, 12, ["a[8,18]=34@12", "a[4,14]=234@12", "a[11,21]=4@12", "a[2,12]=1234@12"]),
            ("a", 5, 1, ["a[0,10]=1235@10"]),
            ("a", 6, 0, ["a[1,11]=1235@10", "a[0,10]=12356@10"]),
        ],
        0,
    ),
    "W17 a sliding window takes records at its end and grace": (
        sliding(10),
        None,
        [
            ("a", 1, 20, ["a[10,20]=1@20"]),
            ("b", 1, 30, ["b[20,30]=1@30"]),
            ("a", 2, 20, []),
            ("b", 2, 31, ["b[31,41]=2@31", "b[21,31]=12@31"]),
            ("a", 3, 20, []),
            ("a", 4, 21, []),
            ("a", None, 40, []),
            (None, 1, 900, []),
        ],
        3,
    ),
    "W18 an unlimited window begins somewhere and never ends": (
        UnlimitedWindows.of().start_on("5ms"),
        None,
        [
            ("a", 1, 3, []),
            ("a", 2, 5, ["a[5,MAX]=2@5"]),
            ("a", 3, 900, ["a[5,MAX]=23@900"]),
            ("a", 4, 6, ["a[5,MAX]=234@900"]),
        ],
        0,
    ),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(("windows", "retention", "steps", "late"), EXAMPLES.values(), ids=EXAMPLES)
def test_example(windows: Any, retention: int | None, steps: Steps, late: int, *, cut: bool) -> None:
    driver = texts(windows, retention)
    for key, value, timestamp, expected in steps:
        driver.pipe("in", key, value, timestamp)
        assert told(driver) == expected, (key, value, timestamp)
        if cut:
            driver.cut()
    assert counted(driver, LATE_RECORD_DROP) == late
    assert counted(driver, SKIPPED_RECORDS) == sum(key is None for key, *_ in steps) + (windows == sliding(10))


def test_a_session_that_is_put_too_late_is_sent_and_counted_as_expired() -> None:
    driver = texts(sessions(5))
    for key, timestamp in (("b", 5), ("a", 0)):
        driver.pipe("in", key, 1, timestamp)
    assert told(driver) == ["b[5,5]=1@5", "a[0,0]=1@0"]
    assert counted(driver, EXPIRED_WINDOW_DROP) == 1
    assert counted(driver, LATE_RECORD_DROP) == 0
    assert len(driver.store("texts")) == 1


ROW = row_class(("amount", "city"))


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_built_in_aggregates_of_sessions_that_become_one(*, cut: bool) -> None:
    builder = StreamsBuilder()
    parts = {
        "n": Count(),
        "total": Sum("amount"),
        "mean": Mean("amount"),
        "most": Max("amount"),
        "cities": Collect("city"),
    }
    stream = builder.stream("in").map_values(lambda pair: pair and ROW(*pair), value=ROW)
    stream.group_by_key().windowed_by(sessions(5, 100)).aggregate(parts, store="parts").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for value, timestamp in (((4, "x"), 0), ((None, None), 10), ((1, "y"), 20), ((7, None), 5), ((2, "z"), 15)):
        driver.pipe("in", "a", value, timestamp)
        if cut:
            driver.cut()
    assert tuple(driver.read("out")[-1].value) == (5, 14, 3.5, 7, ["x", "y", "z"])


def test_a_reducer_makes_one_of_two_sessions_and_the_earlier_one_comes_first() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(sessions(5, 100))
    grouped.reduce(lambda one, other: f"({one}{other})", store="reduced").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for value, timestamp in (("2", 10), ("1", 0), ("3", 5)):
        driver.pipe("in", "a", value, timestamp)
    assert told(driver)[-1] == "a[0,10]=((12)3)@10"


def test_a_merger_may_change_in_place_what_it_is_given() -> None:
    def merge(_key: Any, one: list[int], later: list[int]) -> list[int]:
        later[:0] = one
        return later

    def add(_key: Any, value: int, state: list[int]) -> list[int]:
        state.append(value)
        return state

    start: list[int] = []
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(sessions(5, 100))
    grouped.aggregate(lambda: start, add, merge, store="lists", value=list[int]).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for value, timestamp in ((1, 0), (2, 10), (3, 5), (4, 40)):
        driver.pipe("in", "a", value, timestamp)
    assert told(driver)[-2:] == ["a[0,10]=[1, 2, 3]@10", "a[40,40]=[4]@40"]


def test_an_update_says_what_was_sent_before() -> None:
    """Counted downstream by the key without its window: each session and window counts once (D13)."""
    for windows, total in ((sessions(5, 100), [1, 2, 1, 1, 1]), (sliding(4, 100), [1, 1, 2])):
        builder = StreamsBuilder()
        counts = builder.stream("in").group_by_key().windowed_by(windows).count(store="n")
        counts.group_by(lambda key, value: (key.key, value)).count(store="windows").to_stream().to("out")
        driver = TopologyTestDriver(builder.build())
        for timestamp in (9, 9, 30) if isinstance(windows, SlidingWindows) else (0, 9, 5, 5):
            driver.pipe("in", "a", 1, timestamp)
        assert driver.store("windows")["a"].value == total[-1]


def test_sessions_need_a_merger() -> None:
    grouped = StreamsBuilder().stream("in").group_by_key().windowed_by(sessions(5))
    with pytest.raises(TopologyError, match=r"merger\(key, one, later\)"):
        grouped.aggregate(list, lambda _key, value, state: [*state, value], store="lists")
    with pytest.raises(TopologyError, match=r"merge\(state, later\)"):
        grouped.aggregate({"n": Count(), "own": OwnAggregate()}, store="parts")


class OwnAggregate:
    """Somebody's aggregator, which cannot merge."""

    def start(self) -> int:
        return 0

    def add(self, key: Any, value: Any, state: int) -> int:
        return state + 1

    def result(self, state: int) -> int:
        return state

    def state_type(self, value: Any) -> Any:
        return int

    def result_type(self, value: Any) -> Any:
        return int


def test_windows_that_cannot_be_are_refused() -> None:
    for wrong in (
        lambda: sessions(-1), lambda: sessions(1, -1), lambda: sliding(-1), lambda: sliding(1, -1),
        lambda: UnlimitedWindows.of().start_on("-1ms"),
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            wrong()
    with pytest.raises(TopologyError, match="give TimeWindows"):
        StreamsBuilder().stream("in").group_by_key().windowed_by("1h")  # type: ignore[call-overload]


def test_what_windows_say_of_themselves() -> None:
    one, other, never = sessions(5, 3), sliding(10, 3), UnlimitedWindows.of()
    assert (one.grace_ms, other.grace_ms, never.grace_ms) == (3, 3, 0)
    assert (one.final_after_end_ms, other.final_after_end_ms, never.final_after_end_ms) == (9, 4, 0)
    assert (one.needed_retention_ms, other.needed_retention_ms, never.needed_retention_ms) == (8, 23, MAX_MS)
    assert (one.holds_ms, other.holds_ms) == (9, 14)


def test_sessions_keep_until_as_a_retention() -> None:
    with pytest.warns(DeprecationWarning, match="Materialized"):
        windows = sessions(5).until("1h")
    assert windows.retention_ms == 3_600_000


@pytest.mark.parametrize(
    ("windows", "ready", "message"),
    [
        (sessions(5, 3), session_store("n", retention=7), "7 ms is less than its windows need, 8 ms"),
        (sessions(5), window_store("n", size=5, retention=9), "window store where a session store is needed"),
        (sliding(5), session_store("n", retention=99), "session store where a window store is needed"),
        (sliding(5), window_store("n", size=6, retention=99), "made for windows of 6 ms"),
    ],
)
def test_a_ready_made_store_must_fit(windows: Any, ready: Any, message: str) -> None:
    grouped = StreamsBuilder().stream("in").group_by_key().windowed_by(windows)
    with pytest.raises(TopologyError, match=message):
        grouped.count(store=ready)


def test_sessions_in_a_ready_made_store() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(sessions(5))
    grouped.count(store=session_store("n", retention="1d", key=str)).to_stream().to("out")
    topology = builder.build()
    assert (topology.stores["n"].retention_ms, topology.stores["n"].value) == (86_400_000, int)
    driver = TopologyTestDriver(topology)
    for timestamp in (0, 5):
        driver.pipe("in", "a", 1, timestamp)
        driver.cut()
    assert told(driver) == ["a[0,0]=1@0", "a[0,0]=None@0", "a[0,5]=2@5"]
