"""Find the rows of files whose times are not valid, so that a message can name file, line and value of the first.

Called after the landing has failed. Parquet files are read once more: the workers know a record, but not where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogSpec, Piece
from rewindow.contracts.instants import RANGES, wrong_unit
from rewindow.engine.worker.file_fields import local_files, shown
from rewindow.engine.worker.timestamps import NEVER_ARRIVED, NO_TIMESTAMP, NOT_A_TIME

_SHOWN = 3
"""Rows that a message names."""
_MOST_BYTES = 256 << 20
"""Once a bad row is found, reading ends after this much."""
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


def bad_times(spec: LogSpec, column: str, kind: Any, pieces: Sequence[Piece]) -> BadTimes | None:
    """Return the rows of Parquet files that have no valid time in a column (its name in the log); None if there are none.

    ``kind`` is the type with which the column is read.
    """
    old = {new: name for name, new in (spec.renames or {}).items()}.get(column, column)
    found, size = BadTimesFound(column), 0
    for path in local_files(pieces):
        if found.rows and size > _MOST_BYTES:
            found.is_exact = False
            break
        size += path.stat().st_size
        try:
            for where, value in _of_parquet(str(path), old, kind):
                found.add(_wrong(spec, column, value, kind), f"{shown(spec.source, str(path))}, {where}")
        except (OSError, ValueError, pa.ArrowException):
            found.is_exact = False  # something else is wrong with this file
    return found.summary()


class BadTimesFound:
    """The rows without a valid time in a column that were found so far."""

    def __init__(self, column: str) -> None:
        self.rows, self.is_exact = 0, True
        self._column, self._reason = column, ""
        self._first: list[str] = []

    def add(self, wrong: str, where: str) -> None:
        """Add a row: what is wrong with it (nothing if empty), and where it is."""
        if wrong:
            self.rows, self._reason = self.rows + 1, self._reason or wrong
            if self.rows <= _SHOWN:
                self._first.append(f"{where}: {wrong}")

    def summary(self) -> BadTimes | None:
        """Return the rows; None if there are none."""
        if not self.rows:
            return None
        return BadTimes(self._column, self.rows, tuple(self._first), self._reason, self.is_exact)


def _wrong(spec: LogSpec, column: str, value: Any, kind: Any) -> str:
    """Return what is wrong with a value, in the words of the quarantine; empty for a valid time."""
    is_arrival = column == spec.arrived_at
    what = "arrived_at" if is_arrival else "timestamp"
    if value is None:
        return NEVER_ARRIVED if is_arrival else NO_TIMESTAMP
    if kind not in _WHOLE:
        return ""
    number = int(value)
    unit = next((unit for unit, (low, end) in RANGES.items() if low <= number < end), None)
    if unit is not None and column not in spec.units:
        return wrong_unit(what, number, unit)
    return f"a negative timestamp ({number})" if number < 0 and not is_arrival else ""


def wrong_text(spec: LogSpec, column: str, text: str | None, time_ms: int | None, *, is_number: bool) -> str:
    """Return what is wrong with a text that has no valid time, in the words of the quarantine."""
    what = "arrived_at" if column == spec.arrived_at else "timestamp"
    if text is None:
        return NEVER_ARRIVED if column == spec.arrived_at else NO_TIMESTAMP
    if time_ms is None:
        return f"the {what} {text!r} {NOT_A_TIME}"
    return _wrong(spec, column, time_ms, "long") if is_number else f"the {what} {text!r} is before 1970"


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
