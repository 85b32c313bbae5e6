"""The nodes of a topology (sources, processors and sinks) as data, and the choice of a partition for a sink's record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import FAIL, OnError

Partitioner = Callable[[str, Any, Any, int], int | None]
"""``partitioner(topic, key, value, partitions)`` returns a number from 0 to ``partitions - 1``, or None to let the key decide."""


class LeavesOut(StrEnum):
    """The kind of records that a node does not pass on. The node's supplier declares it in its attribute ``leaves_out``."""

    BY_CONDITION = "by_condition"
    """Records that do not fulfil a condition."""
    WITHOUT_PARTNER = "without_partner"
    """Records without a join partner, because the node is an inner join."""


class TypedBy(NamedTuple):
    """The DSL's method that adds a node and declares types, and the parts of records (key, value) whose types it declares."""

    method: str
    parts: tuple[str, ...] = ("key", "value")


PROCESS = TypedBy("process")


@dataclass(frozen=True, slots=True)
class Node:
    """A node's name and the names of its parents."""

    name: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNode(Node):
    """Reads a topic. ``is_internal``: whether another sub-topology of the same run writes the topic.

    ``is_global``: whether the topic has the records of a global table. Every task reads all of these, and they advance no
    clock.
    """

    topic: str = ""
    is_internal: bool = False
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class ProcessorNode(Node):
    """Runs a processor. ``supplier`` makes a new processor for each task and epoch."""

    supplier: Callable[[], Processor] = Processor
    stores: tuple[str, ...] = ()
    holds_ms: int = 0
    """The longest time in ms for which the node can hold a result back. The watermark below it is lowered by this time (D22)."""
    on_error: OnError = FAIL
    """The policy for a record at which the node fails; not part of the fingerprint."""
    typed_by: TypedBy = PROCESS
    """The call that declares the types of the keys or values that the node makes; not part of the fingerprint."""

    @property
    def leaves_out(self) -> LeavesOut | None:
        """The kind of records that the node does not pass on, as its supplier declares; None if it declares nothing."""
        declared = getattr(self.supplier, "leaves_out", None)
        return declared if isinstance(declared, LeavesOut) else None

    @property
    def joins_table(self) -> bool:
        """Whether the node joins records with a table whose rows are in the node's stores, as its supplier declares."""
        return getattr(self.supplier, "joins_table", False) is True


@dataclass(frozen=True, slots=True)
class SinkNode(Node):
    """Writes a topic. ``key`` and ``value`` declare the types of the topic's columns; None means JSON text.

    ``is_global``: whether the topic is an internal one with a single partition. All tasks of the sub-topologies that read it
    then read the whole topic.
    """

    topic: str = ""
    key: Any = None
    value: Any = None
    is_internal: bool = False
    is_global: bool = False
    partitioner: Callable[[str, Any, Any, int], int | None] | None = None
    """A `Partitioner` that chooses the partition of an internal topic; None to let the key decide."""


def partition_for(sink: SinkNode, record: Record, partitions: int) -> int:
    """Return the partition of an internal topic to which a record goes. A null key belongs to partition 0.

    Raises `DataError` if the partitioner returns anything but one of the partitions or None.
    """
    if sink.is_global:
        return 0
    if sink.partitioner is not None:
        chosen: object = sink.partitioner(sink.topic, record.key, record.value, partitions)
        if chosen is not None:
            return _checked_partition(chosen, sink, record, partitions)
    return partition_of(record.key, partitions)


def _checked_partition(chosen: object, sink: SinkNode, record: Record, partitions: int) -> int:
    if type(chosen) is int and 0 <= chosen < partitions:
        return chosen
    raise DataError(
        "partitioner-result-invalid",
        "the partitioner of {topic!r} returned {result} for the key {key}, and there are {partitions} "
        "partitions: return one number from 0 to {last}, or None for the partition of the key",
        topic=sink.topic,
        result=repr(chosen),
        key=repr(record.key),
        partitions=partitions,
        last=partitions - 1,
    )
