"""The nodes of a topology: sources, processors and sinks, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewindow.streams.processor import Processor
from rewindow.streams.settings import FAIL, OnError


@dataclass(frozen=True, slots=True)
class Node:
    """A node's name and the names of its parents."""

    name: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNode(Node):
    """Reads a topic. ``is_internal``: a topic that another sub-topology of the same run writes.

    ``is_global``: every task reads all its records, those of a global table, and none of them moves a clock.
    """

    topic: str = ""
    is_internal: bool = False
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class ProcessorNode(Node):
    """Runs a processor. ``supplier`` makes a new one for each task and epoch."""

    supplier: Callable[[], Processor] = Processor
    stores: tuple[str, ...] = ()
    holds_ms: int = 0
    """The longest time in ms it can hold a result back, by which the watermark below it is lowered (D22)."""
    on_error: OnError = FAIL
    """The policy for a record at which it fails; not part of the fingerprint."""


@dataclass(frozen=True, slots=True)
class SinkNode(Node):
    """Writes a topic. ``key`` and ``value`` declare the types of its columns; None means JSON text.

    ``is_global``: an internal topic with a single partition, which every task of the readers reads.
    """

    topic: str = ""
    key: Any = None
    value: Any = None
    is_internal: bool = False
    is_global: bool = False
    partitioner: Callable[[str, Any, Any, int], int | None] | None = None
    """Chooses the partition of an internal topic; None for that of the key (`streams.partitioner`)."""
