"""The configuration of a project: feeds, jobs and targets, from YAML to frozen values.

``conf/feeds/<feed>.yaml`` is part of the input and ``semantics`` of a job is part of its meaning: both are
fingerprinted. The rest says where and when things run and changes no row.
"""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rewindow.config_file import read_model
from rewindow.config_limits import LimitsConfig
from rewindow.config_target import TargetConfig
from rewindow.config_words import (
    Column,
    ColumnOrColumns,
    Columns,
    Cron,
    DottedName,
    DurationMs,
    DurationMsOrForever,
    DurationMsOrNone,
    EveryWord,
    Function,
    Name,
    OldColumn,
    OutputTable,
    Place,
    Policy,
    SparkSettings,
    SparkText,
    TimestampWord,
    Zone,
)
from rewindow.errors import ConfigError

_DAY_MS = 86_400_000


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)


_Config = TypeVar("_Config", bound=BaseModel)


class SourceConfig(_Value):
    """Where a log comes from: a Delta table in the warehouse, files or a table at a path, or another job's output."""

    table: DottedName | None = None
    path: Place | None = None
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


class LogConfig(_Value):
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
    def _placed_as_it_is(self) -> Self:
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


class LandingConfig(_Value):
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


class FeedConfig(_Value):
    """Logs that are landed together: co-partitioned, one sequence of landings."""

    feed: Name
    partitions: int = Field(ge=1, le=4096)
    logs: dict[DottedName, LogConfig] = Field(min_length=1)
    zone: Zone = "UTC"
    max_task_idle_ms: DurationMsOrForever = Field(default=0, alias="max_task_idle")
    """None: for ever."""
    lag_ms: DurationMs = Field(default=0, alias="lag")
    landing: LandingConfig = LandingConfig()


class OutputConfig(_Value):
    """The table of an output topic."""

    table: OutputTable


class SemanticsConfig(_Value):
    """What time means to a job (D1, D8, D22). Part of the job's fingerprint."""

    stream_time: Literal["max", "min"] = "max"
    stream_time_from: Literal["records", "watermark"] = "records"
    wall_clock: Literal["stream_time", "run"] = "stream_time"


class JobConfig(_Value):
    """A topology, the feed it replays and the tables it writes. The name names the lineages: it never changes."""

    job: Name
    topology: Function
    feed: Name
    outputs: dict[DottedName, OutputConfig] = {}
    semantics: SemanticsConfig = SemanticsConfig()
    dropped: Literal["count", "quarantine"] = "count"
    """What becomes of late, skipped and expired records: counted by reason, or rows of the quarantine too."""
    on_error: dict[str, Policy] = {}
    """By node what becomes of a record at which its code fails: ``fail``, ``retry 3``, ``quarantine``."""
    limits: LimitsConfig = LimitsConfig()
    schedule: Cron | None = None
    spark: SparkSettings = {}

    @field_validator("outputs")
    @classmethod
    def _tables_apart(cls, outputs: dict[str, OutputConfig]) -> dict[str, OutputConfig]:
        problem = _nested([output.table for output in outputs.values()])
        if problem:
            raise ValueError(problem)
        return outputs


def find_project(start: Path | None = None) -> Path:
    """Return the folder that holds ``conf/``: ``start`` (default: the working directory) or the nearest above it.

    Raises `ConfigError` if there is none.
    """
    begin = (Path.cwd() if start is None else start).resolve()
    for folder in (begin, *begin.parents):
        if (folder / "conf").is_dir():
            return folder
    raise ConfigError(f"no folder conf/ in {begin} or above it: go to the project's root (it holds conf/ and jobs/)")


def load_feed(root: Path, name: str) -> FeedConfig:
    """Return ``conf/feeds/<name>.yaml``. Raises `ConfigError` (78) that names file, key and fix."""
    return _load(root, "feeds", "feed", name, FeedConfig)


def load_job(root: Path, name: str) -> JobConfig:
    """Return ``conf/jobs/<name>.yaml``. Raises `ConfigError` (78) that names file, key and fix."""
    return _load(root, "jobs", "job", name, JobConfig)


def load_target(root: Path, name: str = "local") -> TargetConfig:
    """Return ``conf/targets/<name>.yaml``. Raises `ConfigError` (78) that names file, key and fix."""
    return _load(root, "targets", "target", name, TargetConfig)


def load_jobs(root: Path) -> dict[str, JobConfig]:
    """Return all jobs by name. Raises `ConfigError` too if two of them write one table, or one inside another's."""
    jobs = {name: load_job(root, name) for name in names_of(root, "jobs")}
    problem = _nested([output.table for job in jobs.values() for output in job.outputs.values()])
    if problem:
        raise ConfigError(f"conf/jobs: {problem}")
    return jobs


def names_of(root: Path, kind: Literal["feeds", "jobs", "targets"]) -> list[str]:
    """Return the names of all feeds, jobs or targets, sorted."""
    return sorted(path.stem for path in (root / "conf" / kind).glob("*.yaml"))


def place_of(root: Path, place: str) -> str:
    """Return a place from the configuration as an absolute path or URI; what is relative starts at the root."""
    return place if "://" in place else str(root / place)


def feed_fingerprint(feed: FeedConfig) -> str:
    """Return the digest of what a generation of a feed is landed under.

    All but what holds for later landings only: lag, max_ahead, max_task_idle, watermark.
    """
    every = feed.landing.every
    return _digest(feed, {"lag_ms", "max_task_idle_ms", "landing"}, every=str(every) if every else None)


def semantics_fingerprint(job: JobConfig) -> str:
    """Return the digest of a job's ``semantics``. A default that is written out counts as one that is not."""
    return _digest(job.semantics)


def _digest(value: _Value, without: set[str] | None = None, **more: str | None) -> str:
    """Digest a value's canonical JSON. Defaults are left out, so that a later version's new key changes no digest."""
    data: dict[str, Any] = value.model_dump(by_alias=True, exclude_defaults=True, exclude=without, warnings=False)
    data.update((key, word) for key, word in more.items() if word is not None)
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _load(
    root: Path, folder: Literal["feeds", "jobs", "targets"], kind: str, name: str, model: type[_Config]
) -> _Config:
    known = names_of(root, folder)
    if name not in known:  # so a name can reach no other file
        there = f"there are {', '.join(known)}" if known else "there is none yet"
        raise ConfigError(f"no conf/{folder}/{name}.yaml in {root}: {there}")
    shown = f"conf/{folder}/{name}.yaml"
    loaded = read_model(root / "conf" / folder / f"{name}.yaml", shown, model)
    stated = getattr(loaded, kind)
    if stated != name:
        raise ConfigError(f"{shown}: {kind} is {stated!r}: a file is called as its {kind}, rename one of them")
    return loaded


def _listed(columns: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if columns is None else (columns,) if isinstance(columns, str) else columns


def _nested(tables: list[str]) -> str | None:
    """Say which table is written twice or lies inside another: a path table owns its folder."""
    ordered = sorted(tables, key=lambda table: table.split("."))
    for table, following in pairwise(ordered):
        if table == following:
            return f"the table {table} is written twice: one table, one output of one job"
        if following.startswith(f"{table}."):
            return f"the table {following} would lie inside the folder of {table}: rename one of them"
    return None
