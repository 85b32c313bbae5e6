"""Find the rows of files whose times are not valid, so that a message can name file, line and value of the first.

Reads the files once more, after the landing has failed: its workers know a record, but not where it came from.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogSpec, Piece
from rewindow.contracts.text_times import form_of_times
from rewindow.contracts.time_units import RANGES, wrong_unit
from rewindow.engine.worker.csv_files import csv_lines, csv_names, encoding_of, has_header, lower_options, positions
from rewindow.engine.worker.file_fields import local_files, shown
from rewindow.engine.worker.time_texts import Verdict, judge_text
from rewindow.engine.worker.timestamps import NEVER_ARRIVED, NO_TIMESTAMP, NOT_A_TIME

_SHOWN = 3
"""Rows that a message names."""
_MOST_BYTES = 256 << 20
"""Once a bad row is found, reading ends after this much."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = ("byte", "short", "integer", "long")


@dataclass(frozen=True, slots=True)
class BadTimes:
    """The rows of a log without a valid time in a column. Without ``is_exact``, there may be more of them."""

    column: str
    rows: int
    first: tuple[str, ...]
    reason: str
    """What is wrong with the first of them."""
    is_exact: bool

    def __str__(self) -> str:
        """Return the rows as a sentence without its full stop."""
        most = "" if self.is_exact else "at least "
        what = "1 row has" if self.rows == 1 else f"{self.rows:,} rows have"
        more = "; ..." if self.rows > len(self.first) else ""
        return f"{most}{what} no valid time in {self.column}: {'; '.join(self.first)}{more}"


def bad_times(
    spec: LogSpec,
    column: str,
    kind: Any,
    pieces: Sequence[Piece],
    known: str | None = None,
    *,
    is_cut_told: bool = False,
) -> BadTimes | None:
    """Return the rows of files that have no valid time in a column (its name in the log); None if there are none.

    ``kind`` is the type with which Spark reads it, ``known`` a text that certainly is no time. Lines of CSV with too few or too
    many values do not count if ``is_cut_told``: they cannot be read at all, and the message says so.
    """
    old = {new: name for name, new in (spec.renames or {}).items()}.get(column, column)
    rows, size, is_exact, reason = 0, 0, True, ""
    first: list[str] = []
    for path in local_files(pieces):
        if rows and size > _MOST_BYTES:
            is_exact = False
            break
        size += path.stat().st_size
        try:
            for where, value in _values(spec, str(path), old, kind, is_cut_told=is_cut_told):
                wrong = _wrong(spec, column, value, kind, known)
                is_exact &= wrong is not None
                if not wrong:
                    continue
                rows, reason = rows + 1, reason or wrong
                if rows <= _SHOWN:
                    first.append(f"{shown(spec.source, str(path))}, {where}: {wrong}")
        except (OSError, ValueError, LookupError, AttributeError, csv.Error, pa.ArrowException):
            is_exact = False  # something else is wrong with this file
    return BadTimes(column, rows, tuple(first), reason, is_exact) if rows else None


def _wrong(spec: LogSpec, column: str, value: Any, kind: Any, known: str | None) -> str | None:
    """Return what is wrong with a value, in the words of the quarantine; empty for a valid time, None if unknown."""
    is_arrival = column == spec.arrived_at
    what = "arrived_at" if is_arrival else "timestamp"
    if value is None:
        return NEVER_ARRIVED if is_arrival else NO_TIMESTAMP
    if kind in _WHOLE:
        try:
            number = int(value)
        except ValueError:
            return None
        unit = next((unit for unit, (low, end) in RANGES.items() if low <= number < end), None)
        if unit is not None and column not in spec.units:
            return wrong_unit(what, number, unit)
        return f"a negative timestamp ({number})" if number < 0 and not is_arrival else ""
    if kind == "string" and isinstance(value, int | float):
        return f"the {what} {value} is a number, but a text in other rows"
    if isinstance(value, str) and not is_arrival and _is_before_1970(value):
        return f"the {what} {value!r} is before 1970"
    if kind != "string" or not isinstance(value, str):
        return ""  # as another type, a wrong one is null
    verdict = Verdict.NONE if value == known else judge_text(value, form_of_times(spec.source))
    if verdict is Verdict.NONE:
        return f"the {what} {value!r} {NOT_A_TIME}"
    return "" if verdict is Verdict.TIME else None


def _is_before_1970(text: str) -> bool:
    """Return whether a text in the form of ISO 8601 is a time that Kafka cannot have."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return (at if at.tzinfo else at.replace(tzinfo=UTC)) < _EPOCH


def _values(spec: LogSpec, path: str, column: str, kind: Any, *, is_cut_told: bool) -> Iterator[tuple[str, Any]]:
    """Yield each row's position in its file, and its value. Of Parquet, only what is null or a wrong number."""
    options = lower_options(spec.source)
    if spec.source.format == "parquet":
        yield from _of_parquet(path, column, kind)
        return
    with pa.input_stream(path) as raw, io.TextIOWrapper(raw, encoding_of(spec.source), newline="") as text:
        is_csv = has_header(spec.source)
        yield from _of_csv(text, column, options, skips_cut=is_cut_told) if is_csv else _of_json(text, column)


def _of_csv(
    text: io.TextIOWrapper, column: str, options: Mapping[str, str], *, skips_cut: bool
) -> Iterator[tuple[str, Any]]:
    empty, lines = {"", options.get("nullvalue", "")}, csv_lines(text, options)
    header = csv_names(next(lines, (0, []))[1], options)
    at = positions(header, [column])[column]
    for line, row in lines:
        if skips_cut and len(row) != len(header):
            continue
        value = row[at] if at < len(row) else ""
        yield f"line {line}", None if value in empty else value


def _of_json(text: io.TextIOWrapper, column: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text, start=1):
        if line.strip():
            yield f"line {number}", json.loads(line).get(column)


def _of_parquet(path: str, column: str, kind: Any) -> Iterator[tuple[str, Any]]:
    start = 1
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=[column]):
            values = batch.column(0)
            is_bad = values.is_null()
            if kind in _WHOLE:
                wrong = [pc.less(values, 0)]
                wrong += [pc.and_(pc.greater_equal(values, a), pc.less(values, b)) for a, b in RANGES.values()]
                for one in wrong:
                    is_bad = pc.or_(is_bad, one.fill_null(fill_value=False))
            for row in pc.indices_nonzero(is_bad).to_pylist():
                yield f"row {start + row:,}", values[row].as_py()
            start += len(values)
