"""Results that wait for a partition to which no records come, although the feed is past the time at which they are final.

It is told from the clocks and buffers that the tasks of the last run reported. No store is read, so a result counts only when all
that its partition has let in would be final.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewindow.report.held_back import follows_watermark, what_moves
from rewindow.report.material import Material
from rewindow.report.nodes import TimedNode, timed_nodes
from rewindow.report.text import counted, instant
from rewindow.report.windows import clocks_of
from rewindow.streams.record import UNKNOWN, TopicPartition

_MOST_NAMED = 5
"""So many partitions are named."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Results of a node that wait for silent partitions, with the time of the newest record of each (ms).

    ``results`` is None if the node does not say how many. ``behind_ms``: how far the feed is beyond the earliest of these
    records. With ``is_filtered``, a partition has newer records, but an operator before the node filters or changes them.
    """

    node: str
    results: int | None
    newest_ms: Mapping[str, int]
    behind_ms: int
    fix: str
    is_filtered: bool

    @property
    def since_ms(self) -> int:
        """The earliest time of a newest record."""
        return min(self.newest_ms.values())

    @property
    def what(self) -> str:
        """What waits, as a sentence without its full stop. Each partition has its time if they differ."""
        count = "results" if self.results is None else counted(self.results, "result")
        verb = "waits" if self.results == 1 else "wait"
        shown = [*self.newest_ms.items()][:_MOST_NAMED]
        more = f" and {len(self.newest_ms) - len(shown)} more" if len(self.newest_ms) > len(shown) else ""
        told = "no record after {} reached it" if self.is_filtered else "silent since {}"
        if len({time for _, time in shown}) > 1:
            named = ", ".join(f"{name} ({told.format(instant(time))})" for name, time in shown) + more
        else:
            of = "of which " if self.is_filtered else ""
            named = f"{', '.join(name for name, _ in shown)}{more}, {of}{told.format(instant(self.since_ms))}"
        return f"{count} of {self.node} {verb} for {named}"

    def __str__(self) -> str:
        """Return what waits and what helps, as sentences without the last full stop."""
        return f"{self.what}. {self.fix}"

    def as_json(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {
            "node": self.node,
            "results": self.results,
            "partitions": list(self.newest_ms),
            "since_ms": self.since_ms,
            "behind_ms": self.behind_ms,
            "fix": self.fix,
            "what": self.what,
        }


def silent_partitions(material: Material, *, will_follow: bool = False) -> list[Silent]:
    """Return the results after the branch's last run that neither a run nor a landing of the other partitions makes final.

    ``will_follow``: the job's file now lets the feed's watermark move its clocks, from the next run on.
    """
    landings = material.feed.landings
    if material.head.spec.final or not material.is_newest or not landings:
        return []
    waiting: dict[tuple[str, bool], list[_Waiting]] = {}
    newest = max(material.newest.values(), default=UNKNOWN)
    watermark = landings[-1].watermark_ms
    behind_ms = max(material.rules.lag_ms, landings[-1].held_ms)
    follows = will_follow or follows_watermark(material)
    is_taken = len(landings) == material.branch.last_epoch
    for timed in timed_nodes(material.head.spec.binding.topology):
        for partition, clock in sorted(clocks_of(material, timed).items()) if timed.final_after_ms is not None else ():
            results, final_ms = _results(material, timed, partition), timed.all_final_at(clock)
            own_ms = _own_time(material, timed, partition, clock)
            if clock == UNKNOWN or own_ms is None or results == 0 or newest - behind_ms < final_ms:
                continue
            # Records of its own that would make the results final may wait for the watermark, too.
            is_held = watermark < final_ms or (not follows and is_taken and own_ms > watermark)
            by_feed = is_held and bool(material.waits_for)
            by_job = not follows and own_ms < final_ms
            if by_feed or by_job:
                at = TopicPartition(timed.topics[0] if timed.topics else timed.node, partition)
                is_filtered = own_ms < material.newest_read(timed, partition)
                found = _Waiting(at, own_ms, results, is_filtered, by_job)
                waiting.setdefault((timed.node, by_feed), []).append(found)
    return [_silent(material, *key, partitions, newest) for key, partitions in waiting.items()]


class _Waiting(NamedTuple):
    """Results of one partition, and the newest of its records that reached the node.

    ``by_job``: only records of the partition itself move the node's clock, and none is late enough.
    """

    at: TopicPartition
    newest_ms: int
    results: int | None
    is_filtered: bool
    by_job: bool


def _silent(
    material: Material,
    node: str,
    by_feed: bool,  # noqa: FBT001 - part of a key
    waiting: Sequence[_Waiting],
    newest: int,
) -> Silent:
    counts = [one.results for one in waiting if one.results is not None]
    results = sum(counts) if len(counts) == len(waiting) else None
    silent = material.waits_for if by_feed else {one.at: one.newest_ms for one in waiting}
    times = {f"{one.topic}-{one.partition}": silent[one] for one in sorted(silent)}
    fix = what_moves(material, by_feed=by_feed, by_job=any(one.by_job for one in waiting))
    is_filtered = not by_feed and any(one.is_filtered for one in waiting)
    return Silent(node, results, times, newest - min(times.values()), fix, is_filtered)


def _results(material: Material, timed: TimedNode, partition: int) -> int | None:
    """Return how many results a partition of a node holds; None if it does not say."""
    state = material.tasks.get((timed.sub_topology, partition), {})
    held: Mapping[str, int] = state.get("held", {})
    return held.get(timed.store, 0) if timed.kind == "buffer" else None


def _own_time(material: Material, timed: TimedNode, partition: int, clock: int) -> int | None:
    """Return the time to which the records of a node's partition bring its clock; None if only a run tells."""
    if not timed.sub_topology:
        newest = material.newest_read(timed, partition)
        # A record that was taken has brought the clock to where it is; it may have been filtered before the node.
        return max(clock, newest) if newest > material.head.commit.watermark_ms else clock
    return None if len(material.feed.landings) > material.branch.last_epoch else clock
