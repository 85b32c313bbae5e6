"""Kafka's partition group: the examples of KIP-353 and G01 to G10 of the semantics reference."""

from __future__ import annotations

import pytest

from rewindow.streams.metrics import ENFORCED_PROCESSING, SKIPPED_RECORDS
from rewindow.streams.record import MAX_MS, UNKNOWN, TopicPartition
from rewindow.testing.partition_group import NEVER_WAIT, InvalidTimestamp, PartitionGroup
from tests.refusals import refused

A, B, C = (TopicPartition(topic, 0) for topic in ("a", "b", "c"))


def group(idle_ms: int, *partitions: TopicPartition, lag: int | None = 0, invalid: str = "fail") -> PartitionGroup:
    made = PartitionGroup(partitions or (A, B), max_task_idle_ms=idle_ms, invalid_timestamp=InvalidTimestamp(invalid))
    for partition in partitions or (A, B):
        made.set_lag(partition, lag)
    return made


def add(to: PartitionGroup, partition: TopicPartition, *timestamps: int, first: int = 0) -> None:
    to.add(
        partition,
        [(first + n, timestamp, None, f"{partition.topic}{timestamp}") for n, timestamp in enumerate(timestamps)],
    )


def run(of: PartitionGroup, now_ms: int) -> list[str]:
    taken = []
    while of.buffered() and of.is_ready(now_ms):
        picked = of.pick()
        assert picked is not None
        taken.append(picked.value)
    return taken


def counted(of: PartitionGroup, name: str) -> int:
    return sum(row["total"] for row in of.metrics.as_rows() if row["name"] == name)


def test_a_partition_without_data_is_waited_for_and_then_given_up() -> None:
    one = group(50)
    add(one, A, 5)
    assert run(one, 1000) == []
    add(one, A, 7)
    assert run(one, 1000) == []
    add(one, B, 6)
    assert run(one, 1000) == ["a5", "b6"]
    add(one, B, 7)
    assert run(one, 1000) == ["a7"]
    add(one, B, 3)
    assert run(one, 1000) == []
    assert run(one, 1049) == []
    assert run(one, 1050) == ["b7", "b3"]
    add(one, A, 20)
    assert run(one, 1050) == []  # b is empty again, so its timer starts here
    assert run(one, 1100) == ["a20"]


@pytest.mark.parametrize(("idle_ms", "enforced"), [(0, 6), (NEVER_WAIT, 0)])
def test_without_waiting_each_record_is_taken_at_once(idle_ms: int, enforced: int) -> None:
    one, taken = group(idle_ms), []
    for partition, timestamp in ((A, 5), (A, 7), (B, 6), (B, 7), (B, 3), (A, 20)):
        add(one, partition, timestamp)
        taken += run(one, 0)
    assert taken == ["a5", "a7", "b6", "b7", "b3", "a20"]
    assert counted(one, ENFORCED_PROCESSING) == enforced


def test_waiting_for_ever_is_for_ever_whatever_the_clock() -> None:
    one = group(MAX_MS)
    add(one, A, 1)
    assert not one.is_ready(1_700_000_000_000)
    assert not one.is_ready(2**62)
    add(one, B, 0)
    assert run(one, 2**62) == ["b0"]


def test_two_empty_partitions_are_waited_for_one_after_the_other() -> None:
    one = group(50, A, B, C)
    add(one, A, 1)
    assert run(one, 0) == []
    assert run(one, 50) == []  # b is given up, and c is checked only now
    assert run(one, 99) == []
    assert run(one, 100) == ["a1"]
    add(one, A, 2)
    assert run(one, 100) == ["a2"]


def test_a_passed_deadline_stays_passed_until_there_is_data() -> None:
    one = group(50)
    add(one, A, 1)
    assert run(one, 0) == []
    add(one, A, 2)
    assert run(one, 30) == []
    assert run(one, 50) == ["a1", "a2"]
    add(one, A, 3)
    assert run(one, 50) == ["a3"]
    add(one, B, 2)
    assert run(one, 50) == []
    add(one, A, 4)
    assert run(one, 50) == ["b2"]
    assert run(one, 99) == []
    assert run(one, 100) == ["a4"]


@pytest.mark.parametrize("lag", [None, 3])
def test_known_or_possible_lag_is_waited_for_however_long(lag: int | None) -> None:
    one = group(0, lag=lag)
    add(one, A, 1)
    assert not one.is_ready(10**15)
    one.set_lag(B, 0)
    assert one.is_ready(0)


def test_lag_that_shows_up_restarts_the_timer() -> None:
    one = group(10)
    add(one, A, 1)
    assert not one.is_ready(0)
    one.set_lag(B, 1)
    assert not one.is_ready(9)
    one.set_lag(B, 0)
    assert not one.is_ready(10)
    assert not one.is_ready(19)
    assert one.is_ready(20)


def test_nothing_buffered_is_not_ready_and_not_counted() -> None:
    one = group(0)
    assert not one.is_ready(0)
    assert counted(one, ENFORCED_PROCESSING) == 0
    assert one.pick() is None


def test_ties_go_to_the_partition_that_stands_first() -> None:
    one = group(NEVER_WAIT, A, B, C)
    for partition in (C, B, A):
        add(one, partition, 5, 5)
    assert run(one, 0) == ["a5", "a5", "b5", "b5", "c5", "c5"]
    assert one.ties == 4


def test_skipped_timestamps_move_nothing_and_the_last_one_moves_the_offset() -> None:
    one = group(NEVER_WAIT, invalid="skip")
    add(one, A, -1, 3)
    add(one, B, 2, -1, -5)
    picked = [one.pick() for _ in range(one.buffered())]
    assert [(p.partition, p.offset, p.timestamp, p.is_corrupted) for p in picked if p] == [
        (B, 0, 2, False),
        (B, 2, -1, True),
        (A, 1, 3, False),
    ]
    assert one.partition_times == {A: 3, B: 2}
    assert counted(one, SKIPPED_RECORDS) == 3


def test_a_partition_time_may_replace_an_invalid_timestamp() -> None:
    one = group(NEVER_WAIT, A, invalid="partition_time")
    add(one, A, 7, 3, -5)
    assert [picked.timestamp for picked in iter(one.pick, None)] == [7, 3, 7]
    fresh = group(NEVER_WAIT, A, invalid="partition_time")
    with refused("record-timestamp-negative", partition=0, offset=0, timestamp=-5):
        add(fresh, A, -5)


def test_an_invalid_timestamp_fails_by_default_when_it_becomes_the_head() -> None:
    one = group(NEVER_WAIT, A)
    add(one, A, 1, -5)
    with refused("record-timestamp-negative", offset=1, timestamp=-5):
        one.pick()


def test_restored_partition_times_give_stream_time() -> None:
    one = group(NEVER_WAIT)
    one.set_partition_time(A, 50)
    one.set_partition_time(B, 7)
    assert one.stream_time_ms == 50
    add(one, A, 3)
    one.pick()
    assert one.partition_times == {A: 50, B: 7}
    assert group(0).partition_times == {A: UNKNOWN, B: UNKNOWN}


def test_what_is_not_released_holds_its_partition_back() -> None:
    one = group(NEVER_WAIT)
    add(one, A, 9, 1)
    add(one, B, 4)
    assert [picked.value for picked in iter(lambda: one.pick({A: 8, B: 8}), None)] == ["b4"]
    assert one.buffered(A) == 2
    assert [picked.value for picked in iter(one.pick, None)] == ["a9", "a1"]
