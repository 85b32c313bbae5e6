"""Convert a feed's configuration to the `FeedSpec` that `land` works with, with locations resolved."""

from __future__ import annotations

from rewindow.config.feed import FeedConfig, LogConfig, SourceConfig
from rewindow.contracts.ingest import JOB, OUTPUT_ORDER, OUTPUT_TIME, FeedSpec, LogSpec, SourceSpec
from rewindow.errors import ConfigError

DELTA = "delta"
TABLE_FORMATS = (DELTA, JOB)
"""Formats that the tables inspect. All others are files, which the engine inspects."""


def feed_spec(config: FeedConfig, *, project_root: str, warehouse: str) -> FeedSpec:
    """Return the spec of a feed. Relative paths start at the project's root, tables at the warehouse."""
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
        renames={old: new for new, old in log.columns.items()},
        invalid=log.invalid_timestamp,
        unreadable=log.unreadable,
        zone=config.zone,
        source_offsets=(log.partition, log.offset) if log.partition and log.offset else None,
        units=log.units,
        ignore=log.ignore,
        optional=log.optional,
    )


def _order(log: LogConfig) -> tuple[str, ...]:
    """Return what decides the order of a log's rows in a landing. With an extractor, only an output's own times are known."""
    if log.source.job is None:
        return log.order
    return (*OUTPUT_ORDER, OUTPUT_TIME) if ":" in log.timestamp else OUTPUT_ORDER


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
