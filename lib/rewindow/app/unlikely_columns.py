"""Notice columns that are hardly what was meant, when a generation is landed for the first time.

Numbers with commas, like ``12,50``, become texts, which no sum takes. Texts keep the blanks that follow a separator. Numbers with
leading zeros, like ``007``, lose them. Times before 1980 are numbers of something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from rewindow.config.feed import FeedConfig
from rewindow.config.feed_spec import feed_spec
from rewindow.contracts.instants import instant
from rewindow.control.ingest.landings import Feed, LogSchema
from rewindow.control.ingest.protocols import LandReport
from rewindow.errors import RewindowError, StorageError
from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.content_hash import read_batches
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import log_path
from rewindow.tables.shared.warehouse import Warehouse

_ENOUGH = 100
"""So many values are looked at."""
_FIRST_TIME_MS = 315_532_800_000
"""1980-01-01: event logs are younger."""
_COMMAS = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+|[+-]?\d{1,3}(,\d{3})+\.\d+")


def naming_unlikely_columns(report: LandReport, tables: Warehouse, config: FeedConfig, project_root: str) -> LandReport:
    """Return the report of a landing with a warning for each such column of a new generation.

    None for tables that a catalog governs: one look at them would cost more than the landing.
    """
    if not report.landings or not isinstance(tables, DeltaTables):
        return report
    feed = tables.feed(report.feed)
    if report.landings[0] != feed.definition.kept + 1:
        return report
    found = (
        *_unlikely_texts(tables, feed),
        *_leading_zeros(tables, feed, config, project_root),
        *_no_times(feed, config),
    )
    return replace(report, warnings=(*report.warnings, *found))


def _unlikely_texts(tables: DeltaTables, feed: Feed) -> Iterator[str]:
    name = feed.definition.feed
    for topic, schema in feed.definition.logs.items():
        columns = [column.name for column in (*schema.key, *schema.value) if column.type == "string"]
        if not columns or topic in feed.definition.source_offsets:
            continue
        for column, values in _first_texts(table_path(tables.warehouse, log_path(name, topic)), columns):
            if all(_COMMAS.fullmatch(one.strip()) for one in values):
                yield (
                    f"feed {name}: {column} of {topic} was landed as text, but its values are numbers with commas, like "
                    f"{values[0]!r}. Declare {column} DECIMAL(12,2) in a `schema:` of the source, with "
                    "`options: {locale: de-DE}` or that of the numbers, and "
                    f"`rewindow land {name} --new-generation`"
                )
            elif all(one[0].isspace() for one in values):
                yield (
                    f"feed {name}: the values of {column} of {topic} begin with a blank, like {values[0]!r}, which is another "
                    f"text than {values[0].strip()!r}. If the blanks follow the separators of a file, remove them, and "
                    f"`rewindow land {name} --new-generation`"
                )


def _first_texts(path: str, names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the first values that each column has, without empty ones and null."""
    try:
        batch = next((one for one in read_batches(path) if one.num_rows), None)
    except StorageError:  # the next command that needs the log says what is wrong with it
        return
    if batch is None:
        return
    for name in names:
        if values := [one for one in islice(batch.column(name).to_pylist(), _ENOUGH) if one]:
            yield name, values


def _leading_zeros(tables: DeltaTables, feed: Feed, config: FeedConfig, project_root: str) -> Iterator[str]:
    from rewindow.engine.worker.landing.leading_zeros import leading_zeros  # noqa: PLC0415 - loads pyarrow
    from rewindow.engine.worker.source_files import look_at_files  # noqa: PLC0415

    name = feed.definition.feed
    for spec in feed_spec(config, project_root=project_root, warehouse=tables.warehouse).logs:
        numbers = _numbers(feed.definition.logs[spec.topic])
        if spec.source.format != "csv" or not numbers:
            continue
        try:
            look = look_at_files(spec.source, None, to_land=False)
        except RewindowError:  # the source has changed since
            continue
        for column, example in leading_zeros(spec, look, numbers):
            yield (
                f"feed {name}: {column} of {spec.topic} was landed as a number, which loses the zeros of values like "
                f"{example!r}. If these are texts, declare {column} STRING in a `schema:` of the source, and "
                f"`rewindow land {name} --new-generation`"
            )


def _no_times(feed: Feed, config: FeedConfig) -> Iterator[str]:
    name = feed.definition.feed
    for topic, log in config.logs.items():
        newest = (one.max_timestamp for tp, one in feed.landings[-1].ranges.items() if tp.topic == topic)
        if 0 <= (last_ms := max(newest, default=-1)) < _FIRST_TIME_MS:
            yield (
                f"feed {name}: no time of {topic} is after {instant(last_ms)}. Is {log.timestamp} the column with the times, in "
                f"milliseconds? If not, correct `timestamp:` or `units:`, and `rewindow land {name} --new-generation`"
            )


def _numbers(schema: LogSchema) -> list[str]:
    return [column.name for column in (*schema.key, *schema.value) if column.type in {"long", "double"}]
