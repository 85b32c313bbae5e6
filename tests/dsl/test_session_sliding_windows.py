"""Session, sliding and unlimited windows: examples W09 to W18 of the semantics reference, and invalid windows."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    StreamsBuilder,
    UnlimitedWindows,
    session_store,
    window_store,
)
from rewindow.errors import ConfigError
from rewindow.streams.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.streams.record import MAX_MS
from tests.dsl.windowed import counted, sessions, sliding, texts, told
from tests.refusals import Refusal, refused

Steps = list[tuple[str | None, Any, int, list[str]]]


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


def test_invalid_windows_are_rejected() -> None:
    for wrong in (
        lambda: sessions(-1), lambda: sessions(1, -1), lambda: sliding(-1), lambda: sliding(1, -1),
        lambda: UnlimitedWindows.of().start_on("-1ms"),
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            wrong()
    with refused("windows-invalid"):
        StreamsBuilder().stream("in").group_by_key().windowed_by("1h")  # type: ignore[call-overload]


def test_windows_have_a_description() -> None:
    one, other, never = sessions(5, 3), sliding(10, 3), UnlimitedWindows.of()
    assert (one.grace_ms, other.grace_ms, never.grace_ms) == (3, 3, 0)
    assert (one.final_after_end_ms, other.final_after_end_ms, never.final_after_end_ms) == (9, 4, 0)
    assert (one.needed_retention_ms, other.needed_retention_ms, never.needed_retention_ms) == (8, 23, MAX_MS)
    assert (one.holds_ms, other.holds_ms) == (9, 14)


@pytest.mark.parametrize(
    ("windows", "ready", "refusal"),
    [
        (
            sessions(5, 3),
            session_store("n", retention="7ms"),
            refused("store-retention-too-short", retention="7ms", minimum="8ms"),
        ),
        (sessions(5), window_store("n", size="5ms", retention="9ms"), refused("store-kind-wrong")),
        (sliding(5), session_store("n", retention="99ms"), refused("store-kind-wrong")),
        (
            sliding(5),
            window_store("n", size="6ms", retention="99ms"),
            refused("store-window-size-differs", store_size="6ms"),
        ),
    ],
)
def test_a_ready_made_store_must_fit(windows: Any, ready: Any, refusal: Refusal) -> None:
    grouped = StreamsBuilder().stream("in").group_by_key().windowed_by(windows)
    with refusal:
        grouped.count(store=ready)
