"""The order of records within a task (L1, KIP-353).

Kafka compares the head records of all partitions that have data, and processes the record with the smallest timestamp next.
If all records of an epoch are available, one sort gives the same order. The sort key is the *running maximum* of the
timestamps in the record's topic-partition, because a record cannot be processed before the records that precede it. If sort
keys are equal, the record of the topic that comes first in the topology is processed first.

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
"""A record with its order key: ``(order_ms, rank, offset, timestamp, key, value)``. It is a plain tuple, for speed.

``order_ms`` is the running maximum of the timestamps, ``rank`` is the topic's index in the topology.
"""

BLOCK = 1024
"""The number of events of a topic that are merged at a time."""


class Rows(NamedTuple):
    """Consecutive records of one topic-partition as columns of equal length.

    ``running_ms`` is the running maximum of the timestamps. It covers only these rows. In rows from `ordered_rows`, it also
    covers the earlier rows of the epoch.
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
    """Yield the records of one topic-partition and epoch with their order keys, without Python code for each record."""
    return chain.from_iterable(_events_of(rank, epoch))


def ordered_rows(epoch: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the rows of one topic-partition and epoch. Their ``running_ms`` starts at the first row of the epoch."""
    highest = -1
    for rows in epoch:
        running_ms = rows.running_ms
        if not running_ms:
            continue
        # The running maximum covers only these rows. Smaller values are raised to the maximum of the epoch's earlier rows.
        if running_ms[0] < highest:
            below = bisect_left(running_ms, highest)
            running_ms[:below] = [highest] * below
        highest = running_ms[-1]
        yield rows


def same_topic(merged: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Yield ``(rank, events)`` for each run of consecutive events of one topic. ``rank`` is the topic's rank."""
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
    """Yield the merged events in lists. Sorting a few blocks, each of which is in order, takes half as long as a heap."""
    blocks = [list(islice(topic, BLOCK)) for topic in topics]
    while any(blocks):
        # Each topic is in order, so every later event comes after the smallest of the blocks' last events.
        last = min(block[-1] for block in blocks if block)
        ready: list[Event] = []
        for index, topic in enumerate(topics):
            end = bisect_right(blocks[index], last)
            ready += blocks[index][:end]
            blocks[index] = blocks[index][end:] or list(islice(topic, BLOCK))
        ready.sort()
        yield ready


class Emission(NamedTuple):
    """A record that goes through a repartition, with its position in the internal log of the epoch (D21).

    ``order_ms`` is the order key of the event that sent the record: an input record's order key, a wall-clock punctuation's
    due time, or `MAX_MS` at an epoch's end. ``partition`` is the partition of the task that sent the record. ``number``
    counts the records that this task sent to the topic. The log is sorted by these three fields.
    """

    order_ms: int
    partition: int
    number: int
    timestamp: int
    key: Any
    value: Any


def internal_log(emissions: Iterable[Emission], next_offset: int) -> Iterator[tuple[int, int, Any, Any]]:
    """Sort the emissions of one partition and epoch, and assign offsets. Yields ``(offset, timestamp, key, value)``."""
    ordered = sorted(emissions, key=lambda emission: emission[:3])
    for offset, emission in enumerate(ordered, start=next_offset):
        yield offset, emission.timestamp, emission.key, emission.value
