"""A feed that was never landed: when it can be, and what its logs will be, so that a job's code can be checked before."""

from __future__ import annotations

import time
from collections.abc import Callable

import pendulum

from rewindow.config.feed import TABLE_FORMATS, FeedConfig, feed_spec
from rewindow.contracts.ingest import LogColumns, LogSpec, ReadWindow, SourceLook
from rewindow.control.ingest.generations import log_schemas
from rewindow.control.ingest.intervals import grid_of
from rewindow.control.ingest.landings import Feed, FeedDefinition
from rewindow.control.plan.sequence import History
from rewindow.errors import ConfigError, RewindowError
from rewindow.streams.serde.schema import Column

TableLook = Callable[[LogSpec, None, ReadWindow], SourceLook]


def lands_next(config: FeedConfig, *, project_root: str, warehouse: str) -> str:
    """Return a sentence to add to a message: what `land` would land now, as far as intervals of arrival decide.

    It is empty without intervals, because then anything can be landed. If a source cannot be inspected, that is the sentence.
    """
    from rewindow.engine.worker.source_files import look_at_files  # noqa: PLC0415 - loads pyarrow

    feed = feed_spec(config, project_root=project_root, warehouse=warehouse)
    if feed.every is None:
        return ""
    files = [spec for spec in feed.logs if spec.source.format not in TABLE_FORMATS]
    try:
        for spec in files:
            look_at_files(spec.source, None, to_land=False)
    except RewindowError as error:
        return f". That would fail now: {error}"
    until_ms = grid_of(feed).start_of(round(time.time() * 1000))
    until = pendulum.from_timestamp(until_ms / 1000, tz=feed.zone).format("YYYY-MM-DD HH:mm")
    every = f"`every: {config.landing.every}`"
    return f". It lands complete intervals only ({every}): all that arrived before {until} {feed.zone}"


def expected_feed(config: FeedConfig, look: TableLook, *, project_root: str, warehouse: str) -> Feed:
    """Return a feed without landings, whose logs have the columns that their sources have now.

    ``look`` inspects a source that is a table. A column whose type only the landing decides is JSON, which fits
    everything, and so is every column of a source that cannot be inspected. Raises `ConfigError` (78) for a configured
    column that a source does not have.
    """
    feed = feed_spec(config, project_root=project_root, warehouse=warehouse)
    schemas = log_schemas({spec.topic: _expected(spec, look) for spec in feed.logs})
    return Feed(FeedDefinition(feed.feed, 0, feed.partitions, schemas, ""), History())


def _expected(spec: LogSpec, look: TableLook) -> LogColumns:
    from rewindow.engine.worker.landing.log_columns import log_columns  # noqa: PLC0415
    from rewindow.engine.worker.landing.source import expected_schema  # noqa: PLC0415 - loads pyarrow
    from rewindow.engine.worker.source_files import look_at_files  # noqa: PLC0415

    try:
        is_table = spec.source.format in TABLE_FORMATS
        seen = look(spec, None, ReadWindow()) if is_table else look_at_files(spec.source, None, to_land=False)
        schema = expected_schema(spec, seen)
    except ConfigError:
        raise
    except RewindowError:  # `land` reports what is wrong with the source
        schema = None
    if schema is not None:
        return log_columns(spec, schema)
    key = tuple(Column(name, "json") for name in spec.key)
    if spec.value is None:
        return LogColumns(key, (Column("value", "json"),), spec.scalar_key, scalar_value=True)
    return LogColumns(key, tuple(Column(name, "json") for name in spec.value), spec.scalar_key, spec.scalar_value)
