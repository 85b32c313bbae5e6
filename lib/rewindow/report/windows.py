"""The results that are not final, and why: what a final run would emit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewindow.report.figures import OpenWindow, OpenWindows
from rewindow.report.material import Columns, Material
from rewindow.report.nodes import TimedNode, timed_nodes, waiting_joins
from rewindow.report.text import asked, counted, instant
from rewindow.streams.duration import in_words
from rewindow.streams.record import MAX_MS, UNKNOWN, known_time
from rewindow.streams.semantics import StreamTimeFrom
from rewindow.streams.serde.meta_columns import PARTITION
from rewindow.streams.serde.schema import has_bounds

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


def why_open(material: Material, timed: TimedNode, closes_at: int, clocks: Mapping[int, int]) -> str:
    """Return what the clocks of a node wait for, in a sentence."""
    partition, clock = min(clocks.items(), key=lambda item: item[1])
    if clock == UNKNOWN:
        at = f"No record has reached {timed.node} in partition {partition} yet"
    else:
        at = f"The clock of {timed.node} in partition {partition} is at {instant(clock)}, {in_words(closes_at - clock)} short"
    return f"{at}. {_held_back(material, timed, partition, closes_at)}"


def _held_back(material: Material, timed: TimedNode, partition: int, closes_at: int) -> str:
    if not material.is_newest:
        return "Later runs have taken later records"
    landings, taken = material.feed.landings, material.head.spec.input.last
    if len(landings) > taken and landings[-1].watermark_ms >= closes_at:
        command = asked(material.head.spec.job, material.branch.name)
        waiting = len(landings) - taken
        if not timed.sub_topology and not follows_watermark(material):
            waiting = _reaching(material, timed, partition, closes_at)
        what = f"{counted(waiting, 'landing')} that {'reaches' if waiting == 1 else 'reach'} it"
        if waiting:
            return f"{what} {'waits' if waiting == 1 else 'wait'} to be replayed: `rewindow run {command}`"
        taken = len(landings)
    newest = {
        topic_partition: landed.max_timestamp
        for topic_partition, landed in (landings[taken - 1].ranges.items() if 0 < taken <= len(landings) else ())
        if landed.max_timestamp >= 0
    }
    if not newest or (timed.sub_topology and not follows_watermark(material)):
        return "It advances with later records"
    last = landings[taken - 1]
    slowest, at = next(iter(material.slowest(taken).items()))
    waits = (
        f"the feed's watermark waits for {slowest.topic}-{slowest.partition}, whose newest record is at {instant(at)}"
    )
    if max(newest.values()) < closes_at:
        none = f"No record that late has been landed: the newest one is at {instant(max(newest.values()))}"
        is_waiting = last.watermark_ms == at - material.rules.lag_ms < max(newest.values()) - material.rules.lag_ms
        if is_waiting and not last.held_ms and follows_watermark(material):
            return f"{none}. Later ones alone do not advance the clock, because {waits}. {what_moves(material, by_feed=True)}"
        if not last.held_ms or not follows_watermark(material):
            return none
        below = f"{in_words(last.held_ms)} below that of the job that makes its records, which may hold them back for so long"
        return f"{none}. The feed's watermark is at {instant(last.watermark_ms)}, {below}"
    if last.held_ms and last.watermark_ms < closes_at:
        held = f"the job that makes its records may hold them back for {in_words(last.held_ms)}"
        return f"The feed's watermark is at {instant(last.watermark_ms)}, because {held}"
    if max(newest.values()) - material.rules.lag_ms < closes_at:
        return f"The feed's watermark is `lag: {in_words(material.rules.lag_ms)}` behind its newest record"
    mine = max((time for one, time in newest.items() if timed.reads(one, partition)), default=UNKNOWN)
    if not follows_watermark(material) and closes_at <= mine <= last.watermark_ms:
        return (
            f"The newest record of partition {partition} is at {instant(mine)}, but did not reach {timed.node}: an operator "
            f"before it filters or changes such records. {what_moves(material)}"
        )
    if follows_watermark(material) or mine >= closes_at:
        return f"{waits[0].upper()}{waits[1:]}. {what_moves(material, by_feed=True)}"
    last_one = "and none was landed" if mine == UNKNOWN else f"the newest of which is at {instant(mine)}"
    return (
        f"Only records of partition {partition} advance it, {last_one}, while another partition is later. "
        f"{what_moves(material)}"
    )


def _reaching(material: Material, timed: TimedNode, partition: int, closes_at: int) -> int:
    """Return how many landings that are not taken have records for a node's partition; 0 if these do not reach a time."""
    waiting = material.feed.landings[material.head.spec.input.last :]
    mine = [[landed for one, landed in landing.ranges.items() if timed.reads(one, partition)] for landing in waiting]
    if max((landed.max_timestamp for landed in mine[-1]), default=UNKNOWN) < closes_at:
        return 0
    return sum(any(landed.end > landed.start for landed in ranges) for ranges in mine)


def follows_watermark(material: Material) -> bool:
    """Return whether the feed's watermark moves the clocks of the job, besides records."""
    return material.head.spec.binding.semantics.get("stream_time_from") == StreamTimeFrom.WATERMARK.value


def what_moves(material: Material, *, by_feed: bool = False) -> str:
    """Return what makes results final that wait for a partition without records.

    ``by_feed``: the feed's watermark waits for it, too.
    """
    if by_feed:
        feed = material.feed.definition.feed
        return (
            "`max_task_idle: 2h`, or another duration, in the feed's file lets its watermark pass a partition that has been "
            f"silent for that long, from the next `rewindow land {feed}` on"
        )
    return (
        "`semantics: {stream_time_from: watermark}` in the job's file lets the feed's watermark advance its clock, from the "
        "next landing on. That is a change, which the next run takes with `--accept-changes`"
    )
