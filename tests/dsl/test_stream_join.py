"""Stream-stream joins beyond the examples: watermarks, repartitions, stores, types, misuse."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import JoinWindows, KStream, Materialized, StreamsBuilder, TimeWindows, join_store
from rewindow.errors import TopologyError
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, SKIPPED_RECORDS
from rewindow.streams.serde.types_to_columns import EqualType, LogType
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.dsl.joined import Step, play, told
from tests.dsl.stream_joins import pair, topology, within
from tests.refusals import refused


def dropped(driver: TopologyTestDriver) -> list[tuple[str, str, int]]:
    names = (SKIPPED_RECORDS, EXPIRED_WINDOW_DROP)
    return [
        (row["node"], row["reason"], row["total"]) for row in driver.metrics if row["name"] in names and row["total"]
    ]


def test_in_a_self_join_each_record_joins_itself_once() -> None:
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


def test_a_negative_bound_before_the_epoch_counts_as_zero() -> None:
    driver = TopologyTestDriver(topology("inner", within(10, -5, grace=20)))
    for topic, value, at in [("R", "r0", 0), ("R", "r1", 1), ("L", "early", 3), ("L", "later", 6)]:
        driver.pipe(topic, "k", value, at)
    assert [record.value for record in driver.read("out")] == ["early-r0", "later-r0", "later-r1"]


def test_deprecated_windows_without_grace_send_an_unmatched_record_at_once() -> None:
    with pytest.warns(DeprecationWarning, match="name the grace"):
        windows = JoinWindows.of("10ms")
    part = topology("left", windows)
    assert list(part.stores) == ["j-left", "j-right"]
    assert part.watermark_lags()["out-sink"] == 0
    play(TopologyTestDriver(part), [("L", "k", "a", 0, ["k:a-null@0"]), ("R", "k", "x", 5, ["k:a-x@5"])], cut=True)


def test_skipped_and_expired_records_are_counted_by_reason() -> None:
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


def test_a_watermark_sends_unmatched_records() -> None:
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


def test_a_final_run_sends_every_unmatched_record() -> None:
    driver = TopologyTestDriver(topology("outer", within(10, grace=5)))
    driver.pipe("L", "a", "l", 20)
    driver.pipe("R", "b", "r", 20)
    driver.finish()
    assert told(driver) == ["b:null-r@20", "a:l-null@20"]


def test_the_watermark_below_is_lowered_by_the_longest_wait() -> None:
    for how, held in {"inner": 0, "left": 19, "outer": 19}.items():
        assert topology(how, within(10, 4, grace=5)).watermark_lags()["out-sink"] == held


def test_a_window_below_a_join_counts_every_unmatched_record() -> None:
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


def test_re_keyed_sides_cross_repartitions_named_after_the_join() -> None:
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


def test_an_unmatched_record_with_a_null_key_crosses_the_repartition() -> None:
    builder = StreamsBuilder()
    left = builder.stream("L").select_key(lambda _key, _value: None, key=str)
    left.left_join(builder.stream("R"), pair, within(10), name="j").to("out")
    play(TopologyTestDriver(builder.build(), partitions=2), [("L", "1", "a", 0, ["None:a-null@0"])], cut=True)


def test_the_joiner_can_take_the_key_and_declares_the_type() -> None:
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


def test_the_key_of_an_outer_join_has_the_common_type() -> None:
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
    with refused("store-retention-too-short", minimum="25ms"):
        retained(store=Materialized.as_("pairs", retention="24ms"))
    for both in (join_store("one", retention="2s"), ("one", "one")):
        with pytest.raises(TopologyError, match="cannot keep both sides"):
            retained(store=both)


def test_a_longer_retention_joins_later_records() -> None:
    steps: list[Step] = [
        ("L", "k", "a", 0, []),
        ("L", "k", "b", 200, ["k:a-null@0"]),
        ("R", "k", "x", 5, ["k:a-x@5"]),
    ]
    play(TopologyTestDriver(topology("left", within(10), store=Materialized.as_("j", retention="1s"))), steps, cut=True)


def streams() -> tuple[KStream, KStream]:
    builder = StreamsBuilder()
    return builder.stream("L"), builder.stream("R")


def test_misuse_is_rejected_with_the_fix() -> None:
    left, right = streams()
    with refused("stream-join-without-windows"):
        left.join(right, pair, "10m", name="j")  # type: ignore[arg-type]
    with refused("stream-join-without-windows"):
        left.join(right, pair, name="j")
    with refused("stream-join-unnamed"):
        left.join(right, pair, within(1))
    with refused("stream-join-grace-misplaced"):
        left.join(right, pair, within(1), name="j", grace="1s")
    with refused("join-input-invalid"):
        left.join(right.group_by_key(), pair, within(1), name="j")  # type: ignore[arg-type]
    with refused("sides-from-two-builders"):
        left.join(streams()[1], pair, within(1), name="j")
    with refused("join-key-types-differ", left="str", right="int"):
        left.select_key(lambda _k, v: v, key=str).join(
            right.select_key(lambda _k, v: v, key=int), pair, within(1), name="j"
        )


def test_the_description_covers_everything_that_affects_results() -> None:
    described = {
        topology(how, within(*spans)).fingerprint() for how in ("inner", "left", "outer") for spans in [(1, 2), (2, 2)]
    }
    assert len(described) == 6
