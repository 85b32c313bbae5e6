"""What an engine is asked to do: one sub-topology over some epochs, task by task, with every file named. Plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from rewindow.contracts.ingest import SourceOffsets
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.record import UNKNOWN
from rewindow.streams.semantics import Semantics
from rewindow.streams.serde.binding import LogShapes
from rewindow.streams.settings import Settings
from rewindow.streams.topology import Topology

ROWS_AT_ONCE = 65_536
"""How many rows a worker reads at once."""


class Execution(StrEnum):
    """How sub-topologies run: both execution modes give the same rows (L4)."""

    AUTO = "auto"
    """On whole columns where that can be done exactly, else record by record."""
    RECORD = "record"
    """Record by record."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a log's partition that has offsets from ``first`` to ``last``, both included, as statistics tell."""

    path: str
    first: int
    last: int


class LogSpan(NamedTuple):
    """Offsets from ``first`` to ``last``, both included, of a log's partition; a generation landed them.

    ``base``: what the table calls offset 0, where the offsets are the table's own.
    """

    generation: int
    first: int
    last: int
    base: int = 0


@dataclass(frozen=True, slots=True)
class LogTable:
    """A log that Spark reads for the tasks: its Delta table, why it is not read file by file, and its own columns.

    ``source_offsets`` is None for a log that `land` wrote, whose columns are always called the same.
    """

    location: str
    why: str
    source_offsets: SourceOffsets | None = None


@dataclass(frozen=True, slots=True)
class InternalFile:
    """A file of an internal log: what the task ``upstream`` sent to one partition."""

    path: str
    upstream: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch to replay: its number and watermark (epoch ms, -1 for none).

    ``clock_to_ms``: where the wall clock jumps when its records are done (D8, ``run``); -1: it does not. ``is_final``:
    nothing ever comes after it (D18); it is an epoch of its own, without records.
    """

    number: int
    watermark_ms: int
    clock_to_ms: int = UNKNOWN
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class LogSlice:
    """What a task reads of one log: its files, and the offsets ``[start, end)`` of each epoch, in order.

    Of a log that Spark reads there are no files but spans.
    """

    files: tuple[LogFile, ...]
    bounds: tuple[tuple[int, int], ...]
    spans: tuple[LogSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskWork:
    """One task: what it reads and where it goes on. ``stores`` names changelog files in the order of their runs.

    ``enforced``: in how many of its epochs it takes records although a topic is waited for no longer (D16).
    """

    partition: int
    logs: Mapping[str, LogSlice]
    internal: Mapping[str, tuple[InternalFile, ...]]
    state: TaskState | None
    stores: Mapping[str, tuple[str, ...]]
    enforced: int = 0


@dataclass(frozen=True, slots=True)
class SubTopologyWork:
    """One sub-topology of a run. ``roots`` says for each target (`StagedFile.target`) the folder of its table.

    A job that wants what it drops in the quarantine has a root for it (`staging.QUARANTINE`).

    ``fingerprint`` is that of the topology that was planned; a worker that builds another one refuses.

    ``tables``: of its topics those that Spark reads (`engine.spark.shuffle_reader`); the others are read file by file.

    ``rows_at_once``: how many rows are read at once, and a quarter of it written; the rows are the same (L3).

    ``load_topology`` and ``load_logs`` must survive the way to a worker: functions of importable modules, or partials.
    """

    sub_topology: int
    run: int
    attempt: str
    fingerprint: str
    partitions: int
    epochs: tuple[Epoch, ...]
    tasks: tuple[TaskWork, ...]
    roots: Mapping[str, str]
    load_topology: Callable[[], Topology]
    load_logs: Callable[[], LogShapes]
    semantics: Semantics
    job: str = ""
    execution: Execution = Execution.AUTO
    settings: Settings = field(default_factory=Settings)
    tables: Mapping[str, LogTable] = field(default_factory=dict)
    rows_at_once: int = ROWS_AT_ONCE
