"""Stream-table joins: examples J10 and J12 to J14 of the semantics reference, KIP-914, KIP-923 and D22."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rewindow import Count, JoinWindows, KTable, StreamsBuilder, Topology, versioned_store
from rewindow.streams.metrics import SKIPPED_RECORDS
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.dsl.joined import Step, play, told
from tests.refusals import containing, refused

HISTORY = versioned_store("rows", history="100ms")


def pair(value: Any, row: Any) -> str:
    return f"{value}-{row or 'null'}"


def topology(how: str, store: Any = "rows", **options: Any) -> Topology:
    builder = StreamsBuilder()
    table = builder.table("T", store=store)
    stream = builder.stream("S")
    {"inner": stream.join, "left": stream.left_join}[how](table, pair, name="j", **options).to("out")
    return builder.build()


EXAMPLES: dict[str, tuple[Topology, list[Step]]] = {
    "J10 a record finds the table as it is": (
        topology("inner"),
        [
            ("S", "k", "s0", 0, []),
            ("T", "k", "t1", 10, []),
            ("S", "k", "s1", 5, ["k:s1-t1@5"]),
            ("T", "k", "t2", 3, []),
            ("S", "k", "s2", 20, ["k:s2-t2@20"]),
            ("T", "k", None, 21, []),
            ("S", "k", "s3", 22, []),
            ("S", None, "s", 23, []),
            ("S", "k", None, 23, []),
        ],
    ),
    "a left join sends what finds nothing": (
        topology("left"),
        [
            ("S", "k", "s0", 0, ["k:s0-null@0"]),
            ("S", None, "s", 3, ["None:s-null@3"]),
            ("S", "k", None, 3, []),
            ("T", "k", "t", 5, []),
            ("S", "k", "s1", 1, ["k:s1-t@1"]),
        ],
    ),
    "J12 of a versioned table a record finds what held at its time": (
        topology("inner", HISTORY),
        [
            ("T", "k", "t0", 0, []),
            ("T", "k", "t10", 10, []),
            ("S", "k", "a", 5, ["k:a-t0@5"]),
            ("S", "k", "b", 10, ["k:b-t10@10"]),
            ("T", "k", "t5", 5, []),
            ("S", "k", "c", 7, ["k:c-t5@7"]),
            ("T", "k", None, 20, []),
            ("S", "k", "d", 19, ["k:d-t10@19"]),
            ("S", "k", "e", 20, []),
            ("T", "z", "z", 200, []),
            ("S", "k", "f", 9, []),
        ],
    ),
    "J13 records wait for the grace": (
        topology("inner", HISTORY, grace="10ms"),
        [
            ("T", "k", "t0", 0, []),
            ("S", "k", "s1", 1, []),
            ("S", "k", "s5", 5, []),
            ("T", "k", "t4", 4, []),
            ("S", "k", "s11", 11, ["k:s1-t0@1"]),
            ("S", "k", "s15", 15, ["k:s5-t4@5"]),
            ("S", "k", "s4", 4, ["k:s4-t4@4"]),
            ("S", "k", "s30", 30, ["k:s11-t4@11", "k:s15-t4@15"]),
            ("T", "k", "t29", 29, []),
            ("S", "k", "s40", 40, ["k:s30-t29@30"]),
        ],
    ),
    "J14 one without a key has nothing to wait for": (
        topology("left", HISTORY, grace="10ms"),
        [
            ("S", "k", "s1", 1, []),
            ("S", None, "s90", 90, ["None:s90-null@90"]),
            ("S", "k", None, 91, []),
            ("S", "k", "s11", 11, ["k:s1-null@1"]),
        ],
    ),
    "those that are due together leave by time, key bytes and arrival": (
        topology("left", HISTORY, grace="10ms"),
        [
            ("S", "b", "1", 5, []),
            ("S", "AA", "2", 5, []),
            ("S", "b", "3", 5, []),
            ("S", "B", "4", 5, []),
            ("S", "z", "5", 4, []),
            ("S", "a", "6", 15, ["z:5-null@4", "AA:2-null@5", "B:4-null@5", "b:1-null@5", "b:3-null@5"]),
            ("S", "c", "7", 5, ["c:7-null@5"]),
            ("S", "c", "8", 4, ["c:8-null@4"]),
        ],
    ),
    "no grace at all waits for nothing": (
        topology("left", HISTORY, grace="0ms"),
        [("S", "a", "1", 5, ["a:1-null@5"]), ("S", "a", "2", 3, ["a:2-null@3"])],
    ),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: str, cut: bool) -> None:  # noqa: FBT001 - a parameter of the test
    built, steps = EXAMPLES[example]
    play(TopologyTestDriver(built), steps, cut=cut)


def test_skipped_records_are_counted_by_reason() -> None:
    driver = TopologyTestDriver(topology("inner"))
    for key, value in [(None, "s"), ("k", None), (None, None)]:
        driver.pipe("S", key, value, 1)
    skipped = {row["reason"]: row["total"] for row in driver.metrics if row["name"] == SKIPPED_RECORDS}
    assert skipped == {"null-key": 2, "null-value": 1}


def test_ties_go_to_the_topic_that_is_read_first() -> None:
    driver = TopologyTestDriver(topology("left"))
    driver.pipe_all([("S", "k", "s", 5), ("T", "k", "t", 5)])
    assert told(driver) == ["k:s-t@5"]


def test_a_watermark_and_a_final_run_join_waiting_records() -> None:
    driver = TopologyTestDriver(
        topology("left", HISTORY, grace="10ms"), semantics=Semantics(stream_time_from="watermark")
    )
    driver.pipe("S", "k", "s1", 20)
    driver.pipe("S", "k", "s2", 21)
    driver.pipe("T", "k", "t", 20)
    driver.advance_watermark(29)
    assert told(driver) == []
    driver.advance_watermark(30)
    assert told(driver) == ["k:s1-t@20"]
    driver.finish()
    assert told(driver) == ["k:s2-t@21"]


def test_the_watermark_below_is_lowered_by_the_grace() -> None:
    assert topology("left", HISTORY, grace="10ms").watermark_lags()["out-sink"] == 10
    assert topology("left").watermark_lags()["out-sink"] == 0


def test_waiting_records_wait_for_updates_that_the_table_holds_back() -> None:
    builder = StreamsBuilder()
    lone = builder.stream("L").left_join(
        builder.stream("R"), pair, JoinWindows.of("10ms", grace="0ms"), name="lone", value=str
    )
    table = lone.to_table(store=versioned_store("rows", history="100ms"))
    builder.stream("S").join(table, pair, name="j", grace="5ms").to("out")
    built = builder.build()
    assert built.watermark_lags()["j"] == 20
    driver = TopologyTestDriver(built, semantics=Semantics(stream_time_from="watermark"))
    driver.pipe("L", "k", "l", 20)
    driver.pipe("S", "k", "s", 20)
    driver.advance_watermark(44)
    assert told(driver) == []
    driver.advance_watermark(45)
    assert told(driver) == ["k:s-l-null@20"]


def filtered(table: KTable) -> KTable:
    return table.filter(lambda _key, value: value != "hidden").map_values(lambda value: f"<{value}>")


def test_a_table_without_a_store_is_looked_up_through_its_parent() -> None:
    builder = StreamsBuilder()
    table = filtered(builder.table("T", store="rows"))
    builder.stream("S").left_join(table, pair).to("out")
    play(
        TopologyTestDriver(builder.build()),
        [
            ("T", "k", "t", 1, []),
            ("S", "k", "s", 1, ["k:s-<t>@1"]),
            ("T", "k", "hidden", 2, []),
            ("S", "k", "s", 1, ["k:s-null@1"]),
        ],
        cut=True,
    )


def test_a_stream_joins_its_own_aggregate_after_the_update() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("S")
    counts = stream.group_by_key().aggregate(Count(), store="counts")
    stream.join(counts, lambda value, count: f"{value}#{count}").to("out")
    play(
        TopologyTestDriver(builder.build()),
        [("S", "k", "a", 1, ["k:a#1@1"]), ("S", "k", "b", 0, ["k:b#2@0"])],
        cut=True,
    )


def test_a_re_keyed_stream_crosses_a_repartition_named_after_the_join() -> None:
    builder = StreamsBuilder()
    table = builder.table("T", store="rows")
    stream = builder.stream("S").select_key(lambda _key, value: value[0])
    stream.join(table, pair, name="enriched").to("out")
    built = builder.build()
    assert "enriched-repartition-source" in built.nodes
    play(TopologyTestDriver(built, partitions=3), [("T", "a", "t", 1, []), ("S", "1", "as", 1, ["a:as-t@1"])], cut=True)


def test_a_cycle_of_repartitions_is_rejected_with_the_fix() -> None:
    def built(*, is_crossing: bool) -> Topology:
        builder = StreamsBuilder()
        stream = builder.stream("S")
        cities = stream.group_by(lambda _key, value: value[:1], key=str).count(store="cities")
        if is_crossing:
            stream = stream.repartition(name="again")
        stream.left_join(cities, pair, name="j").to("out")
        return builder.build()

    with refused("repartitions-form-cycle"):
        built(is_crossing=False)
    play(TopologyTestDriver(built(is_crossing=True)), [("S", "a", "ax", 1, ["a:ax-1@1"])], cut=True)


def test_the_joiner_can_take_the_key_and_declares_the_type() -> None:
    def keyed(key: str, value: str, row: str | None) -> str:
        return f"{key}:{value}:{row}"

    builder = StreamsBuilder()
    joined = builder.stream("S").left_join(builder.table("T", store="rows"), keyed, with_key=True)
    assert joined.value is str
    joined.to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("S", "k", "s", 3)
    assert told(driver) == ["k:k:s:None@3"]


def test_misuse_is_rejected_with_the_fix() -> None:
    builder = StreamsBuilder()
    stream, table, versions = (
        builder.stream("S"),
        builder.table("T", store="rows"),
        builder.table("V", store=versioned_store("past", history="9ms")),
    )
    windows = JoinWindows.of("1s", grace="0s")
    versioned = partial(stream.join, versions, pair, name="j")
    other_key = table.group_by(lambda k, v: (v, k), key=int).count(store="n")
    for wrong, refusal in [
        (lambda: stream.join(table, pair, windows), refused("table-join-option-refused")),
        (lambda: stream.join(table, pair, store="x"), refused("table-join-option-refused")),
        (lambda: stream.outer_join(table, pair, None, name="j"), refused("outer-join-with-table", join="join 'j'")),
        (
            lambda: stream.select_key(lambda _k, v: v).join(table, pair),
            refused("table-join-unnamed", reason=containing("re-keyed")),
        ),
        (
            lambda: stream.join(versions, pair, grace="1ms"),
            refused("table-join-unnamed", reason=containing("grace")),
        ),
        (
            lambda: stream.join(table, pair, name="j", grace="1ms"),
            refused("join-history-too-short", history="no history"),
        ),
        (lambda: versioned(grace="10ms"), refused("join-history-too-short", history="a history of 9ms")),
        (lambda: versioned(grace="-1ms"), refused("join-grace-negative", grace="'-1ms'")),
        (
            lambda: stream.select_key(lambda _k, v: v, key=str).join(other_key, pair, name="j"),
            refused("join-key-types-differ", left="str", right="int"),
        ),
    ]:
        with refusal:
            wrong()
