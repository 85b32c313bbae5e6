"""Determine the timestamp of each record: read and check it, and replace an invalid one if the policy says so (D19).

`judge` and `extract` depend on the partition time, so they need the records of one topic-partition in offset order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.ingest import FAIL, FAR, PARTITION_TIME, Arrivals, Intervals, TimestampPolicy
from rewindow.contracts.instants import unit_of
from rewindow.contracts.row_faults import (
    NEVER_ARRIVED,
    NO_TIMESTAMP,
    TIMESTAMP,
    TOO_FAR_AHEAD,
    is_unreadable,
    negative,
    other_unit,
    without_predecessor,
)
from rewindow.streams.record import MAX_MS, UNKNOWN, Record

Longs = npt.NDArray[np.int64]
Extractor = Callable[[Record, int], Any]
"""A user's ``module:function(record, partition_time)``, which returns epoch milliseconds."""
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that is not landed: the index of its row in the batch, and the reason."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The timestamps of all records, a mask of the records to land (``keep``), the rejected ones, the next partition time."""

    keep: _Flags
    timestamps: Longs
    refusals: tuple[Refusal, ...]
    partition_time: int


class InvalidTimestampError(ValueError):
    """A row has an invalid timestamp, and the policy is ``fail``. Used only within the worker.

    The log writer catches this error and raises one that names the record.
    """

    def __init__(self, row: int, reason: str) -> None:
        """``reason``: what is wrong with the timestamp of ``row``."""
        super().__init__(reason)
        self.row, self.reason = row, reason


def judge(
    timestamps: pa.Array,
    limits: Longs | int,
    faults: Sequence[str | None],
    policy: TimestampPolicy,
    partition_time: int,
) -> Judged:
    """Apply the policy to a column of timestamps (null if missing).

    ``limits``: the largest timestamp that is not too far ahead, for each record or one for all. ``faults``: for each record,
    a problem other than its timestamp (such as a parser error), or None. It is empty if no record has such a problem. Raises
    `InvalidTimestampError` for an invalid timestamp if the policy is ``fail``.
    """
    rows = len(timestamps)
    missing = np.asarray(timestamps.is_null()) if timestamps.null_count else np.zeros(rows, dtype=np.bool_)
    times: Longs = np.array(pc.fill_null(timestamps, UNKNOWN) if timestamps.null_count else timestamps)
    faulty = np.array([fault is not None for fault in faults], dtype=np.bool_) if faults else None
    invalid = times < 0
    bad = invalid if faulty is None else invalid | faulty
    ahead = times > limits
    refused = ahead & ~bad
    # Nearly all batches have no invalid timestamp and no rejected record.
    if not bad.any() and not refused.any():
        return Judged(~bad, times, (), max(partition_time, int(times.max())) if rows else partition_time)
    fatal = _fatal(bad, faults, policy)
    if fatal.any():
        row = int(np.argmax(fatal))
        raise InvalidTimestampError(row, _reason(row, missing, faults, times))
    keep = ~(bad | refused)
    if policy.invalid == PARTITION_TIME:
        # A row with another fault may lack values. So it is not landed, and its timestamp is not replaced.
        filled = bad if faulty is None else bad & ~faulty
        # The partition time of a record is the largest valid timestamp before it.
        running = np.maximum.accumulate(np.concatenate(([partition_time], np.where(keep, times, UNKNOWN))))[:-1]
        if (unknown := filled & (running == UNKNOWN)).any():
            raise InvalidTimestampError(int(np.argmax(unknown)), without_predecessor())
        times = np.where(filled, running, times)
        keep |= filled
    refusals = tuple(
        Refusal(int(row), TOO_FAR_AHEAD if refused[row] else _reason(int(row), missing, faults, times))
        for row in np.flatnonzero(~keep)
    )
    kept = times[keep]
    return Judged(keep, times, refusals, max(partition_time, int(kept.max())) if len(kept) else partition_time)


def extract(
    extractor: Extractor,
    records: list[Record],
    limits: Longs | int,
    faults: Sequence[str | None],
    policy: TimestampPolicy,
    partition_time: int,
    near: Longs | int | None = None,
) -> Judged:
    """Call a user's extractor for each record, in offset order, and apply the policy as `judge` does.

    ``near`` says when the records arrived (epoch ms). It is used to recognise times in other units than milliseconds. If it
    is None, units are not checked.
    """
    arrived = None if near is None else np.broadcast_to(np.asarray(near, dtype=np.int64), (len(records),))
    bounds = np.broadcast_to(np.asarray(limits, dtype=np.int64), (len(records),))
    keep = np.zeros(len(records), dtype=np.bool_)
    times = np.full(len(records), UNKNOWN, dtype=np.int64)
    refusals = []
    for row, record in enumerate(records):
        fault = faults[row] if faults else None
        time, reason = _ask(extractor, record, partition_time) if fault is None else (UNKNOWN, fault)
        if arrived is not None and (unit := unit_of(time, int(arrived[row]))) is not None:
            time, reason = UNKNOWN, other_unit(TIMESTAMP, time, unit)
            fault = reason
        if time < 0 and (policy.unreadable if is_unreadable(fault) else policy.invalid) == FAIL:
            raise InvalidTimestampError(row, reason)
        if time < 0 and policy.invalid == PARTITION_TIME and fault is None:
            if partition_time == UNKNOWN:
                raise InvalidTimestampError(row, without_predecessor(reason))
            time = partition_time
        elif time > bounds[row]:
            time, reason = UNKNOWN, TOO_FAR_AHEAD
        if time < 0:
            refusals.append(Refusal(row, reason))
            continue
        keep[row], times[row] = True, time
        partition_time = max(partition_time, time)
    return Judged(keep, times, tuple(refusals), partition_time)


def arrivals_of(intervals: Intervals, until_ms: int, columns: Iterable[tuple[pa.Array, pa.Array]]) -> Arrivals:
    """Return the intervals in which rows arrived. Rows that arrived at ``until_ms`` or later wait.

    ``columns`` yields pairs (arrivals in epoch ms, faults) for batches of rows.
    """
    starts: set[int | None] = set()
    start, end, waiting, first = 0, 0, 0, FAR
    fault: str | None = None
    for arrivals, faults in columns:
        if arrivals.null_count and fault is None:
            fault = faults.filter(arrivals.is_null())[0].as_py() or NEVER_ARRIVED
            starts.add(None)
        times_ms = np.asarray(arrivals.drop_null())
        late = times_ms[times_ms >= until_ms]
        waiting, first = waiting + len(late), min(first, int(late.min())) if len(late) else first
        times = np.sort(times_ms[times_ms < until_ms])
        position = 0
        while position < len(times):
            if not start <= int(times[position]) < end:
                start = intervals.start_of(int(times[position]))
                end = intervals.after(start)
                starts.add(start)
            # The times are sorted, so all other times of the interval are skipped at once.
            position = int(np.searchsorted(times, end, side="left"))
    return Arrivals(frozenset(starts), waiting, first if waiting else None, fault)


def _ask(extractor: Extractor, record: Record, partition_time: int) -> tuple[int, str]:
    try:
        answer = extractor(record, partition_time)
    except Exception as error:  # noqa: BLE001 - user code: any exception makes the timestamp invalid
        return UNKNOWN, f"the timestamp extractor raised {type(error).__name__}: {error}"
    if answer is None:
        return UNKNOWN, "the timestamp extractor returned None"
    if isinstance(answer, bool) or not isinstance(answer, int) or answer > MAX_MS:
        return UNKNOWN, f"the timestamp extractor returned {answer!r}, which is not epoch milliseconds"
    return (answer, "") if answer >= 0 else (UNKNOWN, negative(answer))


def _fatal(bad: _Flags, faults: Sequence[str | None], policy: TimestampPolicy) -> _Flags:
    """Return a mask of the invalid rows that make the landing fail."""
    unreadable = np.array([is_unreadable(fault) for fault in faults], dtype=np.bool_) if faults else np.zeros_like(bad)
    fatal = unreadable if policy.unreadable == FAIL else np.zeros_like(bad)
    return fatal | (bad & ~unreadable) if policy.invalid == FAIL else fatal


def _reason(row: int, missing: _Flags, faults: Sequence[str | None], times: Longs) -> str:
    if faults and (fault := faults[row]) is not None:
        return fault
    return NO_TIMESTAMP if missing[row] else negative(int(times[row]))
