"""The checkpoint that a run resumes from, and functions that compute a store's current keys and values from its changelog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.planned_tasks import Restored
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import PARTITION, Column
from rewindow.streams.state.stores import JOIN, SESSION, WINDOW

_BOUND = {WINDOW: -2, SESSION: -1}
"""Maps the kind of a store to the index of a key column: the start or end of a window, which decides when a row expires.

The index is used instead of a name, because these columns have other names if fields of the value are named like the bounds
of windows.
"""


@dataclass(frozen=True, slots=True)
class Checkpoint(Restored):
    """The state that a run resumes from. ``rows``, ``bytes``: how many rows and bytes of changelog files a restore reads."""

    rows: int = 0
    bytes: int = 0


def since_last_added(chain: Sequence[CommittedRun], target: str) -> Sequence[CommittedRun]:
    """Return the runs of a chain since a store was last added to the job, because an added store begins empty."""
    gone = [number for number, run in enumerate(chain, start=1) if target not in run.spec.binding.tables]
    return chain[gone[-1] :] if gone else chain


def current_rows(changes: pa.Table, run: CommittedRun, store: str, reports: Iterable[TaskReport]) -> pa.Table:
    """Return a store's keys and values after a run, with their partition.

    ``changes``: the rows of the store's changelog in the order of their runs; the last row of each key counts. ``reports``: the
    reports of the run, which state the clocks of its stores.
    """
    keys = [PARTITION, *run.spec.binding.keys[store]]
    numbered = changes.append_column("_row", pa.array(range(changes.num_rows), pa.int64()))
    last = numbered.group_by(keys, use_threads=False).aggregate([("_row", "max")])["_row_max"]
    current = changes.take(last).filter(pc.invert(pc.field("_tombstone"))).drop_columns(["_run", "_tombstone"])
    described = _described(run.spec.binding.topology, store)
    kind = described["kind"]
    time_column = "_record_time" if kind == JOIN else keys[_BOUND[kind]] if kind in _BOUND else None
    if time_column is None or not described["retention_ms"]:
        return current
    return _without_expired(current, time_column, described["retention_ms"], _clocks(reports, store))


def in_order(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return rows of a store in the order of its key columns and their partition."""
    return rows.sort_by([(name, "ascending") for name in (*keys, PARTITION)]) if rows.num_rows else rows


def snapshot_rows(rows: pa.Table, number: int, columns: Sequence[Column]) -> Iterator[tuple[int, pa.Table]]:
    """Yield pairs (partition, rows) of a store's snapshot. The rows have the columns of the changelog.

    ``rows``: the result of `current_rows`. ``number``: the `_run` of the snapshot. ``columns``: the columns of the changelog.
    """
    rows = rows.append_column("_run", pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows))
    rows = rows.append_column("_tombstone", pa.repeat(pa.scalar(value=False), rows.num_rows))
    for partition in sorted(set(rows[PARTITION].to_pylist())):
        own = rows.filter(pc.field(PARTITION) == partition)
        yield partition, own.select([column.name for column in columns])


def _described(topology: Sequence[Mapping[str, Any]], store: str) -> Mapping[str, Any]:
    return next(described for part in topology for described in part["stores"] if described["name"] == store)


def _clocks(reports: Iterable[TaskReport], store: str) -> dict[int, int]:
    return {
        report.partition: clock_ms
        for report in reports
        for name, clock_ms in report.state.get("store_clocks", {}).items()
        if name == store
    }


def _without_expired(rows: pa.Table, time_column: str, retention_ms: int, clocks: Mapping[int, int]) -> pa.Table:
    """Return rows without expired ones: rows whose ``time_column`` is at least ``retention_ms`` below the partition's clock."""
    # The changelog has no tombstones for expired rows, so their time decides.
    oldest = [clocks.get(partition, UNKNOWN) - retention_ms for partition in rows[PARTITION].to_pylist()]
    return rows.filter(pc.greater(rows[time_column], pa.array(oldest, pa.int64())))
