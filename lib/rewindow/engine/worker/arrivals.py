"""When the rows of a source arrived, found from their arrival times alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from rewindow.contracts.ingest import FAR, Arrivals, Intervals
from rewindow.engine.worker.timestamps import NEVER_ARRIVED


def arrivals_of(intervals: Intervals, until_ms: int, columns: Iterable[tuple[pa.Array, pa.Array]]) -> Arrivals:
    """Return when rows arrived, given as columns of arrivals (epoch ms) and faults. From ``until_ms`` on they wait."""
    found: set[int | None] = set()
    start, end, waiting, first = 0, 0, 0, FAR
    fault: str | None = None
    for arrivals, faults in columns:
        if arrivals.null_count and fault is None:
            fault = faults.filter(arrivals.is_null())[0].as_py() or NEVER_ARRIVED
            found.add(None)
        known = np.asarray(arrivals.drop_null())
        late = known[known >= until_ms]
        waiting, first = waiting + len(late), min(first, int(late.min())) if len(late) else first
        times = np.sort(known[known < until_ms])
        at = 0
        while at < len(times):
            if not start <= int(times[at]) < end:
                start = intervals.start_of(int(times[at]))
                end = intervals.after(start)
                found.add(start)
            at = int(np.searchsorted(times, end, side="left"))
    return Arrivals(frozenset(found), waiting, first if waiting else None, fault)
