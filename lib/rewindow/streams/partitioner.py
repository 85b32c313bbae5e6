"""The partition of a repartition topic to which a record goes: that of its key, or the one that user code chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import Record
from rewindow.streams.serde.key_bytes import partition_of

Partitioner = Callable[[str, Any, Any, int], int | None]
"""``partitioner(topic, key, value, partitions)``: a number from 0 to ``partitions - 1``; None for the partition of the key."""


def partition_for(sink: SinkNode, record: Record, partitions: int) -> int:
    """Return the partition of an internal topic to which a record goes. A null key belongs to partition 0.

    Raises `DataError` if the partitioner returns anything but one of the partitions or None.
    """
    if sink.is_global:
        return 0
    if sink.partitioner is not None:
        chosen: object = sink.partitioner(sink.topic, record.key, record.value, partitions)
        if chosen is not None:
            return _checked(chosen, sink, record, partitions)
    return 0 if record.key is None else partition_of(record.key, partitions)


def _checked(chosen: object, sink: SinkNode, record: Record, partitions: int) -> int:
    if type(chosen) is int and 0 <= chosen < partitions:
        return chosen
    message = (
        f"the partitioner of {sink.topic!r} returned {chosen!r} for the key {record.key!r}, and there are {partitions} "
        f"partitions: return one number from 0 to {partitions - 1}, or None for the partition of the key"
    )
    raise DataError(message)
