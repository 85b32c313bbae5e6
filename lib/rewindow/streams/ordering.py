"""The order of records within a task (L1, KIP-353).

Of all partitions that have data, Kafka takes the head record with the smallest timestamp. If all records of an epoch are
available, this is one sort. A record is sorted by the *running maximum* of the timestamps in its topic-partition, because
it cannot be taken before the records that precede it. Ties go to the topic that comes first in the topology.

    order key of an event = (running maximum in this epoch, rank of the topic, offset)

Sorting by timestamp alone gives a different order as soon as one record is out of order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby, islice, repeat
from operator import itemgetter
from typing import Any, NamedTuple

Event = tuple[int, int, int, int, Any, Any]
"""A record with its order key: ``(order_ms, rank, offset, timestamp, key, value)``. A bare tuple for speed.

``order_ms`` is the running maximum, ``rank`` the topic's index in the topology.
"""

BLOCK = 1024
"""How many events of a topic are merged at a time."""


class Rows(NamedTuple):
    """Consecutive records of one topic-partition as columns of equal length.

    ``running_ms`` is the running maximum of the timestamps, starting at the first of these rows.
    """

    offsets: Sequence[int]
    timestamps: Sequence[int]
    running_ms: list[int]
    keys: Iterable[Any]
    values: Iterable[Any]


def rows_of(rows: Iterable[tuple[int, int, Any, Any]]) -> Rows:
    """Return rows of ``(offset, timestamp, key, value)`` as columns."""
    offsets, timestamps, keys, values = zip(*rows, strict=True) if (rows := list(rows)) else ((), (), (), ())
    return Rows(offsets, timestamps, list(accumulate(timestamps, max)), keys, values)


def events(rank: int, epoch: Iterable[Rows]) -> Iterator[Event]:
    """Add order keys to the records of one topic-partition and epoch, without Python code for each record."""
    return chain.from_iterable(_events_of(rank, epoch))


def ordered_rows(epoch: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the rows of one topic-partition and epoch with the running maximum of the whole epoch, which is the order key."""
    highest = -1
    for rows in epoch:
        running_ms = rows.running_ms
        if not running_ms:
            continue
        # A block has its own running maximum, so the values below that of the epoch are raised to it.
        if running_ms[0] < highest:
            below = bisect_left(running_ms, highest)
            running_ms[:below] = [highest] * below
        highest = running_ms[-1]
        yield rows


def same_topic(merged: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Yield consecutive events of one topic, with its rank."""
    merged = iter(merged)
    while block := list(islice(merged, BLOCK)):
        for rank, run in groupby(block, itemgetter(1)):
            yield rank, list(run)


def rows_from(run: Sequence[Event]) -> Rows:
    """Return consecutive events of one topic as columns, with their order keys."""
    running_ms, _, offsets, timestamps, keys, values = zip(*run, strict=True)
    return Rows(offsets, timestamps, list(running_ms), keys, values)


def _events_of(rank: int, epoch: Iterable[Rows]) -> Iterator[Iterable[Event]]:
    for offsets, timestamps, running_ms, keys, values in ordered_rows(epoch):
        yield zip(running_ms, repeat(rank), offsets, timestamps, keys, values)


def merge(topics: Sequence[Iterable[Event]]) -> Iterator[Event]:
    """Merge the events of an epoch's topics into the order in which the task processes them."""
    if len(topics) == 1:
        return iter(topics[0])
    return chain.from_iterable(_merged_blocks([iter(topic) for topic in topics]))


def _merged_blocks(topics: Sequence[Iterator[Event]]) -> Iterator[list[Event]]:
    """Yield the events in order, many at a time: sorting blocks that are in order takes half as long as a heap."""
    blocks = [list(islice(topic, BLOCK)) for topic in topics]
    while any(blocks):
        # Each topic is in order, so no event that precedes the smallest last one is still to come.
        last = min(block[-1] for block in blocks if block)
        ready: list[Event] = []
        for index, topic in enumerate(topics):
            end = bisect_right(blocks[index], last)
            ready += blocks[index][:end]
            blocks[index] = blocks[index][end:] or list(islice(topic, BLOCK))
        ready.sort()
        yield ready


class Emission(NamedTuple):
    """A record that crosses a repartition, with its position in the internal log of the epoch (D21).

    ``order_ms`` is the order key of the event that sent it, the due time of a wall-clock punctuation, or `MAX_MS` at an
    epoch's end. ``partition`` is the task that sent it; ``number`` counts that task's records in the topic. The first
    three fields are the sort key of the log.
    """

    order_ms: int
    partition: int
    number: int
    timestamp: int
    key: Any
    value: Any


def internal_log(emissions: Iterable[Emission], next_offset: int) -> Iterator[tuple[int, int, Any, Any]]:
    """Sort the emissions of one partition and epoch, and assign offsets. Yields rows for `rows_of`."""
    ordered = sorted(emissions, key=lambda emission: emission[:3])
    for offset, emission in enumerate(ordered, start=next_offset):
        yield offset, emission.timestamp, emission.key, emission.value
