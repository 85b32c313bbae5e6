"""Values that `land` and its engine exchange: sources, logs, and landings to write.

A source consists of files, of rows in a table of a catalog, or of the epochs of another job. Times are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import Column

if TYPE_CHECKING:
    from rewindow.contracts.row_faults import RowFault

FAIL, SKIP, PARTITION_TIME = "fail", "skip", "partition_time"
"""What to do with a record without a valid timestamp: fail, quarantine it, or use the time of its partition."""
JOB = "job"
"""The format of a source that is another job's output. Its rows arrive in epochs."""
ARRIVAL = "arrival"
"""The value of the setting ``timestamp`` with which records get their arrival time."""
FILE_ORDER = "file"
"""The value of the setting ``order`` that sorts records by the names of their files, then by their position in the file."""
OUTPUT_ORDER = ("_partition", "_offset")
"""The columns of another job's output that give the order of its rows."""
OUTPUT_TIME = "_timestamp"
"""The column of another job's output with the timestamps of its rows."""
LATER = "later"
"""A key in the position of a source of files. Its value names the landed files that have rows of later intervals."""
FAR = 2**62
"""Later than any timestamp of a record."""
DAY_GRID = "day"
"""Intervals divide the local day."""
GRID_OF_1970 = "1970"
"""Intervals have equal lengths, counted from 1970-01-01 00:00 local time. Older versions landed with such intervals."""
NEW_ROWS, OLD_ROWS = "new rows", "old rows"
"""The names (paths) of two pieces of a catalog table: rows that were never landed, and rows that an earlier landing has
read."""
_OUTPUT_COLUMNS = (*OUTPUT_ORDER, OUTPUT_TIME)


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The source of a log. ``location`` is the path to open (may contain wildcards); ``schema`` is DDL, for files.

    ``name`` is the path as configured; fingerprints and messages show it.
    """

    format: str
    location: str
    name: str
    options: Mapping[str, Any]
    schema: str | None = None
    lands_copies: bool = False
    """Whether a file is landed even if another file has the same content."""
    follows_links: bool = False
    """Whether links that lead out of the source's folder are followed."""


@dataclass(frozen=True, slots=True)
class LogSpec:
    """The definition of a log and its source. Columns have their names in the log, after ``renames`` (source -> log).

    If ``value`` is None, the value has every column without another role. ``timestamp`` is a column, ``arrival`` or
    ``module:function``. ``zone`` applies to times without a time zone.
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
    in_file_order: bool = False
    """Whether rows with equal arrival times are in the order of `FILE_ORDER`. If so, ``order`` is empty."""
    renames: Mapping[str, str] | None = None
    invalid: str = FAIL
    unreadable: str = FAIL
    zone: str = "UTC"
    source_offsets: tuple[str, str] | None = None
    """The partition and offset columns of a source table that has its own offsets; `land` does not copy such a table."""
    topic_positions: tuple[str, str] | None = None
    """The partition and offset columns of files that recorded a topic. The log gets the partitions and the order of the
    topic."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The unit of the integers in each column (or from each extractor). Without a unit, milliseconds are expected and
    checked."""
    ignore: tuple[str, ...] = ()
    """Fields that files may have and that are not landed. A nested field is a path (``address.zip``)."""
    optional: tuple[str, ...] = ()
    """Landed fields that a file may lack. Its rows then have null. These are names in the source, before ``renames``."""

    def names_of(self, source: str) -> tuple[str, ...]:
        """Return the names of a source's column in the log: its new name, and also its own name if the settings use it."""
        renames = self.renames or {}
        if source not in renames:
            return (source,)
        named = (*self.key, *(self.value or ()), *self.order, self.timestamp, self.arrived_at)
        is_copied = source in named and source not in renames.values() and self.source_offsets is None
        return (renames[source], source) if is_copied else (renames[source],)

    @property
    def is_output(self) -> bool:
        """Whether the source is another job's output. Its rows arrive by epoch."""
        return self.source.format == JOB

    @property
    def position_columns(self) -> tuple[str, ...]:
        """The names of the partition and offset columns of a source that has them."""
        return self.source_offsets or self.topic_positions or ()

    @property
    def output_keys(self) -> tuple[str, ...]:
        """The columns in ``order`` that are key columns of another job's output (`SourceLook.keys`)."""
        return tuple(name for name in self.order if name not in _OUTPUT_COLUMNS)

    @property
    def extractor(self) -> str | None:
        """The timestamp extractor (``module:function``), if there is one."""
        return self.timestamp if ":" in self.timestamp else None

    def column_of(self, fault: RowFault) -> str:
        """Return the name of the column whose time is wrong."""
        return (self.arrived_at if fault.is_of_arrival else None) or self.timestamp

    def unit_fix(self, fault: RowFault) -> str:
        """Return advice for times in another unit, as a sentence without its full stop."""
        name, unit = self.column_of(fault), fault.unit
        real = f"`units: {{{name}: ms}}` if these really are milliseconds"
        if name == self.extractor:
            return f"Return milliseconds from {name}, or write {real}"
        if self.source_offsets is not None:
            return f"Write milliseconds to the table, or {real}"
        declared = f"`units: {{{name}: {unit}}}` (`ms` if these really are milliseconds)"
        return f"Write milliseconds, or declare the unit of all files: {declared}"


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """A table whose records have their own partitions and offsets, for example from Kafka. The table itself serves as the log.

    ``table`` is the table's name in the warehouse. ``schema`` is the table's schema (JSON) when it was landed. ``partition``,
    ``offset`` and ``timestamp`` are column names after ``renames``, which maps names in the table to names in the log.
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
    """The typed columns of a log, and the schema (a text for the engine) with which its source is read from now on."""

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
    """A file of a source. A file of a table also has the arrival of its rows (the commit time) and its partition values.

    ``name`` is the path of the file below the folder of the source. The source's position names the file by this path.
    """

    path: str
    arrival_ms: int | None = None
    values: tuple[tuple[str, str | None], ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class SourceLook:
    """The state of an inspected source.

    No row of the pieces in ``fresh`` was landed; an earlier landing has read those in ``rest``.

    In ``rest``, only rows that arrive at or after the end of the last landed interval can be due. If ``overlapping``, ``rest``
    also contains the rows of ``fresh``. The landing records ``position``. ``schema`` is the schema of a table (JSON).
    """

    position: Mapping[str, Any]
    fresh: tuple[Piece, ...]
    rest: tuple[Piece, ...] = ()
    overlapping: bool = False
    schema: str | None = None
    partition_columns: tuple[str, ...] = ()
    base: str | None = None
    """The root of Hive-style partition directories (``year=2013``), if the source has any."""
    epochs: tuple[ProducedEpoch, ...] = ()
    """The epochs of another job's output that are not landed."""
    on_hold: str = ""
    """The run of the other job that is on hold; empty if there is none. Epochs after this run are not published."""
    version: int | None = None
    """The version of the table to read, if its files alone do not give its rows (column mapping, deletion vectors)."""
    governed: Governed | None = None
    owner: str | None = None
    """The job that writes the table as its output; None if no job does."""
    landed: tuple[Piece, ...] = ()
    """The landed files that come last in the order of names, even if all their rows are landed."""
    empty: tuple[str, ...] = ()
    """New text files without any bytes. They are landed once they have bytes."""
    open_ended: tuple[str, ...] = ()
    """New CSV files whose last line has no line end, so they may be incomplete. Empty if the last landed files also lack
    line ends."""
    keys: tuple[str, ...] = ()
    """The key columns of a job's output, without the bounds of windows; empty if they are unknown."""

    def file_numbers(self) -> dict[str, int]:
        """Return the index of each file of the source, by name. The files are numbered from 0 in the order of their names."""
        return {name: number for number, name in enumerate(sorted(piece.name for piece in (*self.rest, *self.fresh)))}


class Intervals(Protocol):
    """The grid of arrival intervals."""

    def start_of(self, time_ms: int) -> int:
        """Return the start of the interval that contains a time."""
        ...

    def after(self, start_ms: int) -> int:
        """Return the end of the interval that starts at ``start_ms``."""
        ...


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When the rows of a source arrived.

    ``starts`` are the starts of the intervals with due rows. If due rows have no arrival, ``starts`` includes None, and
    ``fault`` is the reason. ``waiting`` is the number of rows that are not due yet, ``next_ms`` the arrival of the first of
    them.
    """

    starts: frozenset[int | None] = frozenset()
    waiting: int = 0
    next_ms: int | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """Which rows of a source are due: those that arrive before ``until_ms`` and are not landed.

    ``through_ms``: rows that arrived before this time are landed, except rows that became visible later (None: nothing is
    landed).
    """

    through_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PendingLanding:
    """A landing to write: its number and, with ``every``, its arrival interval ``[start_ms, end_ms)``."""

    number: int
    start_ms: int = -FAR
    end_ms: int = FAR

    @property
    def interval(self) -> tuple[int, int] | None:
        """The interval, if there is one."""
        return (self.start_ms, self.end_ms) if self.end_ms != FAR else None


@dataclass(frozen=True, slots=True)
class TimestampPolicy:
    """What to do with records without a valid timestamp (`FAIL`, `SKIP`, `PARTITION_TIME`).

    A timestamp is also invalid if it is more than ``max_ahead_ms`` after the arrival (None: no limit).
    """

    invalid: str = FAIL
    max_ahead_ms: int | None = None
    unreadable: str = FAIL
    """What to do with a row that the parser cannot read: fail the landing or quarantine the row (`FAIL`, `SKIP`)."""


@dataclass(frozen=True, slots=True)
class LogWrite:
    """Everything a worker needs to write the new rows of a log."""

    feed: str
    generation: int
    attempt: str
    partitions: int
    spec: LogSpec
    columns: LogColumns
    log_root: str
    quarantine_root: str
    landings: tuple[PendingLanding, ...]
    starts: Mapping[int, tuple[int, int]]
    """The next offset and the partition time of each partition."""
    policy: TimestampPolicy
    now_ms: int
    bases: Mapping[int, int] = field(default_factory=dict)
    """If the source has its own offsets: maps each partition to the source's offset of the record that has offset 0 in the
    log."""
    file_rows: int = 4_000_000
    """Rows per staged file."""
    memory_bytes: int = 512 << 20
    """The memory that a task may use to split or merge rows."""


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """The configuration of a feed, as `land` uses it. If ``max_ahead_ms`` is None, there is no limit."""

    feed: str
    partitions: int
    logs: tuple[LogSpec, ...]
    every: tuple[int, str] | None = None
    """Count and unit of the arrival intervals."""
    zone: str = "UTC"
    grid: str = DAY_GRID
    """How intervals of hours and smaller units are placed: `DAY_GRID`, or `GRID_OF_1970` if older landings used it."""
    max_task_idle_ms: int | None = 0
    lag_ms: int = 0
    interval_end: bool = False
    max_ahead_ms: int | None = None
    memory_bytes: int = 512 << 20
    """The memory that a task of a landing may use."""


@dataclass(frozen=True, slots=True)
class Governed:
    """A table of a catalog as a source. Only Spark may open it, so landings track which rows are new, not which files.

    Rows of table versions above ``after`` are new (None: other columns decide which rows are due). If commit times are the
    arrivals of rows, ``arrivals`` has pairs of a version and its commit time (epoch ms).
    """

    table: str
    after: int | None = None
    arrivals: tuple[tuple[int, int], ...] = ()


class EpochTimes(NamedTuple):
    """The watermark of another job's epoch, and for how long (ms) the job may have held rows back."""

    watermark_ms: int
    held_ms: int

    @property
    def complete_ms(self) -> int:
        """The time up to which this epoch and the epochs before it have all rows (-1: none)."""
        return max(self.watermark_ms - self.held_ms, UNKNOWN)


@dataclass(frozen=True, slots=True)
class ProducedEpoch:
    """An epoch that another job committed: its watermark (epoch ms), its run and the identity of the job's ledger.

    ``held_ms``: how long the job may hold back a row of the output (ADR-133). ``attempt``: the attempt that planned the run.
    """

    number: int
    watermark_ms: int
    run: int
    ledger: str = ""
    held_ms: int = 0
    may_have_rows: bool = True
    """False if the output certainly has no row of this epoch or of any later epoch."""
    attempt: str = ""

    @property
    def times(self) -> EpochTimes:
        """The watermark of the epoch, and by how much (ms) the watermark of the epoch's landing is lower."""
        return EpochTimes(self.watermark_ms, self.held_ms)
