"""The arrival intervals of rows, found from a column of arrival times."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from rewindow.contracts.ingest import Intervals


def interval_starts(intervals: Intervals, arrivals: Iterable[pa.Array]) -> set[int | None]:
    """Return the starts of the intervals in which rows arrived (epoch ms); None for rows without an arrival."""
    found: set[int | None] = set()
    start, end = 0, 0
    for column in arrivals:
        if column.null_count:
            found.add(None)
        times = np.unique(np.asarray(column.drop_null()))
        at = 0
        while at < len(times):
            if not start <= int(times[at]) < end:
                start = intervals.start_of(int(times[at]))
                end = intervals.after(start)
                found.add(start)
            at = int(np.searchsorted(times, end, side="left"))
    return found
