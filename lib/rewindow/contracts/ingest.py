"""What `land` asks an engine to do, and what comes back: sources, the places a log goes on at, blocks. Plain values.

Times are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from rewindow.contracts.governed_sources import Governed
from rewindow.contracts.staged_files import StagedFile
from rewindow.streams.serde.schema import Column

FAIL, SKIP, PARTITION_TIME = "fail", "skip", "partition_time"
"""What a record without a valid timestamp gets: an error, the quarantine, its partition's time."""

JOB = "job"
"""The format of a source that is another job's output: what arrives is epochs."""

ARRIVAL = "arrival"
"""The word for "the timestamp is the arrival"."""

FAR = 2**62
"""Beyond every time that a record can have."""


LOG_COLUMNS = tuple(Column(name, "long") for name in ("offset", "timestamp", "landing", "arrived_at"))
"""What every log has before its key's and value's columns."""

QUARANTINE_COLUMNS = (
    Column("name", "string"),
    Column("topic", "string"),
    Column("partition", "long"),
    Column("offset", "long"),
    Column("node", "string"),
    Column("reason", "string"),
    Column("arrived_at", "long"),
    Column("timestamp", "long"),
    Column("record", "string"),
    Column("_run", "long"),
    Column("landing", "long"),
)
"""What `land` refuses and, where a job says ``dropped: quarantine``, what goes no further in it.

``name`` is the feed or the job, ``record`` JSON of the key and value (of a landing: of its columns). Of a landing
``offset``, ``node`` and ``_run`` are null, of a job ``arrived_at``; its ``landing`` is the epoch that took the record.
"""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where a log comes from. ``location`` is a path (files: may hold wildcards); ``schema`` a DDL text for files.

    ``location`` is for opening, ``name`` is what the configuration says, and what fingerprints and messages show.
    """

    format: str
    location: str
    name: str
    options: Mapping[str, str]
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class LogSpec:
    """How a log is made from its source. Columns are called as they are landed, after ``renames`` (source -> log).

    ``value`` None: every column that has no other part. ``timestamp`` is a column, ``arrival`` or ``module:function``.
    ``zone`` is where times without a zone are.
    """

    topic: str
    source: SourceSpec
    key: tuple[str, ...]
    scalar_key: bool
    value: tuple[str, ...] | None
    scalar_value: bool
    timestamp: str
    arrived_at: str | None = None
    order: tuple[str, ...] = ()
    renames: Mapping[str, str] | None = None
    invalid: str = FAIL
    zone: str = "UTC"
    source_offsets: tuple[str, str] | None = None
    """The columns that are partition and offset, where the source has them; then nothing of it is written anew."""

    @property
    def is_output(self) -> bool:
        """Whether the source is another job's output, whose rows' arrival is their epoch."""
        return self.source.format == JOB

    @property
    def extractor(self) -> str | None:
        """``module:function``, if the timestamp is made by one."""
        return self.timestamp if ":" in self.timestamp else None


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """A table whose records have partitions and offsets of their own, as Kafka's have: a log as it is.

    ``table`` is its name in the warehouse; ``schema`` the one that it was landed under (JSON). The columns are called as
    they are after ``renames`` (the table's name -> ours).
    """

    table: str
    partition: str
    offset: str
    timestamp: str
    renames: Mapping[str, str]
    zone: str
    schema: str


@dataclass(frozen=True, slots=True)
class LogColumns:
    """The typed columns of a log, and the schema (engine's text) under which its source is read from now on."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    scalar_key: bool
    scalar_value: bool
    source_schema: str | None = None

    @property
    def all(self) -> tuple[Column, ...]:
        """The key's and the value's columns."""
        return (*self.key, *self.value)


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of a source. Of a table: its rows' arrival (the commit's time) and the values of partition columns."""

    path: str
    arrival_ms: int | None = None
    values: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class ProducedEpoch:
    """An epoch that another job committed: its watermark (epoch ms) and the run that made it."""

    number: int
    watermark_ms: int
    run: int


@dataclass(frozen=True, slots=True)
class SourceLook:
    """A source as it was looked at. ``fresh`` pieces hold rows never landed; ``rest`` those looked at before.

    Of ``rest`` only rows that arrive at or after what is landed can still be due. ``overlapping``: pieces in ``rest``
    hold the rows of ``fresh`` as well. ``position`` is what the landing records, ``schema`` a table's (JSON).
    """

    position: Mapping[str, Any]
    fresh: tuple[Piece, ...]
    rest: tuple[Piece, ...] = ()
    overlapping: bool = False
    schema: str | None = None
    partition_columns: tuple[str, ...] = ()
    base: str | None = None
    """The folder below which directories name partition values (``year=2013``), if files lie in such."""
    epochs: tuple[ProducedEpoch, ...] = ()
    """Of a job's output: the epochs that are not landed."""
    version: int | None = None
    """Of a table whose files do not say what it says (column mapping, deletion vectors): read it at this version."""
    governed: Governed | None = None


class Intervals(Protocol):
    """The grid of intervals of arrival."""

    def start_of(self, time_ms: int) -> int:
        """Return the start of the interval that holds a time."""
        ...

    def after(self, start_ms: int) -> int:
        """Return the end of the interval that starts there."""
        ...


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """Which rows of a source are due: those that arrive before ``until_ms``, and not what was landed before.

    ``through_ms``: all that arrived before was landed, but what comes late (None: nothing was landed yet).
    """

    through_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A landing in the making: its number and, with ``every``, its interval ``[start_ms, end_ms)`` of arrival."""

    number: int
    start_ms: int = -FAR
    end_ms: int = FAR

    @property
    def interval(self) -> tuple[int, int] | None:
        """The interval, if there is one."""
        return (self.start_ms, self.end_ms) if self.end_ms != FAR else None


@dataclass(frozen=True, slots=True)
class TimestampPolicy:
    """What an invalid timestamp gets (`FAIL`, `SKIP`, `PARTITION_TIME`), and how far ahead one may be (None: any)."""

    invalid: str = FAIL
    max_ahead_ms: int | None = None


@dataclass(frozen=True, slots=True)
class LogWrite:
    """Everything needed to write what is new of a log. It travels to the workers."""

    feed: str
    generation: int
    attempt: str
    partitions: int
    spec: LogSpec
    columns: LogColumns
    log_root: str
    quarantine_root: str
    slots: tuple[Slot, ...]
    starts: Mapping[int, tuple[int, int]]
    """Partition -> next offset and partition time."""
    policy: TimestampPolicy
    now_ms: int
    bases: Mapping[int, int] = field(default_factory=dict)
    """Partition -> what the source calls offset 0, where it has offsets of its own."""
    file_rows: int = 4_000_000
    """A staged file is closed when it has so many rows."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one landing got in one partition: offsets ``[start, end)``. ``max_timestamp`` is the partition's so far.

    ``behind`` counts rows (landed or not) that became visible after their own interval was landed.
    """

    landing: int
    partition: int
    start: int
    end: int
    max_timestamp: int
    behind: int
    quarantined: int
    files: tuple[StagedFile, ...]
    quarantine: tuple[StagedFile, ...]
    refused: str = ""
    """Why the first of those that were quarantined was."""
    base: int = 0
    """What the source calls offset 0, where it has offsets of its own."""

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Block:
        """Rebuild what `as_json` made."""
        files, quarantine = (_staged(data[part]) for part in ("files", "quarantine"))
        return cls(**{**data, "files": files, "quarantine": quarantine})


def _staged(files: Sequence[Mapping[str, Any]]) -> tuple[StagedFile, ...]:
    return tuple(StagedFile.from_json(file) for file in files)


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """A feed as it is configured: what its landings are made by. ``max_ahead_ms`` None: no bound."""

    feed: str
    partitions: int
    logs: tuple[LogSpec, ...]
    every: tuple[int, str] | None = None
    """Count and unit of the intervals of arrival."""
    zone: str = "UTC"
    max_task_idle_ms: int | None = 0
    lag_ms: int = 0
    interval_end: bool = False
    max_ahead_ms: int | None = None
