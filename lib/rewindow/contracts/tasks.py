"""The work for an engine: one sub-topology over some epochs, task by task, with the names of all input files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.streams.record import UNKNOWN
from rewindow.streams.settings import Semantics, Settings

if TYPE_CHECKING:
    from rewindow.contracts.ingest import SourceOffsets
    from rewindow.streams.checkpoint import TaskState
    from rewindow.streams.serde.types_to_columns import LogShapes
    from rewindow.streams.topology import Topology

ROWS_AT_ONCE = 65_536
"""Rows per batch that a worker reads."""


class Execution(StrEnum):
    """How a sub-topology is executed. Record and vectorized execution write the same rows (L4)."""

    AUTO = "auto"
    """Vectorized if this gives the same rows, otherwise record by record. The engine chooses once, before it runs the work."""
    RECORD = "record"
    """Record by record."""
    VECTORIZED = "vectorized"
    """Whole columns at a time. If values of a task exceed what the kernels can compute, the task uses record execution."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a log's partition with its first and last offset (both inclusive), from its statistics."""

    path: str
    first: int
    last: int


class LogSpan(NamedTuple):
    """Offsets ``first`` to ``last`` (both inclusive) of a log's partition that one generation landed.

    ``base``: if the log keeps its source's offsets, the source's offset of the record that has offset 0 in the log.
    """

    generation: int
    first: int
    last: int
    base: int = 0


@dataclass(frozen=True, slots=True)
class LogTable:
    """A log that Spark reads for the tasks: the location of its Delta table, and why tasks do not open the table's files.

    ``source_offsets`` describes a source table with its own offsets; it is None for a log that `land` wrote.
    """

    location: str
    why: str
    source_offsets: SourceOffsets | None = None


@dataclass(frozen=True, slots=True)
class InternalFile:
    """A file of an internal log: the records that task ``upstream`` sent to one partition."""

    path: str
    upstream: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch to replay: its number and watermark (epoch ms, -1 for none).

    ``clock_to_ms``: the time to which the wall clock jumps after the records (D8, ``run``); -1 for no jump. ``is_final``:
    whether it is the last epoch of the job, which has no records (D18). ``semantics``: the semantics of the epoch's run, if
    they may differ from the job's present ones.
    """

    number: int
    watermark_ms: int
    clock_to_ms: int = UNKNOWN
    is_final: bool = False
    semantics: Semantics | None = None


@dataclass(frozen=True, slots=True)
class LogSlice:
    """The part of one log that a task reads: its files, and the offsets ``[start, end)`` of each epoch, in order.

    A log that Spark reads has ``spans`` instead of files.
    """

    files: tuple[LogFile, ...]
    bounds: tuple[tuple[int, int], ...]
    spans: tuple[LogSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskWork:
    """One task: its inputs and the checkpoint from which it resumes.

    ``stores`` lists the changelog files of each store in the order of their runs. These files may also have rows of other
    partitions. ``enforced``: the number of epochs in which the task processes records without waiting for an idle topic (D16).
    """

    partition: int
    logs: Mapping[str, LogSlice]
    internal: Mapping[str, tuple[InternalFile, ...]]
    state: TaskState | None
    stores: Mapping[str, tuple[str, ...]]
    enforced: int = 0


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Identifies the job, run and attempt of some work. ``fingerprint``: that of the topology that the driver planned."""

    job: str
    run: int
    attempt: str
    fingerprint: str


@dataclass(frozen=True)
class JobCode:
    """A job's code and settings.

    ``load_topology`` and ``load_logs`` are sent to workers, so they must be functions of importable modules, or partials of such
    functions.
    """

    load_topology: Callable[[], Topology]
    load_logs: Callable[[], LogShapes]
    semantics: Semantics
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def topology(self) -> Topology:
        """The topology, built once per process, for planning. Tasks that run user code build their own."""
        return self.load_topology()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the fields. The topology holds user code, and each worker builds its own topology."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The folders in which tasks stage files: the root folder of each target (`StagedFile.target`).

    If the job quarantines dropped records, there is a root for `staged_files.QUARANTINE`. ``partitions`` is the number
    of partitions of internal logs.
    """

    roots: Mapping[str, str]
    partitions: int


@dataclass(frozen=True, slots=True)
class SubTopologyWork:
    """One sub-topology of a run: all its tasks and what they share.

    ``tables``: the topics that Spark reads (`engine.spark.shuffle_reader`). Tasks open the files of all other topics.

    ``rows_at_once``: the number of rows in each batch that a task reads. Batches that it writes have a quarter of this number.
    The number does not change the rows (L3).
    """

    sub_topology: int
    identity: RunIdentity
    code: JobCode
    epochs: tuple[Epoch, ...]
    tasks: tuple[TaskWork, ...]
    staging: StagingArea
    tables: Mapping[str, LogTable] = field(default_factory=dict)
    execution: Execution = Execution.AUTO
    rows_at_once: int = ROWS_AT_ONCE
