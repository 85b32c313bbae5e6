"""A feed: its logs, where they come from, and how they are landed. Part of the input, and fingerprinted."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from rewindow.config.value import ConfigValue
from rewindow.config.words import (
    Column,
    ColumnOrColumns,
    Columns,
    DottedName,
    DurationMs,
    DurationMsOrForever,
    DurationMsOrNone,
    EveryWord,
    Location,
    Name,
    OldColumn,
    SparkText,
    TimestampWord,
    Zone,
)

_DAY_MS = 86_400_000


class SourceConfig(ConfigValue):
    """Where a log comes from: a Delta table in the warehouse, files or a table at a path, or another job's output."""

    table: DottedName | None = None
    path: Location | None = None
    format: Literal["csv", "json", "parquet", "delta"] | None = None
    options: dict[str, SparkText] = {}
    schema_ddl: str | None = Field(default=None, alias="schema")
    job: Name | None = None
    output: DottedName | None = None

    @property
    def kind(self) -> Literal["table", "path", "job"]:
        """Which of the three it is."""
        return "table" if self.table else "path" if self.path else "job"

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [word for word, value in (("table", self.table), ("path", self.path), ("job", self.job)) if value]
        if len(given) != 1:
            named = f"both {' and '.join(given)}" if given else "none of them"
            raise ValueError(f"a source is exactly one of table, path with format, job with output; here is {named}")
        if bool(self.format) != (given == ["path"]):
            raise ValueError("path and format go together: {path: raw/events, format: csv|json|parquet|delta}")
        if bool(self.output) != (given == ["job"]):
            raise ValueError("job and output go together: {job: low_activity, output: low-activity-alerts}")
        if given != ["path"] and (self.options or self.schema_ddl):
            raise ValueError("options and schema are for files: leave them out with table or job")
        if self.format in {"delta", "parquet"} and self.schema_ddl:
            raise ValueError(f"schema is for csv and json: {self.format} brings its own")
        return self


class LogConfig(ConfigValue):
    """How a log is made from its source. Columns are called as they are after ``columns`` has renamed them."""

    source: SourceConfig
    key: ColumnOrColumns
    timestamp: TimestampWord
    value: ColumnOrColumns | None = None
    """None: every column that has no other part."""
    columns: dict[Column, OldColumn] = {}
    """New name -> the source's own."""
    invalid_timestamp: Literal["fail", "skip", "partition_time"] = "fail"
    arrived_at: Column | None = None
    """None: the time at which the source's version was committed."""
    order: Columns = ()
    partition: Column | None = None
    """With ``offset``: the source's own partitions and offsets, as Kafka gave them. Then nothing is copied."""
    offset: Column | None = None

    @model_validator(mode="after")
    def _keeps_source_offsets(self) -> Self:
        if (self.partition is None) != (self.offset is None):
            raise ValueError("partition and offset go together: the columns that hold what Kafka gave each record")
        if self.partition is None:
            return self
        if self.source.table is None:
            raise ValueError("partition and offset are for a table of the warehouse: source: {table: raw.events}")
        if self.arrived_at or self.order or self.invalid_timestamp != "fail":
            raise ValueError(
                "where partition and offset are the source's own, no record can be moved or left out: "
                "leave out arrived_at, order and invalid_timestamp"
            )
        if ":" in self.timestamp or self.timestamp == "arrival":
            raise ValueError("where partition and offset are the source's own, timestamp is a column of it")
        return self

    @model_validator(mode="after")
    def _each_column_once(self) -> Self:
        both = [column for column in _listed(self.key) if column in _listed(self.value)]
        if both:
            raise ValueError(f"{both[0]} is in key and in value: leave it out of value, the key is there anyway")
        old = list(self.columns.values())
        if len(set(old)) < len(old):
            raise ValueError("columns renames a column twice: each column of the source gets one name")
        return self


class LandingConfig(ConfigValue):
    """How additions to a feed are cut, how far they are complete, and what is too far ahead to be true."""

    every: EveryWord | None = None
    """None: one landing a call."""
    watermark: Literal["interval_end"] | None = None
    max_ahead_ms: DurationMsOrNone = Field(default=_DAY_MS, alias="max_ahead")
    """None: switched off (written ``none``)."""

    @model_validator(mode="after")
    def _an_end_needs_intervals(self) -> Self:
        if self.watermark is not None and self.every is None:
            raise ValueError("watermark: interval_end needs intervals: add every: 1h (or another length)")
        return self


class FeedConfig(ConfigValue):
    """Logs that are landed together: co-partitioned, one sequence of landings."""

    feed: Name
    partitions: int = Field(ge=1, le=4096)
    logs: dict[DottedName, LogConfig] = Field(min_length=1)
    zone: Zone = "UTC"
    max_task_idle_ms: DurationMsOrForever = Field(default=0, alias="max_task_idle")
    """None: for ever."""
    lag_ms: DurationMs = Field(default=0, alias="lag")
    landing: LandingConfig = LandingConfig()


def _listed(columns: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if columns is None else (columns,) if isinstance(columns, str) else columns
