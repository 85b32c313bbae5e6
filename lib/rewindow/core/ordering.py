"""The order of records within a task (law 1, KIP-353).

Kafka takes, of all partitions that have data, the head record with the smallest timestamp. With an epoch's records at
hand that is one sort: a record's place is the *running maximum* of the timestamps in its topic-partition, because a
record that comes after a later one cannot be taken before it. Ties go to the topic that stands first in the topology.

    order key of an event = (running maximum in this epoch, rank of the topic, offset)

A plain sort by timestamp gives another order as soon as one record is out of order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

Event = tuple[int, int, int, int, Any, Any]
"""A record in its place: ``(order_ms, rank, offset, timestamp, key, value)``. Bare, as there is one for each record.

``order_ms`` is the running maximum, ``rank`` the topic's number in the topology.
"""


def events(rank: int, rows: Iterable[tuple[int, int, Any, Any]]) -> Iterator[Event]:
    """Give the rows ``(offset, timestamp, key, value)`` of one topic-partition and epoch their order keys."""
    highest = -1
    for offset, timestamp, key, value in rows:
        if timestamp > highest:
            highest = timestamp
        yield highest, rank, offset, timestamp, key, value


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
