"""Parts of a landing that need the project: code versions, the landings to keep after a refusal, and the expected columns."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.config.feed import TABLE_FORMATS, FeedConfig, feed_spec
from rewindow.contracts.ingest import LogColumns, LogSpec, ReadWindow, SourceLook
from rewindow.control.ingest.feed_definition import FeedDefinition
from rewindow.control.ingest.feed_progress import landing_bodies
from rewindow.control.ingest.generations import log_schemas
from rewindow.control.ingest.intervals import grid_of
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.sequence import History
from rewindow.errors import ConfigError, LandedFileError, LandedRunError, RewindowError
from rewindow.streams.serde.schema import Column

if TYPE_CHECKING:
    from rewindow.tables.shared.warehouse import Warehouse


def extractor_versions(config: FeedConfig, root: Path) -> dict[str, str]:
    """Return the code version of each function of ``timestamp``, by the function's name ``module:function``.

    The version covers all code that the function calls. Raises `ConfigError` (78) for a function that cannot be imported.
    """
    names = sorted({log.timestamp for log in config.logs.values() if ":" in log.timestamp})
    if not names:
        return {}
    from rewindow.control.code_version import function_version  # noqa: PLC0415 - few feeds have code
    from rewindow.engine.worker.log_writer import load_extractor  # noqa: PLC0415

    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return {name: function_version(load_extractor(name), root) for name in names}


@contextmanager
def naming_kept(tables: Warehouse, feed: FeedConfig) -> Iterator[None]:
    """If the block refuses a landing, add to the error how many landings `--keep` may keep.

    This is done for two reasons of refusal: a landed file is gone or has changed, or the feed has rows of another job's removed
    runs.
    """
    try:
        yield
    except (LandedFileError, LandedRunError) as error:
        if keep := _kept(tables, feed.feed, error):
            error.surrounded(after=f" With `--keep {keep}`, landings up to {keep} stay as they are")
        raise


def _kept(tables: Warehouse, feed: str, error: LandedFileError | LandedRunError) -> int:
    if isinstance(error, LandedFileError):
        return _landings_before(tables, feed, str(error.facts["file"]))
    from rewindow.tables.shared.landed_outputs import standing_landings  # noqa: PLC0415 - few feeds read a job

    return standing_landings(tables, feed, str(error.facts["job"]))[0]


def _landings_before(tables: Warehouse, feed: str, file: str) -> int:
    """Return how many of a feed's first landings have no row of a file."""
    has_file = (
        at
        for at, body in enumerate(landing_bodies(tables.feed_rows(feed)))
        if any(file in position.get("files", ()) for position in body["positions"].values())
    )
    return next(has_file, 0)


TableLook = Callable[[LogSpec, None, ReadWindow], SourceLook]


def lands_next(config: FeedConfig, *, project_root: str, warehouse: str) -> str:
    """Return a sentence that says which intervals of arrival `land` would land now, to add to a message.

    It is empty for a feed without intervals, because `land` can then land everything. If a source cannot be inspected, the
    sentence says why.
    """
    import pendulum  # noqa: PLC0415 - a landing does not need it

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
    """Return what a feed that was never landed would be, given the columns that its sources have now.

    ``look`` inspects a source that is a table. A column has the type json, which fits everything, if only the landing can decide
    its type. If a source cannot be inspected, all of its columns have this type. Raises `ConfigError` (78) for a configured
    column that a source lacks.
    """
    feed = feed_spec(config, project_root=project_root, warehouse=warehouse)
    schemas = log_schemas({spec.topic: _expected(spec, look) for spec in feed.logs})
    return Feed(FeedDefinition(feed.feed, 0, feed.partitions, schemas, ""), History())


def _expected(spec: LogSpec, look: TableLook) -> LogColumns:
    from rewindow.engine.worker.landing.arrow_source import expected_schema  # noqa: PLC0415 - loads pyarrow
    from rewindow.engine.worker.landing.log_columns import log_columns  # noqa: PLC0415
    from rewindow.engine.worker.source_files import look_at_files  # noqa: PLC0415

    try:
        is_table = spec.source.format in TABLE_FORMATS
        seen = look(spec, None, ReadWindow()) if is_table else look_at_files(spec.source, None, to_land=False)
        schema = expected_schema(spec, seen)
    except ConfigError:
        raise
    except RewindowError:  # `land` reports the error of the source
        schema = None
    if schema is not None:
        return log_columns(spec, schema)
    key = tuple(Column(name, "json") for name in spec.key)
    if spec.value is None:
        return LogColumns(key, (Column("value", "json"),), spec.scalar_key, scalar_value=True)
    return LogColumns(key, tuple(Column(name, "json") for name in spec.value), spec.scalar_key, spec.scalar_value)
