"""Why a row cannot be landed, and what helps: the reasons of refused records, and the fix that a message names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from rewindow.contracts.ingest import LogSpec, LogWrite, SourceLook
from rewindow.contracts.text_times import other_form
from rewindow.contracts.time_units import RANGES, unit_in, unit_of, wrong_unit
from rewindow.engine.worker.bad_values import first_bad_value
from rewindow.engine.worker.timestamps import UNREADABLE, Longs
from rewindow.errors import DataError

NEVER_ARRIVED = "it has no arrived_at"

_INTEGERS = ("byte", "short", "integer", "long")


def checks_units(write: LogWrite) -> bool:
    """Return whether a log's timestamps are integers (or a function's) whose unit nobody has declared."""
    spec = write.spec
    if spec.is_output or spec.timestamp in spec.units:
        return False
    if spec.extractor:
        return True
    names = {new: old for old, new in (spec.renames or {}).items()}
    fields = json.loads(write.columns.source_schema or "{}").get("fields", ())
    return any(
        field["name"].lower() == names.get(spec.timestamp, spec.timestamp).lower() and field["type"] in _INTEGERS
        for field in fields
    )


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
    if (unit := unit_in(reason)) is not None:
        name = spec.arrived_at if "arrived_at" in reason else spec.timestamp
        return (
            f"Write milliseconds, or declare the unit of all files: `units: {{{name}: {unit}}}` (`ms` if these really are "
            "milliseconds)"
        )
    if reason == UNREADABLE:
        return "Nothing was landed. Fix the file, or set `unreadable: skip` for this log, which quarantines such rows"
    fix = "Fix the source, or set `invalid_timestamp: skip` (quarantines the record) or `partition_time` for this log"
    is_missing = reason == NEVER_ARRIVED
    if is_missing or "is not a valid time" in reason:
        column = (spec.arrived_at if is_missing else None) or spec.timestamp
        return other_form(spec.source, column) + fix
    return fix


@contextmanager
def naming_bad_values(write: LogWrite, look: SourceLook) -> Iterator[None]:
    """Name file, line, column and value in the error of the block if the parser could not read a row."""
    try:
        yield
    except DataError as error:
        if UNREADABLE not in str(error):
            raise
        pieces = (*look.fresh, *look.rest)
        where = first_bad_value(write.spec.source, write.columns.source_schema or "{}", pieces, look.base)
        if where is None:
            raise
        message = f"log {write.spec.topic}: {where}. {fix_of(UNREADABLE, write.spec)}"
        raise DataError(message) from error
