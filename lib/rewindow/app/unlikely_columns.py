"""Warn of columns that look like a mistake, when a generation is landed for the first time.

Numbers with commas, like ``12,50``, become texts, which no sum takes, and so do numbers among texts like ``n/a``, or codes such
as ``007`` and ``1E5``. Texts keep the blanks around them, also as keys. Times before 1980 are of something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

from rewindow.config.feed import FeedConfig, feed_spec
from rewindow.contracts.instants import instant
from rewindow.contracts.reserved_names import other_name
from rewindow.contracts.text_options import CSV, text_options
from rewindow.errors import StorageError, WarningMessage

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindow.contracts.ingest import LogSpec
    from rewindow.control.ingest.landings import Feed, LogSchema
    from rewindow.control.ingest.protocols import LandReport
    from rewindow.tables.shared.warehouse import Warehouse

_ENOUGH = 1_000
"""So many rows are looked at."""
_FIRST_TIME_MS = 315_532_800_000
"""1980-01-01: event logs are younger."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_CODE = re.compile(r"-?0\d|-?\d+[eE]\d")
"""What a column of numbers would change: zeros at the beginning, and exponents of whole numbers."""
_MOST = 0.8
"""The share of numbers from which on the others seem to be mistakes."""
_COMMAS = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+|[+-]?\d{1,3}(,\d{3})+\.\d+")


def naming_unlikely_columns(report: LandReport, tables: Warehouse, config: FeedConfig, project_root: str) -> LandReport:
    """Return the report of a landing with a warning for each such column of a new generation.

    None where a look at the log would cost more than the landing, as in a catalog.
    """
    if not report.landings:
        return report
    feed = tables.feed(report.feed)
    if report.landings[0] != feed.definition.kept + 1:
        return report
    specs = feed_spec(config, project_root=project_root, warehouse=tables.warehouse).logs
    found = (
        *_unlikely_texts(tables, feed, {spec.topic for spec in specs if _is_inferred(spec)}),
        *_no_times(feed, config),
    )
    return replace(report, warnings=(*report.warnings, *found))


def _unlikely_texts(tables: Warehouse, feed: Feed, inferred: AbstractSet[str]) -> Iterator[WarningMessage]:
    name = feed.definition.feed
    for topic, schema in feed.definition.logs.items():
        columns, keys = _texts(schema), [column.name for column in schema.key]
        if not columns or topic in feed.definition.source_offsets:
            continue
        for column, values in _first_texts(tables.first_batches(name, topic), columns):
            if all(_COMMAS.fullmatch(one.strip()) for one in values):
                yield WarningMessage(
                    "numbers-with-commas",
                    "feed {feed}: {column} of {topic} was landed as text, but its values are numbers with commas, like {value!r}."
                    ' Declare {column} DECIMAL(12,2) in a `schema:` of the source, with `options: {{decimal: ",", thousands: '
                    '"."}}` or as the numbers are, {other}, and `rewindow land {feed} --new-generation`',
                    feed=name,
                    column=column,
                    topic=topic,
                    value=values[0],
                    other=other_name(column),
                )
            elif (
                topic in inferred and all(map(_NUMBER.fullmatch, values)) and (codes := [*filter(_CODE.match, values)])
            ):
                yield WarningMessage(
                    "numbers-like-codes",
                    "feed {feed}: {column} of {topic} was landed as text, because values like {value!r} may be codes. If they "
                    "are numbers, declare {column} DOUBLE in a `schema:` of the source, {other}, and `rewindow land {feed} "
                    "--new-generation`",
                    feed=name,
                    column=column,
                    topic=topic,
                    value=codes[0],
                    other=other_name(column),
                )
            elif column not in keys and topic in inferred and _are_mostly_numbers(values):
                text = next((f", like {one!r}" for one in values if not _NUMBER.fullmatch(one.strip())), "")
                yield WarningMessage(
                    "numbers-among-texts",
                    "feed {feed}: {column} of {topic} was landed as text, because not all of its values are numbers{text}. If it "
                    "is a number, declare {column} DOUBLE in a `schema:` of the source, with `unreadable: skip` for such lines, "
                    "{other}, and `rewindow land {feed} --new-generation`",
                    feed=name,
                    column=column,
                    topic=topic,
                    text=text,
                    other=other_name(column),
                )
            elif all(one[0].isspace() for one in values):
                yield WarningMessage(
                    "values-begin-with-blank",
                    "feed {feed}: the values of {column} of {topic} begin with a blank, like {value!r}, which is another text "
                    "than {other!r}. If the blanks follow the separators of a file, remove them, and `rewindow land {feed} "
                    "--new-generation`",
                    feed=name,
                    column=column,
                    topic=topic,
                    value=values[0],
                    other=values[0].strip(),
                )
            elif column in keys and (padded := [one for one in values if one != one.strip()]):
                yield WarningMessage(
                    "keys-with-blanks",
                    "feed {feed}: keys in {column} of {topic} have blanks around them, like {value!r}, which is another key than "
                    "{other!r}. If they are the same, remove the blanks, and `rewindow land {feed} --new-generation`",
                    feed=name,
                    column=column,
                    topic=topic,
                    value=padded[0],
                    other=padded[0].strip(),
                )


def _are_mostly_numbers(values: list[str]) -> bool:
    numbers = sum(_NUMBER.fullmatch(one.strip()) is not None for one in values)
    return numbers >= _MOST * len(values)


def _is_inferred(spec: LogSpec) -> bool:
    return spec.source.format == CSV and spec.source.schema is None and text_options(CSV, spec.source.options).infer


def _first_texts(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the first values that each column has, without empty ones and null."""
    values: dict[str, list[str]] = {name: [] for name in names}
    rows = 0
    try:
        for batch in batches:
            for name in names:
                values[name] += [one for one in batch.column(name).slice(0, _ENOUGH - rows).to_pylist() if one]
            if (rows := rows + batch.num_rows) >= _ENOUGH:
                break
    except StorageError:  # the next command that needs the log says what is wrong with it
        return
    yield from ((name, found) for name, found in values.items() if found)


def _no_times(feed: Feed, config: FeedConfig) -> Iterator[WarningMessage]:
    name = feed.definition.feed
    for topic, log in config.logs.items():
        newest = (one.max_timestamp for tp, one in feed.landings[-1].ranges.items() if tp.topic == topic)
        if 0 <= (last_ms := max(newest, default=-1)) < _FIRST_TIME_MS:
            yield WarningMessage(
                "times-before-1980",
                "feed {feed}: no time of {topic} is after {time}. Is {column} the column with the times, in milliseconds? If "
                "not, correct `timestamp:` or `units:`, and `rewindow land {feed} --new-generation`",
                feed=name,
                topic=topic,
                time=instant(last_ms),
                column=log.timestamp,
            )


def _texts(schema: LogSchema) -> list[str]:
    return [column.name for column in (*schema.key, *schema.value) if column.type == "string"]
