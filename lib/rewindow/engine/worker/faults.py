"""Why a row cannot be landed, and what helps: the reasons of refused records, and the fix that a message names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from rewindow.contracts.ingest import ARRIVAL, FAIL, LogSpec, LogWrite, SourceLook
from rewindow.contracts.instants import RANGES, unit_in_reason, unit_of, wrong_unit
from rewindow.contracts.source_fields import read_schema
from rewindow.contracts.text_options import TEXT_FORMATS, other_form
from rewindow.engine.worker.bad_times import BadTimes, bad_times
from rewindow.engine.worker.landing.log_columns import source_types
from rewindow.engine.worker.timestamps import NEVER_ARRIVED, NOT_A_TIME, Longs, is_unreadable
from rewindow.errors import DataError

_NOTHING = "Nothing was landed. "
FILE_FORMATS = ("csv", "json", "parquet")
"""Sources of which a message can name files and lines. Those of a table are nobody's to look into."""

BadTimesOf = Callable[[str], BadTimes | None]
"""Returns the rows without a valid time in a column of a log."""

_INTEGERS = ("byte", "short", "integer", "long")


def checks_units(write: LogWrite) -> bool:
    """Return whether a log's timestamps are integers (or a function's) without a declared unit."""
    spec = write.spec
    if spec.is_output or spec.timestamp in spec.units:
        return False
    if spec.extractor:
        return True
    schema = write.columns.source_schema
    found = source_types(spec, schema) if schema else {}
    return any(name.lower() == spec.timestamp.lower() and kind in _INTEGERS for name, (_, kind) in found.items())


def unit_faults(times: pa.Array, near: Longs | int) -> dict[int, str]:
    """Return the rows whose timestamp is plausible in another unit only, with the reason. ``near``: when rows arrived."""
    values = np.asarray(times.fill_null(-1) if times.null_count else times)
    suspects = np.zeros(len(values), dtype=np.bool_)
    for first, end in RANGES.values():
        suspects |= (values >= first) & (values < end)
    near_ms = np.broadcast_to(np.asarray(near, dtype=np.int64), values.shape)
    found = {}
    for row in np.flatnonzero(suspects).tolist():
        unit = unit_of(int(values[row]), int(near_ms[row]))
        if unit is not None:
            found[row] = wrong_unit("timestamp", int(values[row]), unit)
    return found


def fix_of(reason: str, spec: LogSpec) -> str:
    """Return what to do about a refused record."""
    if (unit := unit_in_reason(reason)) is not None:
        fix = spec.unit_fix(reason, unit)
        return fix[0].upper() + fix[1:]
    if is_unreadable(reason):
        return f"{_NOTHING}Fix the file, or set `unreadable: skip` for this log, which quarantines such rows"
    is_other_form = reason == NEVER_ARRIVED or NOT_A_TIME in reason
    return (_other_form(reason, spec) if is_other_form else "") + _time_fix(spec)


def _other_form(reason: str, spec: LogSpec) -> str:
    return other_form(spec.source, (spec.arrived_at if "arrived_at" in reason else None) or spec.timestamp)


def _time_fix(spec: LogSpec) -> str:
    at_fault = f"{spec.extractor} or the source" if spec.extractor else "the source"
    return f"Fix {at_fault}, or set `invalid_timestamp: skip` (quarantines the record) or `partition_time` for this log"


class BadRowsError(DataError):
    """Rows that cannot be landed, with their files and lines (65)."""


@contextmanager
def naming_bad_rows(write: LogWrite, look: SourceLook, of_texts: BadTimesOf | None = None) -> Iterator[None]:
    """Name file, line, column and value in the error of the block if a row has no valid time.

    All such rows are counted, so that one landing names everything that has to be fixed. ``of_texts`` finds those of text files.
    """
    try:
        yield
    except BadRowsError:
        raise
    except DataError as error:
        found = list(_bad_rows(write, look, of_texts))
        if not found:
            raise
        fixes = dict.fromkeys(fix.removeprefix(_NOTHING) for _, own in found for fix in own)
        where = ". ".join(where for where, _ in found)
        raise BadRowsError(f"log {write.spec.topic}: {where}. {_NOTHING}{'. '.join(fixes)}") from error


def _bad_rows(write: LogWrite, look: SourceLook, of_texts: BadTimesOf | None) -> Iterator[tuple[str, list[str]]]:
    """Yield what is wrong, and what to do, for each column without valid times."""
    spec = write.spec
    if spec.source.format not in FILE_FORMATS or write.policy.invalid != FAIL:
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
            bad = bad_times(spec, column, kinds[column], (*look.fresh, *look.rest))
        if bad is not None:
            yield str(bad), _time_fixes(bad.reason, spec)


def _time_fixes(reason: str, spec: LogSpec) -> list[str]:
    """Return what to do about a column without valid times. Where a file has nothing, the form of its times does not matter."""
    if NOT_A_TIME in reason and (form := _other_form(reason, spec)):
        return [form.removesuffix(". "), _time_fix(spec)]
    return [_time_fix(spec) if reason == NEVER_ARRIVED else fix_of(reason, spec)]
