"""The configuration of a feed: its logs, their sources, and how they are landed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ByteSize, Field, model_validator

from rewindow.config.field_types import (
    Column,
    ColumnOrColumns,
    Columns,
    DottedName,
    DurationMs,
    DurationMsOrForever,
    DurationMsOrNone,
    EveryInterval,
    Fields,
    Location,
    Name,
    OldColumn,
    SparkText,
    TimestampSource,
    Zone,
)
from rewindow.config.value import ConfigValue

_DAY_MS = 86_400_000


class SourceConfig(ConfigValue):
    """Source of a log: a Delta table in the warehouse, files or a Delta table at a path, or another job's output."""

    table: DottedName | None = None
    """A Delta table of the warehouse, or `catalog.schema.table`."""
    path: Location | None = None
    """A file, a folder or a Delta table, from the project's root or as a URI."""
    format: Literal["csv", "json", "parquet", "delta"] | None = None
    """The format of what is at `path`."""
    options: dict[str, SparkText] = {}
    """Options of Spark's reader, such as `header` of csv."""
    copies: Literal["refuse", "land"] = "refuse"
    """What to do with a file that has the content of another file of the source."""
    schema_ddl: str | None = Field(default=None, alias="schema")
    """The columns of csv and json, as in `id long, at timestamp`. None: as the options say."""
    job: Name | None = None
    """A job, one of whose outputs is the source."""
    output: DottedName | None = None
    """The output of that job."""

    @property
    def kind(self) -> Literal["table", "path", "job"]:
        """The kind of source."""
        return "table" if self.table else "path" if self.path else "job"

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [word for word, value in (("table", self.table), ("path", self.path), ("job", self.job)) if value]
        if len(given) != 1:
            named = " and ".join(given) if given else "none"
            raise ValueError(f"a source has exactly one of table, path with format, or job with output; got {named}")
        if bool(self.format) != (given == ["path"]):
            raise ValueError("path and format go together: {path: raw/events, format: csv|json|parquet|delta}")
        if bool(self.output) != (given == ["job"]):
            raise ValueError("job and output go together: {job: low_activity, output: low-activity-alerts}")
        if self.copies == "land" and self.format in {None, "delta"}:
            raise ValueError("copies applies to files only: remove it")
        if given != ["path"] and (self.options or self.schema_ddl):
            raise ValueError("options and schema apply to files only: remove them, or use path and format")
        if self.format in {"delta", "parquet"} and self.schema_ddl:
            raise ValueError(f"schema applies to csv and json only: remove it, {self.format} has its own")
        return self


class LogConfig(ConfigValue):
    """How a log is made from its source. Column names apply after the renames in ``columns``."""

    source: SourceConfig
    """Where the rows come from."""
    key: ColumnOrColumns
    """One column or several. Rows of equal keys are in one partition."""
    timestamp: TimestampSource
    """A column, `arrival`, or `module:function(record, partition_time)`."""
    value: ColumnOrColumns | None = None
    """One column (the bare value) or several (a row with these names). None: every column without another role."""
    columns: dict[Column, OldColumn] = {}
    """Renames columns, `{new: old}`. The other keys use the new names."""
    invalid_timestamp: Literal["fail", "skip", "partition_time"] = "fail"
    """What to do with a record without a usable time: fail, quarantine it, or use its partition's time."""
    unreadable: Literal["fail", "skip"] = "fail"
    """What to do with a row that the parser of csv or json cannot read: fail, or quarantine it."""
    arrived_at: Column | None = None
    """The column with the time at which a row arrived. None: the commit time of the source's version (Delta)."""
    order: Columns = ()
    """Columns that order rows of equal arrival."""
    ignore: Fields = ()
    """Fields that new files may have and that are not landed. They and ``optional`` are named as in the source."""
    optional: Fields = ()
    """Landed fields that a new file may lack; they are null there."""
    units: dict[TimestampSource, Literal["s", "ms", "us", "ns"]] = {}
    """The unit of BIGINT times (s, ms, us, ns), by the column or extractor of ``timestamp`` or ``arrived_at``.
    Default: ms, checked."""
    partition: Column | None = None
    """Together with `offset`: the source's columns of Kafka partitions and offsets. Such a log is not copied."""
    offset: Column | None = None
    """See `partition`."""

    @model_validator(mode="after")
    def _keeps_source_offsets(self) -> Self:
        if (self.partition is None) != (self.offset is None):
            raise ValueError(
                "partition and offset go together: set both to the columns of Kafka's partition and offset"
            )
        if self.partition is None:
            return self
        if self.source.table is None:
            raise ValueError("partition and offset need a table of the warehouse: source: {table: raw.events}")
        if self.arrived_at or self.order or self.invalid_timestamp != "fail":
            raise ValueError(
                "a log with source offsets can neither reorder nor skip records: remove arrived_at, order and "
                "invalid_timestamp"
            )
        if ":" in self.timestamp or self.timestamp == "arrival":
            raise ValueError("a log with source offsets needs a column of the source as timestamp")
        return self

    @model_validator(mode="after")
    def _csv_has_one_header(self) -> Self:
        if self.source.format == "csv" and (self.ignore or self.optional):
            raise ValueError("ignore and optional do not apply to csv, whose columns are read by position: remove them")
        return self

    @model_validator(mode="after")
    def _units_of_times(self) -> Self:
        times = [name for name in (self.timestamp, self.arrived_at) if name not in (None, "arrival")]
        for name, unit in self.units.items():
            if name not in times:
                raise ValueError(
                    f"units names {name}, which is neither timestamp nor arrived_at: name one of {', '.join(times)}"
                )
            if unit != "ms" and (":" in name or self.partition):
                raise ValueError(f"units cannot convert {name}: return milliseconds, or write them to the table")
        return self

    @model_validator(mode="after")
    def _each_column_once(self) -> Self:
        both = [column for column in _listed(self.key) if column in _listed(self.value)]
        if both:
            raise ValueError(f"{both[0]} is in both key and value: remove it from value")
        old = list(self.columns.values())
        if len(set(old)) < len(old):
            raise ValueError("columns renames a column twice: give each source column one name")
        return self


class LandingConfig(ConfigValue):
    """How a feed's additions are cut into landings, how watermarks are set, and which timestamps are implausible."""

    every: EveryInterval | None = None
    """One landing per complete interval of arrival: `1h`, `1d`, `1w`, `1mo`, `1y`. None: one landing per call."""
    watermark: Literal["interval_end"] | None = None
    """`interval_end`: a landing is complete through the end of its interval. None: as `max_task_idle` says."""
    max_ahead_ms: DurationMsOrNone = Field(default=_DAY_MS, alias="max_ahead")
    """A record with a timestamp further after its arrival than this goes to quarantine; `none`: no limit."""
    memory: ByteSize = Field(default=ByteSize(512 << 20), ge=1 << 20)
    """What each task of a landing may use, in bytes or like ``512MiB``. Rows that do not fit are sorted on disk."""

    @model_validator(mode="after")
    def _an_end_needs_intervals(self) -> Self:
        if self.watermark is not None and self.every is None:
            raise ValueError("watermark: interval_end needs intervals: add every: 1h or another interval")
        return self


class FeedConfig(ConfigValue):
    """Logs that are landed together: co-partitioned, with one sequence of landings."""

    feed: Name
    """The name, equal to the file's."""
    partitions: int = Field(ge=1, le=4096)
    """The number of partitions of every log: part of the input, never changed."""
    logs: dict[DottedName, LogConfig] = Field(min_length=1)
    """The logs by topic."""
    zone: Zone = "UTC"
    """The time zone of calendar units and of times without a zone."""
    max_task_idle_ms: DurationMsOrForever = Field(default=0, alias="max_task_idle")
    """How long a silent partition holds the watermark back: `0`, a duration, or `forever`. With `0` the watermark
    is the largest landed timestamp."""
    lag_ms: DurationMs = Field(default=0, alias="lag")
    """Holds the watermark back by this duration."""
    landing: LandingConfig = LandingConfig()
    """How additions are cut into landings."""


def _listed(columns: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if columns is None else (columns,) if isinstance(columns, str) else columns
