"""L1: within an epoch, Kafka's rule "take the head record with the smallest timestamp" is one sort."""

from __future__ import annotations

from collections import deque
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.streams import ordering
from rewindow.streams.ordering import events, merge, rows_of
from rewindow.streams.record import TopicPartition
from rewindow.testing.partition_group import NEVER_WAIT, PartitionGroup
from tests.properties.effort import examples

LOGS = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=4)


def taken_by_kafka(logs: list[list[int]]) -> list[tuple[int, int]]:
    """Repeatedly take the smallest head; of equal ones, the one whose topic comes first."""
    queues = [deque(enumerate(log)) for log in logs]
    taken = []
    while any(queues):
        heads = [(queue[0][1], rank) for rank, queue in enumerate(queues) if queue]
        _, rank = min(heads)
        offset, _ = queues[rank].popleft()
        taken.append((rank, offset))
    return taken


@given(LOGS, st.integers(1, 4))
@examples(300)
def test_the_merge_takes_records_as_kafka_does(logs: list[list[int]], block: int) -> None:
    rows = [[(offset, timestamp, None, None) for offset, timestamp in enumerate(log)] for log in logs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "BLOCK", block)
        merged = list(merge([events(rank, [rows_of(topic)]) for rank, topic in enumerate(rows)]))
    assert [(rank, offset) for _, rank, offset, *_ in merged] == taken_by_kafka(logs)


@given(LOGS)
@examples(150)
def test_one_sort_by_the_order_key_takes_them_so_too(logs: list[list[int]]) -> None:
    keys = [
        (maximum, rank, offset) for rank, log in enumerate(logs) for offset, maximum in enumerate(accumulate(log, max))
    ]
    assert [(rank, offset) for _, rank, offset in sorted(keys)] == taken_by_kafka(logs)


@given(LOGS)
@examples(150)
def test_the_partition_group_takes_them_so_too(logs: list[list[int]]) -> None:
    partitions = [TopicPartition(f"topic-{rank}", 0) for rank in range(len(logs))]
    group = PartitionGroup(partitions, max_task_idle_ms=NEVER_WAIT)
    for partition, log in zip(partitions, logs, strict=True):
        group.add(partition, [(offset, timestamp, None, None) for offset, timestamp in enumerate(log)])
    taken = []
    while (picked := group.pick()) is not None:
        taken.append((partitions.index(picked.partition), picked.offset))
    assert taken == taken_by_kafka(logs)


def test_a_plain_sort_by_timestamp_is_another_order() -> None:
    logs = [[7, 2], [5]]
    by_timestamp = sorted(
        (timestamp, rank, offset) for rank, log in enumerate(logs) for offset, timestamp in enumerate(log)
    )
    assert [(rank, offset) for _, rank, offset in by_timestamp] == [(0, 1), (1, 0), (0, 0)]
    assert taken_by_kafka(logs) == [(1, 0), (0, 0), (0, 1)]
