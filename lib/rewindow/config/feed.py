"""The configuration of a feed: its logs, their sources, and how they are landed. `land` uses the `FeedSpec` made from it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ByteSize, Field, model_validator

from rewindow.config.field_types import (
    Bytes,
    Column,
    ColumnOrColumns,
    ConfigValue,
    DottedName,
    DurationMs,
    DurationMsOrForever,
    DurationMsOrNone,
    EveryInterval,
    Fields,
    Location,
    MisfitError,
    Name,
    OldColumn,
    RowOrder,
    TextOption,
    TimestampSource,
    Zone,
    known_zone,
)
from rewindow.contracts.ingest import FILE_ORDER, JOB, OUTPUT_ORDER, OUTPUT_TIME, FeedSpec, LogSpec, SourceSpec
from rewindow.contracts.text_options import CSV, TEXT_FORMATS, text_options
from rewindow.errors import ConfigError

_DELTA = "delta"
TABLE_FORMATS = (_DELTA, JOB)
"""The formats of sources that are tables. All other sources are files, which the engine inspects."""
_DAY_MS = 86_400_000


class SourceConfig(ConfigValue):
    """Source of a log: a Delta table in the warehouse, files or a Delta table at a path, or another job's output."""

    table: DottedName | None = None
    """A Delta table in the warehouse, by name. One of ``table``, ``path`` and ``job`` is required."""
    path: Location | None = None
    """Files, a folder of files, or a Delta table: a path below the project, an absolute path, or a URI. Needs ``format``."""
    format: Literal["csv", "json", "parquet", "delta"] | None = None
    """The format of the data at ``path``."""
    options: dict[str, TextOption] = {}
    """How csv or json files are written, such as ``delimiter: ";"`` (docs/guides/text-files.md)."""
    copies: Literal["refuse", "land"] = "refuse"
    """What to do with a file whose content, compressed (`.gz`, `.bz2`, `.zst`) or not, equals that of another file of the
    source."""
    links: Literal["refuse", "follow"] = "refuse"
    """What to do with a symbolic link that leads out of the source's folder. ``path`` itself may be a link."""
    schema_ddl: str | None = Field(default=None, alias="schema")
    """Columns and types of csv or json files, like ``id BIGINT, amount DOUBLE``. Other columns of the files are not landed."""
    job: Name | None = None
    """The job whose output is the source. Needs ``output``."""
    output: DottedName | None = None
    """The output topic of ``job``."""

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
        for key, is_set in (("copies", self.copies == "land"), ("links", self.links == "follow")):
            if is_set and self.format in {None, "delta"}:
                raise MisfitError(f"{key} applies to files only: remove it", key)
        if given != ["path"] and (self.options or self.schema_ddl):
            message = "options and schema apply to files only: remove them, or use path and format"
            raise MisfitError(message, "options" if self.options else "schema")
        if self.format in TEXT_FORMATS:
            try:
                zone = text_options(str(self.format), self.options).zone
                if zone is not None:
                    known_zone(zone)
            except ValueError as error:
                raise MisfitError(str(error), "options") from error
        if self.format in {"delta", "parquet"} and self.schema_ddl:
            raise MisfitError(f"schema applies to csv and json only: remove it, {self.format} has its own", "schema")
        return self


class LogConfig(ConfigValue):
    """How a log is made from its source. Column names apply after the renames in ``columns``."""

    source: SourceConfig
    """Where the rows come from: ``{path, format}``, ``{table}`` or ``{job, output}``."""
    key: ColumnOrColumns
    """The column of the key, or a list of columns. Records with equal keys are in one partition."""
    timestamp: TimestampSource
    """The event time: a column, ``arrival``, or a function ``module:function`` of record and partition time."""
    value: ColumnOrColumns | None = None
    """The column of the value, or a list of columns. Default: every column without another role."""
    columns: dict[Column, OldColumn] = {}
    """Renamed columns: the new name, then the name in the source. A nested field is named by its path: `{zip: address.zip}`.
    If the log also uses a column under its old name, for example as its key, the column is copied."""
    invalid_timestamp: Literal["fail", "skip", "partition_time"] = "fail"
    """What to do with a row without a plausible timestamp: fail, quarantine it, or give it the time of its partition."""
    unreadable: Literal["fail", "skip"] = "fail"
    """What to do with a row that the parser of csv or json cannot read: fail, or quarantine it."""
    arrived_at: Column | None = None
    """The column of the time of arrival. Default: for a table, the time of the commit that added the row; for files, none."""
    order: RowOrder = ()
    """How to sort rows that arrived at the same time. A list of columns: by these columns, then by timestamp. ``file``: by
    the names of their files, then by their position in the file. Default: by timestamp."""
    ignore: Fields = ()
    """Fields that files may have, but that are not landed. ``ignore`` and ``optional`` use the names of the source."""
    optional: Fields = ()
    """Landed fields that a file may lack. Rows of such a file have null."""
    units: dict[TimestampSource, Literal["s", "ms", "us", "ns"]] = {}
    """The unit of BIGINT times (s, ms, us, ns), by the column of ``timestamp`` or ``arrived_at``. Default: ms, with a check
    that the times are plausible. If ``timestamp`` is a function, ``ms`` disables the check."""
    partition: Column | None = None
    """The source's column of Kafka partitions. Needs ``offset``. If the source is a table, the table is not copied. Records
    of files get these partitions and are in the order of the offsets."""
    offset: Column | None = None
    """The source's column of Kafka offsets. Needs ``partition``."""

    @model_validator(mode="after")
    def _keeps_source_offsets(self) -> Self:
        if (self.partition is None) != (self.offset is None):
            raise ValueError(
                "partition and offset go together: set both to the columns of Kafka's partition and offset"
            )
        if self.partition is None:
            return self
        if self.source.table is None and self.source.format in {None, "delta"}:
            raise ValueError(
                "partition and offset need files, or a table of the warehouse: source: {table: raw.events}"
            )
        if self.arrived_at or self.order or (self.source.table and self.invalid_timestamp != "fail"):
            raise ValueError(
                "a log with source offsets can neither reorder nor skip records: remove arrived_at, order and "
                "invalid_timestamp"
            )
        if self.source.table is None:
            return self
        if ":" in self.timestamp or self.timestamp == "arrival":
            raise MisfitError("a log with source offsets needs a column of the source as timestamp", "timestamp")
        return self

    @model_validator(mode="after")
    def _file_order_needs_files(self) -> Self:
        if self.order == FILE_ORDER and self.source.format in {None, "delta"}:
            message = "`file` is an order of files, which a table is not: name the columns of its order, like [version]"
            raise MisfitError(message, "order")
        return self

    @model_validator(mode="after")
    def _names_need_a_header(self) -> Self:
        is_headerless = self.source.format == CSV and not text_options(CSV, self.source.options).header
        if is_headerless and (self.ignore or self.optional):
            message = "ignore and optional name columns, which csv files without a header do not have: remove them"
            raise MisfitError(message, "ignore" if self.ignore else "optional")
        return self

    @model_validator(mode="after")
    def _times_are_needed(self) -> Self:
        times = [] if self.invalid_timestamp == "partition_time" else [("timestamp", self.timestamp)]
        for key, name in (*times, ("arrived_at", self.arrived_at)):
            source = self.columns.get(name, name).lower() if name else ""
            for field in self.optional:
                if source == field.lower() or source.startswith(f"{field.lower()}."):
                    message = (
                        f"{field} has the log's `{key}`, without which no row can be landed: remove it from `optional`"
                    )
                    raise MisfitError(message, "optional")
        return self

    @model_validator(mode="after")
    def _units_of_times(self) -> Self:
        times = [name for name in (self.timestamp, self.arrived_at) if name not in (None, "arrival")]
        for name, unit in self.units.items():
            if name not in times:
                raise MisfitError(
                    f"units names {name}, which is neither timestamp nor arrived_at: name one of {', '.join(times)}",
                    *("units", name),
                )
            if unit != "ms" and (":" in name or self.partition):
                fix = "return milliseconds from the function" if ":" in name else "write milliseconds to the table"
                message = f"units cannot convert {name}: {fix}. `{name}: ms` takes its numbers as they are"
                raise MisfitError(message, "units", name)
        return self

    @model_validator(mode="after")
    def _each_column_once(self) -> Self:
        both = [column for column in _listed(self.key) if column in _listed(self.value)]
        if both:
            other = f"or list a copy with another name there, `columns: {{NEW_NAME: {both[0]}}}`"
            raise MisfitError(f"{both[0]} is in both key and value: remove it from value, {other}", "value")
        old = list(self.columns.values())
        if len(set(old)) < len(old):
            raise MisfitError("columns renames a column twice: give each source column one name", "columns")
        return self


class LandingConfig(ConfigValue):
    """How the new rows of a feed are cut into landings, how watermarks are set, and which timestamps are implausible."""

    every: EveryInterval | None = None
    """The interval of arrival that makes one landing, like ``1h`` or ``1d``. Default: one landing per call."""
    watermark: Literal["interval_end"] | None = None
    """``interval_end``: each landing declares the log complete through the end of its interval."""
    max_ahead_ms: DurationMsOrNone = Field(default=_DAY_MS, alias="max_ahead", json_schema_extra={"default": "1d"})
    """A record is quarantined if its timestamp is later than its arrival by more than this. In files without ``arrived_at``,
    the time of the landing counts as the arrival. ``none``: no limit."""
    memory: Bytes = Field(default=ByteSize(512 << 20), ge=1 << 20, json_schema_extra={"default": "512MiB"})
    """The memory that each task of a landing may use, in bytes or like ``512MiB``. Rows that do not fit are sorted on disk."""

    @model_validator(mode="after")
    def _an_end_needs_intervals(self) -> Self:
        if self.watermark is not None and self.every is None:
            message = "watermark: interval_end needs intervals: add every: 1h or another interval"
            raise MisfitError(message, "watermark")
        return self


class FeedConfig(ConfigValue):
    """Logs that are landed together: co-partitioned, with one sequence of landings."""

    feed: Name
    """The name of the feed, equal to the file's name. Never change it."""
    partitions: int = Field(ge=1, le=4096)
    """Number of partitions of every log. It is part of the input: never change it."""
    logs: dict[DottedName, LogConfig] = Field(min_length=1)
    """The logs by topic."""
    zone: Zone = "UTC"
    """The time zone of calendar units and of times without a zone, an IANA name such as Europe/Berlin."""
    max_task_idle_ms: DurationMsOrForever = Field(default=0, alias="max_task_idle")
    """How the watermark is computed. ``0``: it is the largest timestamp. ``forever``: it is the smallest of the partitions'
    largest timestamps; partitions without records do not count. A duration: the same, but partitions that have been idle for
    that long do not count either."""
    lag_ms: DurationMs = Field(default=0, alias="lag")
    """Holds the watermark back by this duration."""
    landing: LandingConfig = LandingConfig()
    """How new rows are cut into landings."""

    @property
    def producer(self) -> str | None:
        """The job whose outputs the feed reads; None if it reads no outputs."""
        return next((log.source.job for log in self.logs.values()), None)

    @model_validator(mode="after")
    def _one_producer(self) -> Self:
        jobs = {log.source.job for log in self.logs.values()}
        if jobs == {None}:
            return self
        if len(jobs) > 1:
            raise MisfitError(
                "the logs of a feed must all be outputs of one job, or none. To join an output with something else, add the join "
                "to the job that makes the output",
                "logs",
            )
        fix = "a job's outputs are landed epoch by epoch, in the order in which they were written: remove"
        if self.landing.every:
            raise MisfitError(f"{fix} `every`", "landing", "every")
        for word, duration_ms in (("max_task_idle", self.max_task_idle_ms), ("lag", self.lag_ms)):
            if duration_ms != 0:
                raise MisfitError(f"the watermarks are those of the job's epochs: remove `{word}`", word)
        for topic, log in self.logs.items():
            for key, value in (("arrived_at", log.arrived_at), ("order", log.order)):
                if value:
                    raise MisfitError(f"{fix} `{key}`", "logs", topic, key)
        return self

    @model_validator(mode="after")
    def _source_offsets_of_all_or_none(self) -> Self:
        kept = [topic for topic, log in self.logs.items() if log.partition]
        others = [topic for topic in self.logs if topic not in kept]
        if kept and others:
            raise MisfitError(
                f"log {kept[0]} keeps the partitions of its source, but log {others[0]} is partitioned by key hash, so "
                "equal keys do not meet: split it into two feeds, or remove partition and offset",
                *("logs", kept[0], "partition"),
            )
        if kept and self.landing.every:
            raise MisfitError(
                f"`every` cuts by arrival time, but log {kept[0]} keeps its source's offsets: remove `every` (one "
                "landing per call)",
                *("landing", "every"),
            )
        return self

    @model_validator(mode="after")
    def _files_have_no_arrival_times(self) -> Self:
        for topic, log in self.logs.items():
            if log.source.format in {None, "delta"} or log.arrived_at is not None:
                continue
            if self.landing.every:
                raise MisfitError(
                    f"`every: {self.landing.every}` needs each row's arrival time, which files do not have: add "
                    f"`arrived_at: COLUMN` to log {topic}, or remove `every` (one landing per call)",
                    *("landing", "every"),
                )
            if log.timestamp == "arrival":
                raise MisfitError(
                    "`timestamp: arrival` needs `arrived_at: COLUMN`, because files have no arrival times. If no column has a "
                    "time, name a function that gives the records their times: `timestamp: MODULE:FUNCTION`",
                    *("logs", topic, "timestamp"),
                )
        return self


def feed_spec(config: FeedConfig, *, project_root: str, warehouse: str) -> FeedSpec:
    """Return the spec of a feed. Paths are relative to the project's root, and tables are in the warehouse."""
    every = config.landing.every
    return FeedSpec(
        feed=config.feed,
        partitions=config.partitions,
        logs=tuple(_log(topic, log, config, project_root, warehouse) for topic, log in config.logs.items()),
        every=(every.count, every.unit) if every else None,
        zone=config.zone,
        max_task_idle_ms=config.max_task_idle_ms,
        lag_ms=config.lag_ms,
        interval_end=config.landing.watermark is not None,
        max_ahead_ms=config.landing.max_ahead_ms,
        memory_bytes=int(config.landing.memory),
    )


def _listed(columns: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if columns is None else (columns,) if isinstance(columns, str) else columns


def _log(topic: str, log: LogConfig, config: FeedConfig, project_root: str, warehouse: str) -> LogSpec:
    return LogSpec(
        topic=topic,
        source=_source(log.source, project_root, warehouse),
        key=_listed(log.key),
        scalar_key=isinstance(log.key, str),
        value=None if log.value is None else _listed(log.value),
        scalar_value=isinstance(log.value, str),
        timestamp=log.timestamp,
        arrived_at=log.arrived_at if log.source.job is None else "_epoch",
        order=_order(log),
        in_file_order=log.order == FILE_ORDER,
        renames={old: new for new, old in log.columns.items()},
        invalid=log.invalid_timestamp,
        unreadable=log.unreadable,
        zone=config.zone,
        source_offsets=_positions(log) if log.source.table else None,
        topic_positions=_positions(log) if not log.source.table else None,
        units=log.units,
        ignore=log.ignore,
        optional=log.optional,
    )


def _positions(log: LogConfig) -> tuple[str, str] | None:
    return (log.partition, log.offset) if log.partition and log.offset else None


def _order(log: LogConfig) -> tuple[str, ...]:
    """Return the columns by which the rows of a landing are sorted.

    If a function computes the timestamps, they are not known when rows are sorted. For another job's output, the columns then
    include the output's own timestamps.
    """
    if log.source.job is None:
        columns = () if isinstance(log.order, str) else log.order
        return (log.offset,) if log.offset and not log.source.table else columns
    return (*OUTPUT_ORDER, OUTPUT_TIME) if ":" in log.timestamp else OUTPUT_ORDER


def _source(source: SourceConfig, project_root: str, warehouse: str) -> SourceSpec:
    if source.table is not None:
        return SourceSpec(_DELTA, f"{warehouse}/{source.table.replace('.', '/')}", source.table, {})
    if source.job is not None:
        return SourceSpec(JOB, warehouse, f"{source.job}:{source.output}", {})
    # This never happens, because `SourceConfig` has checked it. It tells the type checker that neither value is None.
    if source.path is None or source.format is None:
        raise ConfigError(
            "source-without-location", "a source needs a table, a path with a format, or a job with an output"
        )
    location = source.path if "://" in source.path or source.path.startswith("/") else f"{project_root}/{source.path}"
    copies, links = source.copies == "land", source.links == "follow"
    return SourceSpec(source.format, location, source.path, source.options, source.schema_ddl, copies, links)
