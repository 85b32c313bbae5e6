"""Global tables: what a join sees, nulls, clocks, and errors (ADR-86)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import (
    GlobalKTable,
    JoinWindows,
    KStream,
    Processor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    Topology,
    key_value_store,
    versioned_store,
)
from rewindow.streams.metrics import ENFORCED_PROCESSING, RECORD_LATENESS, SKIPPED_RECORDS
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.testing import Epoch, LocalReplay, TopologyTestDriver
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples
from tests.refusals import refused

PARTITIONS = 3


def pair(value: Any, row: Any) -> str:
    return f"{value}-{row or 'null'}"


def by_value(_key: Any, value: Any) -> Any:
    return value[0] if value and value[0] != "-" else None


def topology(how: str = "join", *, reads_first: str = "table") -> Topology:
    builder = StreamsBuilder()
    if reads_first == "table":
        table, stream = builder.global_table("G", store="rows"), builder.stream("S")
    else:
        stream = builder.stream("S")
        table = builder.global_table("G", store="rows")
    getattr(stream, how)(table, by_value, pair, name="j").to("out")
    return builder.build()


def results(driver: TopologyTestDriver) -> list[tuple[Any, Any, int]]:
    return [record[:3] for record in driver.read("out")]


def skipped(driver: TopologyTestDriver) -> dict[tuple[str, str], int]:
    return {(one["node"], one["reason"]): one["total"] for one in driver.metrics if one["name"] == SKIPPED_RECORDS}


def test_a_record_joins_the_row_that_its_selector_names() -> None:
    driver = TopologyTestDriver(topology(), partitions=PARTITIONS)
    for key in "abcdef":
        driver.pipe("G", key, f"row of {key}", 1)
    driver.pipe("S", "other", "a", 5)
    driver.pipe("S", None, "f", 6)
    driver.pipe("S", "other", "z", 7)
    assert results(driver) == [("other", "a-row of a", 5), (None, "f-row of f", 6)]


def test_a_left_join_sends_what_finds_nothing() -> None:
    driver = TopologyTestDriver(topology("left_join"))
    driver.pipe("G", "a", "row", 1)
    driver.pipe("G", "a", None, 2)
    for value in ("a", "-", None):
        driver.pipe("S", "k", value, 5)
    assert results(driver) == [("k", "a-null", 5), ("k", "--null", 5)]
    assert skipped(driver) == {("j", "null-value"): 1}


def test_an_inner_join_skips_and_counts_null_values_and_null_selections() -> None:
    driver = TopologyTestDriver(topology())
    for value in ("-", None):
        driver.pipe("S", "k", value, 5)
    assert results(driver) == []
    assert skipped(driver) == {("j", "null-key"): 1, ("j", "null-value"): 1}


def test_a_global_record_without_a_key_is_skipped_and_counted_once() -> None:
    driver = TopologyTestDriver(topology(), partitions=PARTITIONS)
    driver.pipe("G", None, "row", 1)
    assert list(skipped(driver).values()) == [1]


def test_two_streams_in_different_sub_topologies_join_one_global_table() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("G", store="rows")
    first = builder.stream("S").join(table, by_value, pair)
    again = first.select_key(lambda _key, value: value[0]).repartition(name="again")
    again.left_join(table, lambda key, _value: key, lambda key, one, row: f"{key}:{one}+{row}", with_key=True).to("out")
    builder.stream("S2").left_join(table, by_value, pair).to("out2")
    driver = TopologyTestDriver(builder.build(), partitions=PARTITIONS)
    driver.pipe("G", "a", "row", 1)
    driver.pipe("S", "k", "a", 5)
    driver.pipe("S2", "k", "b", 6)
    assert results(driver) == [("a", "a:a-row+row", 5)]
    assert [record.value for record in driver.read("out2")] == ["b-null"]
    assert driver.store("rows").keys() == {"a"}


def test_a_join_keeps_the_streams_key_so_grouping_needs_no_repartition() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("G", store="rows")
    builder.stream("S").join(table, by_value, pair).group_by_key().count(store="counts")
    assert not any("repartition" in name for name in builder.build().nodes)


class Clock(Processor):
    """Forwards the stream time that it sees."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(self.context.stream_time_ms))


def test_global_records_move_no_clock_and_are_not_late() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("G", store="rows")
    builder.stream("S").left_join(table, by_value, pair).process(Clock, name="clock").to("out")
    replay = LocalReplay(builder.build())
    given_epochs = [
        Epoch((("G", "a", "row", 900), ("S", "k", "a", 5))),
        Epoch((("S", "k", "a", 7), ("G", "a", "new", 1))),
    ]
    replay.run(given_epochs, restarts=False)
    assert [sent.record.value for sent in replay.sent] == [5, 7]
    (lateness,) = [row for row in replay.task(1, 0).metrics_rows if row["name"] == RECORD_LATENESS]
    assert lateness["maximum"] == 0


@pytest.mark.parametrize("reads_first", ["table", "stream"])
@given(
    epochs(["G", "S"], keys=list("abcdef"), values=st.sampled_from(["a", "b", "c", "-"])),
    st.lists(st.integers(1, 4)),
)
@examples(60)
def test_a_join_sees_the_global_records_before_its_own_and_no_others(
    reads_first: str, given_epochs: list[Epoch], cuts: list[int]
) -> None:
    replay = LocalReplay(topology("left_join", reads_first=reads_first), partitions=PARTITIONS)
    start = 0
    for end in [*sorted({cut for cut in cuts if cut < len(given_epochs)}), len(given_epochs)]:
        replay.run(given_epochs[start:end], backwards=True)
        start = end
    sent = defaultdict(list)
    for one in replay.sent:
        sent[one.partition].append(one.record[:3])
    expected = {task: joined(given_epochs, task, reads_first=reads_first) for task in range(PARTITIONS)}
    assert dict(sent) == {task: rows for task, rows in expected.items() if rows}


def joined(given_epochs: list[Epoch], task: int, *, reads_first: str) -> list[tuple[Any, Any, int]]:
    """Return the results of one task: its stream records in order, with the last global row before each."""
    rows: dict[Any, Any] = {}
    found = []
    for epoch in given_epochs:
        events = []
        highest: dict[tuple[str, int], int] = {}
        for number, (topic, key, value, timestamp) in enumerate(epoch.records):
            where = topic, partition_of(key, PARTITIONS)
            highest[where] = max(highest.get(where, -1), timestamp)
            rank = int((topic == "S") == (reads_first == "table"))
            if topic == "G" or where[1] == task:
                events.append((highest[where], rank, where[1], number, topic, key, value, timestamp))
        for *_, topic, key, value, timestamp in sorted(events):
            if topic == "G":
                rows[key] = value
            else:
                found.append((key, pair(value, rows.get(by_value(key, value))), timestamp))
    return found


def builders() -> tuple[KStream, GlobalKTable]:
    builder = StreamsBuilder()
    return builder.stream("S"), builder.global_table("G", store="rows")


def test_a_join_without_a_joiner_is_refused() -> None:
    stream, table = builders()
    with refused("global-join-without-joiner"):
        stream.join(table, pair)
    with refused("global-join-without-joiner"):
        stream.join(table, pair, JoinWindows.of("1m", grace="0s"))


def test_options_of_other_joins_are_refused() -> None:
    stream, table = builders()
    with refused("global-join-option-refused"):
        stream.join(table, by_value, pair, grace="1m")
    with refused("join-input-invalid"):
        stream.outer_join(table, pair, JoinWindows.of("1m", grace="0s"), name="j")  # type: ignore[arg-type]
    with refused("sides-from-two-builders"):
        stream.join(builders()[1], by_value, pair)
    with refused("function-parameters-wrong", arguments="key, value"):
        stream.join(table, lambda value: value, pair)


def test_a_versioned_global_table_is_refused() -> None:
    with refused("store-kind-wrong", kind="versioned", needed="key-value"):
        StreamsBuilder().global_table("G", store=versioned_store("rows", history="1h"))


@pytest.mark.parametrize("writes", ["processor", "table"])
def test_the_store_of_a_global_table_is_only_read_by_joins(writes: str) -> None:
    builder = StreamsBuilder()
    builder.global_table("G", store=key_value_store("rows", key=str, value=str))
    if writes == "processor":
        builder.stream("S").process(Clock, name="mine", stores=("rows",)).to("out")
    else:
        builder.stream("T").to_table(store=key_value_store("rows", key=str, value=str), name="mine")
    with refused("global-table-store-shared", store="rows"):
        builder.build()


def test_a_stream_that_joins_the_global_table_of_its_own_topic_is_told_to_cross_a_repartition() -> None:
    builder = StreamsBuilder()
    table, stream = builder.global_table("G", store="rows"), builder.stream("G")
    stream.join(table, by_value, pair).to("out")
    with refused("repartitions-form-cycle"):
        builder.build()


def test_a_failing_selector_names_record_and_node() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("G", store="rows")
    builder.stream("S").join(table, lambda _key, value: value.missing, pair, name="j").to("out")
    driver = TopologyTestDriver(builder.build())
    with refused("node-failed", node="j", partition=0, position="S offset 0"):
        driver.pipe("S", "k", "a", 5)


def test_an_unread_global_table_is_kept() -> None:
    builder = StreamsBuilder()
    builder.global_table("G", store="rows")
    builder.stream("S").to("out")
    driver = TopologyTestDriver(builder.build(), partitions=PARTITIONS)
    driver.pipe("G", "a", "row", 1)
    assert [row.value for row in driver.store("rows").values()] == ["row"]


def test_global_records_are_not_waited_for_and_force_nothing() -> None:
    driver = TopologyTestDriver(topology(), max_task_idle_ms=0)
    driver.pipe("G", "a", "row", 1)
    driver.pipe("S", "k", "a", 5)
    assert results(driver) == [("k", "a-row", 5)]
    assert [one for one in driver.metrics if one["name"] == ENFORCED_PROCESSING] == []
