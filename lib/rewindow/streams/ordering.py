"""The order of records within a task (L1, KIP-353).

Kafka takes, of all partitions that have data, the head record with the smallest timestamp. With an epoch's records at
hand that is one sort: a record's place is the *running maximum* of the timestamps in its topic-partition, because a
record that comes after a later one cannot be taken before it. Ties go to the topic that stands first in the topology.

    order key of an event = (running maximum in this epoch, rank of the topic, offset)

A plain sort by timestamp gives another order as soon as one record is out of order.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import Any, NamedTuple

Event = tuple[int, int, int, int, Any, Any]
"""A record in its place: ``(order_ms, rank, offset, timestamp, key, value)``. Bare, as there is one for each record.

``order_ms`` is the running maximum, ``rank`` the topic's number in the topology.
"""


class Rows(NamedTuple):
    """Consecutive records of one topic-partition, by columns: all of one length.

    ``running_ms`` has for each the running maximum of the timestamps from the first of these rows on.
    """

    offsets: Sequence[int]
    timestamps: Sequence[int]
    running_ms: list[int]
    keys: Iterable[Any]
    values: Iterable[Any]


def rows_of(rows: Iterable[tuple[int, int, Any, Any]]) -> Rows:
    """Return rows ``(offset, timestamp, key, value)`` by columns."""
    offsets, timestamps, keys, values = zip(*rows, strict=True) if (rows := list(rows)) else ((), (), (), ())
    return Rows(offsets, timestamps, list(accumulate(timestamps, max)), keys, values)


def events(rank: int, epoch: Iterable[Rows]) -> Iterator[Event]:
    """Give the records of one topic-partition and epoch their order keys. No step of Python's for each of them."""
    return chain.from_iterable(_placed(rank, epoch))


def _placed(rank: int, epoch: Iterable[Rows]) -> Iterator[Iterable[Event]]:
    highest = -1
    for offsets, timestamps, running_ms, keys, values in epoch:
        if not running_ms:
            continue
        if running_ms[0] < highest:
            below = bisect_left(running_ms, highest)
            running_ms[:below] = [highest] * below
        highest = running_ms[-1]
        yield zip(running_ms, repeat(rank), offsets, timestamps, keys, values)


def merge(topics: Sequence[Iterable[Event]]) -> Iterator[Event]:
    """Merge the events of one epoch's topics into the order in which the task takes them."""
    if len(topics) == 1:
        return iter(topics[0])
    return heapq.merge(*topics)


class Emission(NamedTuple):
    """A record on its way through a repartition, in the order in which the internal log of an epoch has it (D21).

    ``order_ms`` is the emitting event's place in its own epoch: its order key, the due time of a wall-clock
    punctuation, or `MAX_MS` for what the epoch's end emits; ``partition`` the task that emitted it; ``number`` counts
    what that task sent to the topic. Tuples compare in this order, so sorting them is the rule.
    """

    order_ms: int
    partition: int
    number: int
    timestamp: int
    key: Any
    value: Any


def internal_log(emissions: Iterable[Emission], next_offset: int) -> Iterator[tuple[int, int, Any, Any]]:
    """Give one partition's emissions of an epoch their offsets; return the rows that `events` takes."""
    ordered = sorted(emissions, key=lambda emission: emission[:3])
    for offset, emission in enumerate(ordered, start=next_offset):
        yield offset, emission.timestamp, emission.key, emission.value
