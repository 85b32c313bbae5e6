"""The reasons why rows cannot be landed, and the fixes that messages state.

If a landing fails because of invalid times, the message names file, line and value of the first rows with an invalid time.
For this message, Parquet files are read once more, because the workers do not know from which file a record came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.ingest import ARRIVAL, FAIL, LogSpec, LogWrite, Piece, SourceLook
from rewindow.contracts.instants import RANGES, unit_of
from rewindow.contracts.row_faults import (
    ARRIVED_AT,
    NEVER_ARRIVED,
    NO_TIMESTAMP,
    TIMESTAMP,
    FaultKind,
    RowFault,
    before_1970,
    fault_of,
    negative,
    not_a_time,
    other_unit,
)
from rewindow.contracts.source_fields import read_schema
from rewindow.contracts.text_options import TEXT_FORMATS, other_form
from rewindow.engine.worker.file_fields import local_files, shown
from rewindow.engine.worker.landing.log_columns import source_types
from rewindow.engine.worker.timestamps import Longs
from rewindow.errors import DataError

_NOTHING = "Nothing was landed. "
_FILE_FORMATS = ("csv", "json", "parquet")
"""The formats of sources for which a message names files and lines. Tables are left out, because nobody edits the files of a
table."""


@dataclass(frozen=True, slots=True)
class BadTimes:
    """The rows of a log that have no valid time in a column. If ``is_exact`` is false, there may be more such rows."""

    column: str
    rows: int
    first: tuple[str, ...]
    reason: str
    """What is wrong with the first such row."""
    is_exact: bool

    def __str__(self) -> str:
        """Return the rows as a sentence without its full stop."""
        most = "" if self.is_exact else "at least "
        count = "1 row has" if self.rows == 1 else f"{self.rows:,} rows have"
        more = "; ..." if self.rows > len(self.first) else ""
        return f"{most}{count} no valid time in {self.column}: {'; '.join(self.first)}{more}"


_BadTimesOf = Callable[[str], BadTimes | None]
"""A function that returns the rows without a valid time in a column of a log."""
_INTEGERS = ("byte", "short", "integer", "long")
_SHOWN = 3
"""The most rows that a message names."""
_MOST_BYTES = 256 << 20
"""Once a bad row is found, reading stops when this many bytes of files have been read."""
_WHOLE = ("byte", "short", "integer", "long")


def checks_units(write: LogWrite) -> bool:
    """Return whether to check the unit of a log's timestamps.

    The unit is checked if the timestamps are integers without a declared unit, or come from a user's function.
    """
    spec = write.spec
    if spec.is_output or spec.timestamp in spec.units:
        return False
    if spec.extractor:
        return True
    schema = write.columns.source_schema
    types = source_types(spec, schema) if schema else {}
    return any(name.lower() == spec.timestamp.lower() and kind in _INTEGERS for name, (_, kind) in types.items())


def unit_faults(times: pa.Array, near: Longs | int) -> dict[int, str]:
    """Return the rows whose timestamp is plausible only in another unit than milliseconds, each with the reason.

    ``near``: when the rows arrived (epoch ms).
    """
    values = np.asarray(times.fill_null(-1) if times.null_count else times)
    suspects = np.zeros(len(values), dtype=np.bool_)
    for low, end in RANGES.values():
        suspects |= (values >= low) & (values < end)
    near_ms = np.broadcast_to(np.asarray(near, dtype=np.int64), values.shape)
    reasons = {}
    for row in np.flatnonzero(suspects).tolist():
        unit = unit_of(int(values[row]), int(near_ms[row]))
        if unit is not None:
            reasons[row] = other_unit(TIMESTAMP, int(values[row]), unit)
    return reasons


def fix_of(reason: str, spec: LogSpec) -> str:
    """Return the text that says how to fix a record that is refused for ``reason``."""
    fault = fault_of(reason)
    if fault.kind == FaultKind.OTHER_UNIT:
        return spec.unit_fix(fault)
    if fault.kind == FaultKind.UNREADABLE:
        return f"{_NOTHING}Fix the file, or set `unreadable: skip` for this log, which quarantines such rows"
    is_other_form = fault.kind in {FaultKind.NO_ARRIVAL, FaultKind.NOT_A_TIME}
    return (_other_form(fault, spec) if is_other_form else "") + _time_fix(fault, spec)


class BadRowsError(DataError):
    """Rows that cannot be landed, with their files and lines (65)."""


@contextmanager
def naming_bad_rows(write: LogWrite, look: SourceLook, of_texts: _BadTimesOf | None = None) -> Iterator[None]:
    """If the block fails because a row has no valid time, name file, line, column and value in the error.

    All such rows are counted, so that a single message says how much has to be fixed. ``of_texts`` finds such rows of text
    files.
    """
    try:
        yield
    except BadRowsError:
        raise
    except DataError as error:
        bad_rows = list(_bad_rows(write, look, of_texts))
        if not bad_rows:
            raise
        fixes = dict.fromkeys(fix.removeprefix(_NOTHING) for _, own in bad_rows for fix in own)
        raise BadRowsError(
            "rows-without-valid-time",
            "log {topic}: {rows}. Nothing was landed. {fix}",
            topic=write.spec.topic,
            rows=". ".join(where for where, _ in bad_rows),
            fix=". ".join(fixes),
        ) from error


class BadTimesFound:
    """A collector of rows that have no valid time in a certain column."""

    def __init__(self, column: str) -> None:
        self.rows, self.is_exact = 0, True
        self._column, self._reason = column, ""
        self._first: list[str] = []

    def add(self, wrong: str, where: str) -> None:
        """Add the row at ``where`` (its file and line).

        ``wrong`` says what is wrong with it; if ``wrong`` is empty, the row is not added.
        """
        if wrong:
            self.rows, self._reason = self.rows + 1, self._reason or wrong
            if self.rows <= _SHOWN:
                self._first.append(f"{where}: {wrong}")

    def summary(self) -> BadTimes | None:
        """Return the rows that were added; None if no row was added."""
        if not self.rows:
            return None
        return BadTimes(self._column, self.rows, tuple(self._first), self._reason, self.is_exact)


def wrong_text(spec: LogSpec, column: str, text: str | None, time_ms: int | None, *, is_number: bool) -> str:
    """Return what is wrong with a text that has no valid time, in the same words as the quarantine.

    ``time_ms`` is the invalid time of the text (epoch ms); None if the text is no time.
    """
    role = ARRIVED_AT if column == spec.arrived_at else TIMESTAMP
    if text is None:
        return NEVER_ARRIVED if column == spec.arrived_at else NO_TIMESTAMP
    if time_ms is None:
        return not_a_time(role, text)
    return _wrong(spec, column, time_ms, "long") if is_number else before_1970(role, text)


def _other_form(fault: RowFault, spec: LogSpec) -> str:
    return other_form(spec.source, spec.column_of(fault))


def _time_fix(fault: RowFault, spec: LogSpec) -> str:
    at_fault = f"{spec.extractor} or the source" if spec.extractor else "the source"
    # The policy `partition_time` replaces a timestamp, but not an arrival, and only if an earlier record has a timestamp.
    helps = not fault.is_of_arrival and not fault.has_none_before
    more = " or `partition_time`" if helps else ""
    return f"Fix {at_fault}, or set `invalid_timestamp: skip` (quarantines the record){more} for this log"


def _bad_rows(write: LogWrite, look: SourceLook, of_texts: _BadTimesOf | None) -> Iterator[tuple[str, list[str]]]:
    """Yield, for each column with invalid times, what is wrong and what to do."""
    spec = write.spec
    if spec.source.format not in _FILE_FORMATS or write.policy.invalid != FAIL:
        return
    types = source_types(spec, read_schema(spec, write.columns))
    kinds = {name: kind for name, (_, kind) in types.items()}
    is_column = spec.timestamp != ARRIVAL and not spec.extractor
    for column in dict.fromkeys(
        [*([spec.timestamp] if is_column else []), *([spec.arrived_at] if spec.arrived_at else [])]
    ):
        if column not in kinds:
            continue
        if of_texts is not None and spec.source.format in TEXT_FORMATS:
            bad = of_texts(column)
        else:
            bad = _bad_times(spec, column, kinds[column], (*look.fresh, *look.rest))
        if bad is not None:
            yield str(bad), _time_fixes(bad.reason, spec)


def _time_fixes(reason: str, spec: LogSpec) -> list[str]:
    """Return what to do about a column with invalid times.

    The fixes explain the form of times only if a time has a wrong form, not if a time is missing.
    """
    fault = fault_of(reason)
    if fault.kind == FaultKind.NOT_A_TIME and (form := _other_form(fault, spec)):
        return [form.removesuffix(". "), _time_fix(fault, spec)]
    return [_time_fix(fault, spec) if fault.kind == FaultKind.NO_ARRIVAL else fix_of(reason, spec)]


def _bad_times(spec: LogSpec, column: str, kind: Any, pieces: Sequence[Piece]) -> BadTimes | None:
    """Return the rows of Parquet files that have no valid time in a column; None if all times are valid.

    ``column`` is the column's name in the log, ``kind`` the type with which it is read.
    """
    old = {new: name for name, new in (spec.renames or {}).items()}.get(column, column)
    faults, size = BadTimesFound(column), 0
    for path in local_files(pieces):
        if faults.rows and size > _MOST_BYTES:
            faults.is_exact = False
            break
        size += path.stat().st_size
        try:
            for where, value in _of_parquet(str(path), old, kind):
                faults.add(_wrong(spec, column, value, kind), f"{shown(spec.source, str(path))}, {where}")
        except (OSError, ValueError, pa.ArrowException):
            # Leave the file out. The error of the landing says why the file cannot be read.
            faults.is_exact = False
    return faults.summary()


def _wrong(spec: LogSpec, column: str, value: Any, kind: Any) -> str:
    """Return what is wrong with a value, in the same words as the quarantine; an empty text for a valid time."""
    is_arrival = column == spec.arrived_at
    role = ARRIVED_AT if is_arrival else TIMESTAMP
    if value is None:
        return NEVER_ARRIVED if is_arrival else NO_TIMESTAMP
    if kind not in _WHOLE:
        return ""
    number = int(value)
    unit = next((unit for unit, (low, end) in RANGES.items() if low <= number < end), None)
    if unit is not None and column not in spec.units:
        return other_unit(role, number, unit)
    return negative(number) if number < 0 and not is_arrival else ""


def _of_parquet(path: str, column: str, kind: Any) -> Iterator[tuple[str, Any]]:
    start = 1
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=[column]):
            values = batch.column(0)
            is_bad = values.is_null()
            if kind in _WHOLE:
                wrong = [pc.less(values, 0)]
                wrong += [pc.and_(pc.greater_equal(values, a), pc.less(values, b)) for a, b in RANGES.values()]
                for is_wrong in wrong:
                    is_bad = pc.or_(is_bad, is_wrong.fill_null(fill_value=False))
            for row in pc.indices_nonzero(is_bad).to_pylist():
                yield f"row {start + row:,}", values[row].as_py()
            start += len(values)
