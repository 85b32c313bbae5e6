"""What a topology is made of: sources, processors and sinks, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewindow.streams.processor import Processor
from rewindow.streams.settings import FAIL, OnError


@dataclass(frozen=True, slots=True)
class Node:
    """What every node has: its name and its parents' names."""

    name: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNode(Node):
    """Reads a topic. ``is_internal``: a repartition topic, written by another sub-topology of the same run."""

    topic: str = ""
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class ProcessorNode(Node):
    """Runs a processor that ``supplier`` makes for each task and epoch."""

    supplier: Callable[[], Processor] = Processor
    stores: tuple[str, ...] = ()
    holds_ms: int = 0
    """The longest it can hold a result back; the watermark below it is lowered by that (D22)."""
    on_error: OnError = FAIL
    """What becomes of a record at which it fails; no part of the fingerprint."""


@dataclass(frozen=True, slots=True)
class SinkNode(Node):
    """Writes a topic. ``key`` and ``value`` declare types for its columns; None leaves them to JSON text."""

    topic: str = ""
    key: Any = None
    value: Any = None
    is_internal: bool = False
