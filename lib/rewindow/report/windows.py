"""The results that are not final, and why: what a final run would emit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewindow.report.figures import OpenWindow, OpenWindows
from rewindow.report.held_back import why_open
from rewindow.report.material import Columns, Material
from rewindow.report.nodes import TimedNode, timed_nodes, waiting_joins
from rewindow.streams.record import MAX_MS, UNKNOWN, known_time
from rewindow.streams.serde.schema import PARTITION, has_bounds

MOST_SHOWN = 20
"""The windows that close first; later ones are only counted."""

BUFFER_TIME = "_buffer_time"
"""The column of a buffer's changelog with the time from which a time limit counts."""

RECORD_TIME = "_record_time"
"""The column of the time of a record that waits in a join."""

_Group = dict[tuple[int, tuple[int, int] | None], list[int]]
"""The partition of each key, by closing time and window."""


def open_windows(material: Material) -> OpenWindows:
    """Return the results that a final run would emit, grouped by window, and the records that wait in joins."""
    results, shown, joins, not_read, windows = 0, [], [], [], 0
    if material.head.spec.final:
        return OpenWindows(0, 0, ())
    for timed in timed_nodes(material.head.spec.binding.topology):
        if timed.final_after_ms is None:
            continue
        columns = material.read_store(timed.store)
        if columns is None:
            results += material.head.commit.held.get(timed.store, 0)
            not_read.append(timed.store)
            continue
        clocks = clocks_of(material, timed)
        groups: _Group = {}
        keys = material.head.spec.binding.keys[timed.store]
        for partition, window, closes_at in _entries(timed, timed.final_after_ms, columns, keys, clocks):
            groups.setdefault((closes_at, window), []).append(partition)
        results += sum(len(partitions) for partitions in groups.values())
        windows += len(groups)
        first = sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ()))[:MOST_SHOWN]
        for (closes_at, window), partitions in first:
            distinct = sorted(set(partitions))
            clock = min((clocks.get(one, UNKNOWN) for one in distinct), default=UNKNOWN)
            why = why_open(material, timed, closes_at, {one: clocks.get(one, UNKNOWN) for one in distinct})
            shown.append(OpenWindow(timed.store, window, closes_at, known_time(clock), len(partitions), distinct, why))
    for join in waiting_joins(material.head.spec.binding.topology):
        columns = material.read_store(join.store)
        if columns is None:
            not_read.append(join.store)
        elif waiting := _in_join(material, join, columns):
            results += waiting.keys
            joins.append(waiting)
    shown = [*sorted(shown, key=_first)[:MOST_SHOWN], *joins]
    return OpenWindows(results, windows, sorted(shown, key=_first), not_read)


def _first(one: OpenWindow) -> tuple[int, str]:
    return one.closes_at_ms, one.store


def _in_join(material: Material, join: TimedNode, columns: Columns) -> OpenWindow | None:
    """Return the records that wait in a store of a join; None if none do."""
    due = sorted(
        (min(time + (join.final_after_ms or 0), MAX_MS), partition)
        for time, partition in zip(columns.get(RECORD_TIME, ()), columns.get(PARTITION, ()), strict=True)
    )
    if not due:
        return None
    (first_at, first), (last_at, _) = due[0], due[-1]
    clock = clocks_of(material, join).get(first, UNKNOWN)
    why = why_open(material, join, first_at, {first: clock})
    partitions = sorted({partition for _, partition in due})
    waits_for = "a partner" if join.store != join.node else "the grace"
    return OpenWindow(
        join.store,
        None,
        first_at,
        known_time(clock),
        len(due),
        partitions,
        why,
        waits_for=waits_for,
        last_at_ms=last_at,
    )


def clocks_of(material: Material, timed: TimedNode) -> dict[int, int]:
    """Return the node's clock in each partition."""
    return {
        partition: state.get("node_times", {}).get(timed.node, UNKNOWN)
        for (sub_topology, partition), state in material.tasks.items()
        if sub_topology == timed.sub_topology
    }


def _entries(
    timed: TimedNode, final_after_ms: int, columns: Columns, keys: Sequence[str], clocks: Mapping[int, int]
) -> Iterator[tuple[int, tuple[int, int] | None, int]]:
    """Yield the partition, window and closing time of each entry that is not final."""
    partitions = columns.get(PARTITION, ())
    count = len(partitions)
    nothing: Sequence[Any] = [None] * count
    starts, ends = (columns.get(name, nothing) for name in keys[-2:]) if has_bounds(keys) else (nothing, nothing)
    is_buffer = timed.kind == "buffer"
    times = columns.get(BUFFER_TIME, ends) if is_buffer else ends
    nulls = columns.get("_is_null", [False] * count)
    for partition, start, end, time, is_null in zip(partitions, starts, ends, times, nulls, strict=True):
        closes_at = min(time + final_after_ms, MAX_MS)
        waits = timed.sends_nulls or not is_null if is_buffer else closes_at > clocks.get(partition, UNKNOWN)
        if waits:
            yield partition, None if start is None else (start, end), closes_at
