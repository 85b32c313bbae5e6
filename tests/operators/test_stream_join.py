"""Joins of two streams, by the semantics reference's examples J01 to J09, J11, J16 and J20 to J24, and D12, D18, D22."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import JoinWindows, KStream, Materialized, StreamsBuilder, TimeWindows, Topology, join_store
from rewindow.core.binding import EqualType, LogType
from rewindow.core.metrics import EXPIRED_WINDOW_DROP, SKIPPED_RECORDS
from rewindow.core.semantics import Semantics
from rewindow.errors import TopologyError
from rewindow.testing import TopologyTestDriver

Step = tuple[str, str | None, Any, int, list[str]]


def pair(left: Any, right: Any) -> str:
    return f"{left or 'null'}-{right or 'null'}"


def within(before: int, after: int | None = None, grace: int = 0) -> JoinWindows:
    windows = JoinWindows.of("1d", grace=f"{grace}ms").before(f"{before}ms")
    return windows.after(f"{before if after is None else after}ms")


def topology(how: str, windows: JoinWindows, **options: Any) -> Topology:
    builder = StreamsBuilder()
    left, right = builder.stream("L"), builder.stream("R")
    verbs = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}
    verbs[how](right, pair, windows, name="j", **options).to("out")
    return builder.build()


def told(driver: TopologyTestDriver) -> list[str]:
    """Return results as ``k:a-x@9``."""
    return [f"{record.key}:{record.value}@{record.timestamp}" for record in driver.read("out")]


def play(driver: TopologyTestDriver, steps: list[Step], *, cut: bool) -> None:
    for topic, key, value, timestamp, expected in steps:
        driver.pipe(topic, key, value, timestamp)
        assert told(driver) == expected, (topic, key, value, timestamp)
        if cut:
            driver.cut()


def dropped(driver: TopologyTestDriver) -> list[tuple[str, str, int]]:
    names = (SKIPPED_RECORDS, EXPIRED_WINDOW_DROP)
    return [
        (row["node"], row["reason"], row["total"]) for row in driver.metrics if row["name"] in names and row["total"]
    ]


J07 = [
    ("L", "k1", "a", 0, []),
    ("L", "k2", "b", 5, []),
    ("L", "k3", "c", 8, []),
    ("L", "k4", "d", 12, ["k1:a-null@0"]),
    ("L", "k5", "e", 16, ["k2:b-null@5"]),
    ("L", "k6", "f", 18, []),
    ("L", "k7", "g", 19, ["k3:c-null@8"]),
]
EXAMPLES: dict[str, tuple[str, JoinWindows, list[Step]]] = {
    "J01 the bounds are part of the window": (
        "inner",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("R", "k", "x", 10, ["k:a-x@10"]),
            ("R", "k", "y", 11, []),
            ("L", "k", "b", 21, ["k:b-y@21"]),
            ("L", "k", "c", 22, []),
            ("R", "k", "z", 12, ["k:b-z@21", "k:c-z@22"]),
        ],
    ),
    "J02 a lone record is sent once its window is past": (
        "left",
        within(10),
        [("L", "k", "a", 0, []), ("R", "q", "x", 10, []), ("R", "q", "x", 11, ["k:a-null@0"])],
    ),
    "J03 and its grace": (
        "left",
        within(10, grace=5),
        [("L", "k", "a", 0, []), ("R", "q", "x", 15, []), ("R", "q", "x", 16, ["k:a-null@0"])],
    ),
    "J04 a late record waits as long as any (D12)": (
        "left",
        within(10, grace=5),
        [
            ("L", "z", "z", 20, []),
            ("L", "k", "a", 9, []),
            ("R", "k", "x", 9, ["k:a-x@9"]),
            ("L", "m", "b", 9, []),
            ("L", "y", "y", 25, ["m:b-null@9"]),
        ],
    ),
    "one that comes after its time is sent at once, and joined with what is later still": (
        "left",
        within(10, grace=5),
        [
            ("L", "z", "z", 25, []),
            ("L", "k", "a", 10, []),
            ("L", "k", "b", 9, ["k:b-null@9"]),
            ("R", "k", "x", 9, ["k:b-x@9", "k:a-x@10"]),
        ],
    ),
    "J05 right before left, then by key bytes": (
        "outer",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("R", "q", "x", 0, []),
            ("R", "b", "y", 0, []),
            ("L", "b2", "c", 0, []),
            ("L", "z", "d", 11, ["b:null-y@0", "q:null-x@0", "b2:c-null@0", "k:a-null@0"]),
        ],
    ),
    "J06 one side only": (
        "left",
        within(0, 10),
        [("L", "k", "a", 5, []), ("R", "k", "x", 4, []), ("R", "k", "y", 15, ["k:a-y@15"]), ("R", "k", "z", 16, [])],
    ),
    "J07 none comes too late (D12)": ("left", within(10), J07),
    "J08 nulls, left": (
        "left",
        within(10),
        [
            ("L", None, "a", 0, ["None:a-null@0"]),
            ("L", "k", None, 0, []),
            ("R", None, "x", 0, []),
            ("R", "k", None, 0, []),
        ],
    ),
    "J08 nulls, outer": (
        "outer",
        within(10),
        [("R", None, "x", 3, ["None:null-x@3"]), ("L", None, "a", 1, ["None:a-null@1"]), ("L", None, None, 1, [])],
    ),
    "J09 late records are joined as far as their partners are retained": (
        "inner",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("L", "k", "b", 19, []),
            ("R", "k", "x", 5, ["k:a-x@5"]),
            ("L", "k", "c", 20, []),
            ("R", "k", "y", 5, []),
        ],
    ),
    "J11 partners come by time, then as they came, and again": (
        "inner",
        within(10),
        [
            ("L", "k", "a", 5, []),
            ("L", "k", "b", 5, []),
            ("L", "k", "c", 3, []),
            ("R", "k", "x", 6, ["k:c-x@6", "k:a-x@6", "k:b-x@6"]),
            ("R", "k", "y", 6, ["k:c-y@6", "k:a-y@6", "k:b-y@6"]),
        ],
    ),
    "J20 a record without a value moves the clock, and what is due is sent (D12)": (
        "left",
        within(10),
        [
            ("L", "k", "a", 0, []),
            ("L", None, "n", 50, ["k:a-null@0", "None:n-null@50"]),
            ("L", "j", "b", 30, ["j:b-null@30"]),
            ("L", "m", "c", 50, []),
            ("R", "m", None, 61, ["m:c-null@50"]),
        ],
    ),
    "J21 two of one key and time find their partner together": (
        "outer",
        within(10),
        [
            ("L", "k", "l1", 0, []),
            ("L", "k", "l2", 0, []),
            ("R", "k", "r", 5, ["k:l1-r@5", "k:l2-r@5"]),
            ("R", "k", "r2", 20, []),
            ("L", "q", "l3", 31, ["k:null-r2@20"]),
        ],
    ),
    "J23 the bound of a late record": (
        "left",
        within(10),
        [
            ("L", "z", "z", 20, []),
            ("L", "a", "a", 10, []),
            ("L", "b", "b", 9, ["b:b-null@9"]),
            ("L", "z", "z", 21, ["a:a-null@10"]),
        ],
    ),
    "J24 what is due comes before a record's own partners": (
        "left",
        within(10),
        [("L", "k", "a", 0, []), ("L", "k", "b", 5, []), ("R", "k", "r", 11, ["k:a-null@0", "k:b-r@11"])],
    ),
    "the right record is later only": (
        "outer",
        within(-2, 10),
        [
            ("L", "k", "a", 20, []),
            ("R", "k", "x", 21, ["k:null-x@21"]),
            ("R", "k", "y", 22, ["k:a-y@22"]),
            ("R", "k", "z", 30, ["k:a-z@30"]),
            ("R", "k", "w", 31, ["k:null-w@31"]),
        ],
    ),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: str, cut: bool) -> None:  # noqa: FBT001 - a parameter of the test
    how, windows, steps = EXAMPLES[example]
    play(TopologyTestDriver(topology(how, windows)), steps, cut=cut)


def test_a_stream_joins_itself_each_record_with_itself_once() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.join(stream, pair, within(10), name="j").to("out")
    driver = TopologyTestDriver(builder.build())
    play(
        driver,
        [
            ("in", "k", "a", 0, ["k:a-a@0"]),
            ("in", "k", "b", 5, ["k:b-a@5", "k:a-b@5", "k:b-b@5"]),
            ("in", "k", "c", 3, ["k:c-a@3", "k:c-b@5", "k:a-c@3", "k:c-c@3", "k:b-c@5"]),
        ],
        cut=False,
    )


def test_the_old_windows_without_grace_send_a_lone_record_at_once_and_join_it_later() -> None:
    with pytest.warns(DeprecationWarning, match="name the grace"):
        windows = JoinWindows.of("10ms")
    part = topology("left", windows)
    assert list(part.stores) == ["j-left", "j-right"]
    assert part.watermark_lags()["out-sink"] == 0
    play(TopologyTestDriver(part), [("L", "k", "a", 0, ["k:a-null@0"]), ("R", "k", "x", 5, ["k:a-x@5"])], cut=True)


def test_what_is_skipped_or_no_more_retained_is_counted_by_reason() -> None:
    driver = TopologyTestDriver(topology("left", within(5)))
    for topic, key, value, timestamp in [
        ("L", "k", None, 0), ("R", None, "x", 0), ("R", "k", None, 0), ("L", "k", "a", 20), ("L", "k", "b", 10),
    ]:  # fmt: skip
        driver.pipe(topic, key, value, timestamp)
    assert dropped(driver) == [("j", "null-key", 1), ("j", "null-value", 2), ("j-left", "window-expired", 1)]
    texts = [(one.node, one.reason, one.record) for one in driver.dropped]
    assert texts[0][:2] == ("j", "null-value")
    assert '"k"' in texts[0][2]
    assert "Sided" not in str(texts)


def test_the_watermark_ends_the_waiting_of_lone_records() -> None:
    by_watermark = Semantics(stream_time_from="watermark")
    driver = TopologyTestDriver(topology("outer", within(10, 4, grace=5)), semantics=by_watermark)
    driver.pipe("L", "a", "l", 20)
    driver.pipe("R", "b", "r", 20)
    driver.advance_watermark(29)
    assert told(driver) == []
    driver.advance_watermark(30)
    assert told(driver) == ["a:l-null@20"]
    driver.advance_watermark(36)
    assert told(driver) == ["b:null-r@20"]
    driver.pipe("L", "c", "late", 26)
    assert told(driver) == ["c:late-null@26"]


def test_the_end_of_all_sends_every_lone_record() -> None:
    driver = TopologyTestDriver(topology("outer", within(10, grace=5)))
    driver.pipe("L", "a", "l", 20)
    driver.pipe("R", "b", "r", 20)
    driver.finish()
    assert told(driver) == ["b:null-r@20", "a:l-null@20"]


def test_the_watermark_below_is_lowered_by_what_a_lone_record_may_wait() -> None:
    for how, held in {"inner": 0, "left": 19, "outer": 19}.items():
        assert topology(how, within(10, 4, grace=5)).watermark_lags()["out-sink"] == held


def test_a_window_below_a_join_counts_every_lone_record() -> None:
    builder = StreamsBuilder()
    joined = builder.stream("L").left_join(builder.stream("R"), pair, within(10, grace=0), name="j")
    windows = TimeWindows.of("10ms", grace="0ms")
    joined.group_by_key().windowed_by(windows).count(store="n").to_stream().map(lambda w, n: (w.key, n)).to("out")
    driver = TopologyTestDriver(builder.build(), semantics=Semantics(stream_time_from="watermark"))
    driver.pipe("L", "a", "l", 5)
    driver.advance_watermark(14)
    driver.pipe("L", "a", "l", 9)
    driver.advance_watermark(40)
    assert told(driver) == ["a:1@5", "a:2@9"]


def test_sides_that_were_re_keyed_meet_through_repartitions_named_after_the_join() -> None:
    builder = StreamsBuilder()
    left = builder.stream("L").select_key(lambda _key, value: value[0])
    right = builder.stream("R").map(lambda _key, value: (value[0], value))
    left.outer_join(right, pair, within(10), name="j").to("out")
    part = builder.build()
    topics = [source.topic for one in part.sub_topologies() for source in one.sources]
    assert topics == ["L", "R", "j-left-repartition", "j-right-repartition"]
    driver = TopologyTestDriver(part, partitions=3)
    play(
        driver,
        [("L", "1", "ax", 0, []), ("R", "2", "ay", 5, ["a:ax-ay@5"]), ("R", "3", "ay", 4, ["a:ax-ay@4"])],
        cut=True,
    )


def test_a_lone_record_whose_new_key_is_null_crosses_the_repartition() -> None:
    builder = StreamsBuilder()
    left = builder.stream("L").select_key(lambda _key, _value: None, key=str)
    left.left_join(builder.stream("R"), pair, within(10), name="j").to("out")
    play(TopologyTestDriver(builder.build(), partitions=2), [("L", "1", "a", 0, ["None:a-null@0"])], cut=True)


def test_the_joiner_may_have_the_key_and_says_the_type() -> None:
    def keyed(key: str, left: str, right: str | None) -> str:
        return f"{key}:{left}:{right}"

    builder = StreamsBuilder()
    joined = builder.stream("L").left_join(builder.stream("R"), keyed, within(10), name="j", with_key=True)
    assert (joined.value, joined.is_rekeyed) == (str, False)
    joined.to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("R", "k", "x", 3)
    driver.pipe("L", "k", "a", 3)
    assert told(driver) == ["k:k:a:x@3"]


def test_the_keys_of_an_outer_join_have_the_type_that_both_sides_have() -> None:
    left, right = streams()
    assert left.left_join(right, pair, within(1), name="one").key == LogType("L", "key")
    assert left.outer_join(right, pair, within(1), name="two").key == EqualType(
        (LogType("L", "key"), LogType("R", "key"))
    )
    assert left.outer_join(left, pair, within(1), name="three").key == LogType("L", "key")


def retained(**options: Any) -> dict[str, int]:
    return {name: store.retention_ms for name, store in topology("left", within(10, grace=5), **options).stores.items()}


def test_the_retention_of_the_stores_is_apart_from_the_grace() -> None:
    assert retained() == {"j-left": 25, "j-left-unmatched": 0, "j-right": 25}
    longer = retained(store=Materialized.as_("pairs", retention="1s"))
    assert longer == {"pairs-left": 1_000, "pairs-left-unmatched": 0, "pairs-right": 1_000}
    own = retained(store=("mine", join_store("theirs", retention="2s")))
    assert own == {"mine": 25, "mine-unmatched": 0, "theirs": 2_000}
    with pytest.raises(TopologyError, match="less than its windows need, 25 ms"):
        retained(store=Materialized.as_("pairs", retention="24ms"))
    for both in (join_store("one", retention="2s"), ("one", "one")):
        with pytest.raises(TopologyError, match="cannot keep both sides"):
            retained(store=both)


def test_a_longer_retention_joins_what_is_later() -> None:
    steps: list[Step] = [
        ("L", "k", "a", 0, []),
        ("L", "k", "b", 200, ["k:a-null@0"]),
        ("R", "k", "x", 5, ["k:a-x@5"]),
    ]
    play(TopologyTestDriver(topology("left", within(10), store=Materialized.as_("j", retention="1s"))), steps, cut=True)


def streams() -> tuple[KStream, KStream]:
    builder = StreamsBuilder()
    return builder.stream("L"), builder.stream("R")


def test_wrong_use_is_an_error_that_says_what_to_do() -> None:
    left, right = streams()
    with pytest.raises(TopologyError, match=r"name the windows of two streams, as in JoinWindows\.of"):
        left.join(right, pair, "10m", name="j")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="name the windows"):
        left.join(right, pair, name="j")
    with pytest.raises(TopologyError, match=r"give their stores a name, name="):
        left.join(right, pair, within(1))
    with pytest.raises(TopologyError, match="that of their windows"):
        left.join(right, pair, within(1), name="j", grace="1s")
    with pytest.raises(TopologyError, match="give it a KStream or a KTable"):
        left.join(right.group_by_key(), pair, within(1), name="j")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="two builders"):
        left.join(streams()[1], pair, within(1), name="j")
    with pytest.raises(TopologyError, match="str and int"):
        left.select_key(lambda _k, v: v, key=str).join(
            right.select_key(lambda _k, v: v, key=int), pair, within(1), name="j"
        )


def test_the_description_names_what_changes_a_result() -> None:
    described = {
        topology(how, within(*spans)).fingerprint() for how in ("inner", "left", "outer") for spans in [(1, 2), (2, 2)]
    }
    assert len(described) == 6
