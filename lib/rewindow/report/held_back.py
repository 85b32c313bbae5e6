"""Why the clock of a node is not further: landings to replay, records that were not landed, the watermark, or a partition."""

from __future__ import annotations

from collections.abc import Mapping

from rewindow.report.material import Material
from rewindow.report.nodes import TimedNode
from rewindow.report.text import asked, counted, instant
from rewindow.streams.duration import in_words
from rewindow.streams.record import UNKNOWN
from rewindow.streams.settings import StreamTimeFrom


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
        waiting = _reaching(material, timed, partition, closes_at)
        if waiting:
            what = f"{counted(waiting, 'landing')} that {'reaches it waits' if waiting == 1 else 'reach it wait'}"
            return f"{what} to be replayed: `rewindow run {asked(material.head.spec.job, material.branch.name)}`"
    if not material.newest or (timed.sub_topology and not follows_watermark(material)):
        return "It advances with later records"
    if max(material.newest.values()) < closes_at:
        return _not_landed(material)
    mine = material.newest_read(timed, partition)
    return _held_by_watermark(material, mine, closes_at) or _held_by_partition(
        material, timed, partition, mine, closes_at
    )


def _reaching(material: Material, timed: TimedNode, partition: int, closes_at: int) -> int:
    """Return how many landings to replay advance a node's clock in a partition; 0 if they do not advance it far enough."""
    waiting = material.feed.landings[material.head.spec.input.last :]
    if timed.sub_topology or follows_watermark(material):
        return len(waiting)
    mine = [[landed for one, landed in landing.ranges.items() if timed.reads(one, partition)] for landing in waiting]
    if max((landed.max_timestamp for landed in mine[-1]), default=UNKNOWN) < closes_at:
        return 0
    return sum(any(landed.end > landed.start for landed in ranges) for ranges in mine)


def _not_landed(material: Material) -> str:
    """Return why no record is late enough, and why later ones may not help."""
    none = f"No record that late has been landed: the newest one is at {instant(max(material.newest.values()))}"
    if not follows_watermark(material):
        return none
    landing, waits = material.feed.landings[-1], waited_for(material)
    if landing.held_ms:
        below = f"{in_words(landing.held_ms)} below that of the job that makes its records, which may hold them back for so long"
        return f"{none}. The feed's watermark is at {instant(landing.watermark_ms)}, {below}"
    if waits:
        later = f"Later ones alone do not advance the clock, because the feed's watermark {waits}"
        return f"{none}. {later}. {what_moves(material, by_feed=True)}"
    return none


def _held_by_watermark(material: Material, mine: int, closes_at: int) -> str | None:
    """Return what the feed's watermark waits for, although there are later records; None if it does not hold the clock.

    ``mine`` is the time of the newest record that advances the clock.
    """
    landing, lag_ms, waits = material.feed.landings[-1], material.rules.lag_ms, waited_for(material)
    if landing.held_ms and landing.watermark_ms < closes_at:
        held = f"the job that makes its records may hold them back for {in_words(landing.held_ms)}"
        return f"The feed's watermark is at {instant(landing.watermark_ms)}, because {held}"
    if max(material.newest.values()) - lag_ms < closes_at:
        return f"The feed's watermark is `lag: {in_words(lag_ms)}` behind its newest record"
    is_held = follows_watermark(material) or mine >= max(closes_at, landing.watermark_ms + 1)
    if is_held and not waits:
        return f"The feed's watermark is at {instant(landing.watermark_ms)}, and later records wait for it"
    if is_held:
        return f"The feed's watermark {waits}. {what_moves(material, by_feed=True)}"
    return None


def _held_by_partition(material: Material, timed: TimedNode, partition: int, mine: int, closes_at: int) -> str:
    """Return why the records of its own partition do not advance the clock, in a job whose clocks follow records."""
    if mine >= closes_at:
        why = (
            f"The newest record of partition {partition} is at {instant(mine)}, but did not reach {timed.node}: an operator "
            "before it filters or changes such records"
        )
    else:
        last = "and none was landed" if mine == UNKNOWN else f"the newest of which is at {instant(mine)}"
        why = f"Only records of partition {partition} advance it, {last}, while another partition is later"
    is_stuck = bool(material.waits_for) and material.feed.landings[-1].watermark_ms < closes_at
    return f"{why}. {what_moves(material, by_feed=is_stuck, by_job=True)}"


def waited_for(material: Material) -> str:
    """Return the first partition that the feed's watermark waits for, as "waits for ..."; empty if it waits for none."""
    for one, at in material.waits_for.items():
        return f"waits for {one.topic}-{one.partition}, whose newest record is at {instant(at)}"
    return ""


def follows_watermark(material: Material) -> bool:
    """Return whether the feed's watermark moves the clocks of the job, besides records."""
    return material.head.spec.binding.semantics.get("stream_time_from") == StreamTimeFrom.WATERMARK.value


def what_moves(material: Material, *, by_feed: bool = False, by_job: bool = False) -> str:
    """Return what makes results final that wait for a partition without records, as sentences without the last full stop.

    ``by_feed``: the feed's watermark waits for it. ``by_job``: the job's clock follows its records only.
    """
    steps = []
    if by_feed:
        feed = material.feed.definition.feed
        steps.append(
            "`max_task_idle: 2h`, or another duration, in the feed's file lets its watermark pass a partition that has been "
            f"silent for that long, from the next `rewindow land {feed}` on"
        )
    if by_job:
        steps.append(
            "`semantics: {stream_time_from: watermark}` in the job's file lets the feed's watermark advance its clock, from the "
            "next landing on. That is a change, which the next run takes with `--accept-changes`"
        )
    return ". ".join(steps)
