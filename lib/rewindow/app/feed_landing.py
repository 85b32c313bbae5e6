"""Parts of a landing that need the project: code versions, the landings to keep after a refusal, and the expected columns.

After a landing, `naming_unlikely_columns` warns about columns that were probably not landed as the user wants them:

* Numbers with commas, like ``12,50``, become text, which cannot be summed.
* Numbers in a column that also has text like ``n/a``, or codes such as ``007`` and ``1E5``, become text, too.
* Text keeps the blanks around it, even in a key.
* A column whose times are before 1980 is probably not in milliseconds.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewindow.config.feed import TABLE_FORMATS, FeedConfig, feed_spec
from rewindow.contracts.ingest import LogColumns, LogSpec, ReadWindow, SourceLook
from rewindow.contracts.instants import instant
from rewindow.contracts.reserved_names import other_name
from rewindow.contracts.text_options import CSV, text_options
from rewindow.control.ingest.feed_progress import landing_bodies
from rewindow.control.ingest.generations import log_schemas
from rewindow.control.ingest.intervals import grid_of
from rewindow.control.ingest.landings import Feed, FeedDefinition
from rewindow.control.plan.sequence import History
from rewindow.errors import ConfigError, LandedFileError, LandedRunError, RewindowError, StorageError, WarningMessage
from rewindow.streams.serde.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindow.control.ingest.landing_report import LandReport
    from rewindow.control.ingest.landings import LogSchema
    from rewindow.tables.shared.warehouse import Warehouse


def extractor_versions(config: FeedConfig, root: Path) -> dict[str, str]:
    """Return the code version of each function that extracts timestamps, by its name ``module:function``.

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
    """If a landing in this block is refused, add to the error how many landings `--keep` may keep.

    This applies to two errors: a landed file is gone or has changed, or the feed has rows from runs of another job that were
    removed.
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
    """Return how many of a feed's landings come before the first landing with rows of a file."""
    has_file = (
        at
        for at, body in enumerate(landing_bodies(tables.feed_rows(feed)))
        if any(file in position.get("files", ()) for position in body["positions"].values())
    )
    return next(has_file, 0)


TableLook = Callable[[LogSpec, None, ReadWindow], SourceLook]


def lands_next(config: FeedConfig, *, project_root: str, warehouse: str) -> str:
    """Return a sentence for messages that says which intervals of arrival `land` would land now.

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
    """Return the feed as its first landing would define it, with the columns that its sources have now.

    ``look`` inspects a source that is a table. If only a landing can decide the type of a column, the type is json, which fits
    everything. If a source cannot be inspected, all of its columns have the type json. Raises `ConfigError` (78) for a
    configured column that a source lacks.
    """
    feed = feed_spec(config, project_root=project_root, warehouse=warehouse)
    schemas = log_schemas({spec.topic: _expected(spec, look) for spec in feed.logs})
    return Feed(FeedDefinition(feed.feed, 0, feed.partitions, schemas, ""), History())


def _expected(spec: LogSpec, look: TableLook) -> LogColumns:
    from rewindow.engine.worker.landing.arrow_landing import expected_schema  # noqa: PLC0415 - loads pyarrow
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


_ENOUGH = 1_000
"""At most this many rows are inspected."""


_FIRST_TIME_MS = 315_532_800_000
"""1980-01-01 in epoch ms. Event logs have no earlier times."""


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


_CODE = re.compile(r"-?0\d|-?\d+[eE]\d")
"""Matches texts that would lose their form in a column of numbers: zeros at the beginning, and exponents of whole numbers."""


_WHOLE, _DECIMAL = re.compile(r"-?\d{1,20}"), re.compile(r"-?\d{1,20}(\.\d{1,18})?")


_EXACT = 2**53
"""Larger whole numbers are not accepted as DOUBLE, because DOUBLE rounds them."""


_MOST = 0.8
"""If at least this share of the values of a column are numbers, the other values are probably mistakes."""


_GROUPS = re.compile(r"[+-]?\d{1,3}(,\d{3})*(\.\d+)?")


_COMMAS = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


def naming_unlikely_columns(report: LandReport, tables: Warehouse, config: FeedConfig, project_root: str) -> LandReport:
    """Return the report of a landing with a warning for each column of a new generation that was probably landed wrongly.

    There is no warning if reading the log would cost more than the landing, as in a catalog.
    """
    if not report.landings:
        return report
    feed = tables.feed(report.feed)
    if report.landings[0] != feed.definition.kept + 1:
        return report
    specs = feed_spec(config, project_root=project_root, warehouse=tables.warehouse).logs
    warnings = (
        *_unlikely_texts(tables, feed, {spec.topic for spec in specs if _is_inferred(spec)}),
        *_no_times(feed, config),
    )
    return replace(report, warnings=(*report.warnings, *warnings))


def _unlikely_texts(tables: Warehouse, feed: Feed, inferred: AbstractSet[str]) -> Iterator[WarningMessage]:
    name = feed.definition.feed
    for topic, schema in feed.definition.logs.items():
        columns, keys = _texts(schema), [column.name for column in schema.key]
        if not columns or topic in feed.definition.source_offsets:
            continue
        for column, values, has_more in _first_texts(tables.first_batches(name, topic), columns):
            if all(_COMMAS.fullmatch(value.strip()) for value in values):
                yield WarningMessage(
                    "numbers-with-commas",
                    "feed {feed}: {column} of {topic} was landed as text, but its values are numbers with commas, like {value!r}."
                    " Declare {column} DECIMAL(12,2) in a `schema:` of the source, with {options}, {other}, and "
                    "`rewindow land {feed} --new-generation`",
                    feed=name,
                    column=column,
                    topic=topic,
                    value=values[0],
                    options=_options_of_commas(values),
                    other=other_name(column),
                )
            elif why := _why_text(values, is_key=column in keys, has_more=has_more) if topic in inferred else None:
                yield WarningMessage(
                    "numbers-as-text",
                    "feed {feed}: {column} of {topic} was landed as text, because {reason}. If these are numbers, declare "
                    "{column} {type} in a `schema:` of the source, with {option}, {other}, "
                    "and `rewindow land {feed} --new-generation`",
                    feed=name,
                    column=column,
                    topic=topic,
                    reason=why.reason,
                    type=why.type,
                    option=why.option,
                    other=other_name(column),
                )
            elif padded := _with_blanks(values, is_key=column in keys):
                yield WarningMessage(
                    "blanks-around-values",
                    "feed {feed}: values of {column} of {topic} have blanks around them, like {value!r}, which is not {other!r}. "
                    "If they mean the same, remove the blanks, and `rewindow land {feed} --new-generation`",
                    feed=name,
                    column=column,
                    topic=topic,
                    value=padded,
                    other=padded.strip(),
                )


def _options_of_commas(values: list[str]) -> str:
    """Return the options for numbers with commas. Both options are named, because `1,500` may mean 1500 or 1.5."""
    fractions, groups = '`options: {decimal: ",", thousands: "."}`', '`options: {thousands: ","}`'
    if not all(_GROUPS.fullmatch(value.strip()) for value in values):
        return fractions
    is_certain = any("." in value or value.count(",") > 1 for value in values)
    return groups if is_certain else f"{groups} if commas group digits, or {fractions} if they begin fractions"


class _Why(NamedTuple):
    """Why a column of numbers was landed as text, which type the numbers have, and which option handles the other values."""

    reason: str
    type: str = "DOUBLE"
    option: str = "`unreadable: skip` for other lines"


def _why_text(values: list[str], *, is_key: bool, has_more: bool) -> _Why | None:
    """Return why the type of a column of numbers was inferred as text; None if the values are no numbers.

    ``has_more``: the log has more rows than those with ``values``.
    """
    if all(map(_NUMBER.fullmatch, values)):
        if (code := next(filter(_CODE.match, values), None)) is not None:
            return _Why(f"values like {code!r} may be codes")
        large = next((value for value in values if _WHOLE.fullmatch(value) and abs(int(value)) > _EXACT), None)
        if large is None and has_more and not is_key:
            return _Why(f"a value after its first {_ENOUGH:,} rows is no number or may be a code like '007'")
        if large is None or not all(map(_DECIMAL.fullmatch, values)):
            return None
        scale = max(len(value.partition(".")[2]) for value in values)
        return _Why(f"a number like {large!r} would be rounded", f"DECIMAL(38,{scale})")
    if is_key or not _are_mostly_numbers(values):
        return None
    others = sorted({value for value in values if not _NUMBER.fullmatch(value.strip())})
    if not others:
        return _Why("not all of its values are numbers")
    reason = f"not all of its values are numbers, like {others[0]!r}"
    return _Why(reason, option=f"`options: {{null: {json.dumps(others[0])}}}`") if len(others) == 1 else _Why(reason)


def _with_blanks(values: list[str], *, is_key: bool) -> str | None:
    """Return a value with blanks around it as an example; None if there is none, or if blanks are probably wanted.

    Blanks are suspicious if all values begin with a blank, or if a key has a value with blanks around it.
    """
    if all(value[0].isspace() for value in values):
        return values[0]
    # A lookup of the key without the blanks does not find it.
    return next((value for value in values if is_key and value != value.strip()), None)


def _are_mostly_numbers(values: list[str]) -> bool:
    numbers = sum(_NUMBER.fullmatch(value.strip()) is not None for value in values)
    return numbers >= _MOST * len(values)


def _is_inferred(spec: LogSpec) -> bool:
    return spec.source.format == CSV and spec.source.schema is None and text_options(CSV, spec.source.options).infer


def _first_texts(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[tuple[str, list[str], bool]]:
    """Yield each column's name with its first values, and whether more rows follow. Empty values and nulls are left out."""
    values: dict[str, list[str]] = {name: [] for name in names}
    rows = 0
    try:
        for batch in batches:
            for name in names:
                values[name] += [
                    text for text in batch.column(name).slice(0, max(_ENOUGH - rows, 0)).to_pylist() if text
                ]
            if (rows := rows + batch.num_rows) > _ENOUGH:
                break
    except StorageError:  # the next command that reads the log reports the error
        return
    yield from ((name, texts, rows > _ENOUGH) for name, texts in values.items() if texts)


def _no_times(feed: Feed, config: FeedConfig) -> Iterator[WarningMessage]:
    name = feed.definition.feed
    for topic, log in config.logs.items():
        newest = (landed.max_timestamp for tp, landed in feed.landings[-1].ranges.items() if tp.topic == topic)
        if 0 <= (last_ms := max(newest, default=-1)) < _FIRST_TIME_MS:
            yield WarningMessage(
                "times-before-1980",
                "feed {feed}: no time of {topic} is after {time}. Does {column} give the times in milliseconds? If "
                "not, correct `timestamp:` or `units:`, and `rewindow land {feed} --new-generation`",
                feed=name,
                topic=topic,
                time=instant(last_ms),
                column=log.timestamp,
            )


def _texts(schema: LogSchema) -> list[str]:
    return [column.name for column in (*schema.key, *schema.value) if column.type == "string"]
