"""Convert a feed's configuration to the `FeedSpec` that `land` works with, with locations resolved."""

from __future__ import annotations

from rewindow.config.feed import FeedConfig, LogConfig, SourceConfig
from rewindow.contracts.ingest import ARRIVAL, JOB, FeedSpec, LogSpec, SourceSpec
from rewindow.errors import ConfigError

DELTA = "delta"
TABLE_FORMATS = (DELTA, JOB)
"""Formats that the tables inspect. All others are files, which the engine inspects."""


def feed_spec(config: FeedConfig, *, project_root: str, warehouse: str) -> FeedSpec:
    """Return the spec of a feed. Relative paths start at the project's root, tables at the warehouse.

    Raises `ConfigError` (78) for settings that do not fit the sources, such as intervals without arrival times.
    """
    every = config.landing.every
    _check_outputs(config)
    _check_source_offsets(config)
    for topic, log in config.logs.items():
        is_files = log.source.format not in (None, DELTA)
        if every and is_files and log.arrived_at is None:
            message = (
                f"feed {config.feed}, log {topic}: `every: {every}` needs each row's arrival time, which files do not "
                "have: add `arrived_at: COLUMN`, or remove `every` (one landing per call)"
            )
            raise ConfigError(message)
        if is_files and log.arrived_at is None and log.timestamp == ARRIVAL:
            message = (
                f"feed {config.feed}, log {topic}: `timestamp: arrival` needs `arrived_at: COLUMN`, because files have "
                "no arrival times"
            )
            raise ConfigError(message)
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


def _check_outputs(config: FeedConfig) -> None:
    jobs = {log.source.job for log in config.logs.values()}
    if jobs == {None}:
        return
    if len(jobs) > 1:
        message = (
            f"feed {config.feed}: the logs of a feed must all be outputs of one job, or none: split it into two feeds"
        )
        raise ConfigError(message)
    if config.landing.every or any(log.arrived_at or log.order for log in config.logs.values()):
        message = (
            f"feed {config.feed}: a job's outputs are landed epoch by epoch, in the order in which they were written: "
            "remove `every`, `arrived_at` and `order`"
        )
        raise ConfigError(message)


def _check_source_offsets(config: FeedConfig) -> None:
    """Refuse settings that are incompatible with source offsets."""
    source_offsets = [topic for topic, log in config.logs.items() if log.partition]
    others = [topic for topic in config.logs if topic not in source_offsets]
    if source_offsets and others:
        message = (
            f"feed {config.feed}: log {source_offsets[0]} keeps the partitions of its source, but log {others[0]} is "
            "partitioned by key hash, so equal keys do not meet: split it into two feeds, or remove partition and offset"
        )
        raise ConfigError(message)
    if source_offsets and config.landing.every:
        message = (
            f"feed {config.feed}: `every` cuts by arrival time, but log {source_offsets[0]} keeps its source's offsets: "
            "remove `every` (one landing per call)"
        )
        raise ConfigError(message)


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
        order=log.order if log.source.job is None else ("_partition", "_offset"),
        renames={old: new for new, old in log.columns.items()},
        invalid=log.invalid_timestamp,
        unreadable=log.unreadable,
        zone=config.zone,
        source_offsets=(log.partition, log.offset) if log.partition and log.offset else None,
        units=log.units,
        ignore=log.ignore,
        optional=log.optional,
    )


def _source(source: SourceConfig, project_root: str, warehouse: str) -> SourceSpec:
    if source.table is not None:
        return SourceSpec(DELTA, f"{warehouse}/{source.table.replace('.', '/')}", source.table, {})
    if source.job is not None:
        return SourceSpec(JOB, warehouse, f"{source.job}:{source.output}", {})
    if source.path is None or source.format is None:  # `SourceConfig` rules this out
        message = "a source needs a table, a path with a format, or a job with an output"
        raise ConfigError(message)
    location = source.path if "://" in source.path or source.path.startswith("/") else f"{project_root}/{source.path}"
    copies = source.copies == "land"
    return SourceSpec(source.format, location, source.path, source.options, source.schema_ddl, copies)


def _listed(columns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else columns
