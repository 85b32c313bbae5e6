"""Feeds as both adapters publish them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.ingest.watermarks import HeldFile
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import DataError, SourceError

DELTA = "delta"
"""The kind of a table's position: table id, version, its arrival, and versions that arrived too late to be landed."""

LOG_PARTITIONS = ("generation", "partition")


def generations(
    appends: Iterable[Sequence[LedgerRow]], begun: Mapping[str, Any] | None = None
) -> Iterator[tuple[Mapping[str, Any], list[list[Mapping[str, Any]]]]]:
    """Yield the definition of each generation with the landings that it made, grouped as they were appended.

    ``begun``: the definition of the generation that earlier appends have begun.
    """
    generation = begun
    landed: list[list[Mapping[str, Any]]] = []
    for rows in appends:
        for row in rows:
            if row.kind == GENERATION:
                if generation is not None:
                    yield generation, landed
                generation, landed = row.body, []
        bodies = [row.body for row in rows if row.kind == LANDING]
        if bodies:
            landed.append(bodies)
    if generation is not None:
        yield generation, landed


def first_above(timestamps: npt.NDArray[np.int64], file: HeldFile, offset: int, time_ms: int) -> int | None:
    """Return the first offset of a landed file, from ``offset`` on, whose timestamp is above ``time_ms``."""
    above = np.flatnonzero(timestamps[offset - file.start :] > time_ms)
    return offset + int(above[0]) if len(above) else None


def missing_source(name: str) -> SourceError:
    """Return the error of a source that is no table."""
    return SourceError(
        "source-table-missing",
        "there is no table {source}: fix `source:`, or create the table first",
        source=name,
    )


def rows_changed(table: str, version: int, operation: str) -> DataError:
    """Return the error of a source table whose rows were changed or deleted, which no log can take back."""
    return DataError(
        "source-rows-changed",
        "{table}: version {version} ({operation}) changed or deleted rows, but a log is append-only. Write changes as new rows. "
        "To go on with this table, land it again, with what it has now: `rewindow land FEED --new-generation`",
        table=table,
        version=version,
        operation=operation,
    )
