"""What would run and why, and what waits for what: for people, and as plain data for ``--json``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branches import JobState
from rewindow.control.plan.job_diff import changes_since
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import JobBinding, RunSpec
from rewindow.streams.record import MAX_MS, TopicPartition


def describe_plan(
    state: JobState, feed: Feed, decision: RunSpec | UpToDate, branch: str, binding: JobBinding
) -> dict[str, Any]:
    """Return a decision as plain data.

    ``epochs``: each with its watermark (epoch ms) and the offsets ``[start, end)`` of each topic-partition.
    ``held``: records landed but above the feed's watermark, by topic-partition. ``pending``: an attempt that did not
    commit. ``waiting``: landings of the feed that the run leaves for later. ``changed``: how the job differs from what
    made the branch's checkpoint, which refuses its next run. Runs are called by their names, ``id`` is a ledger number.
    """
    known = state.branch(branch)
    is_run = isinstance(decision, RunSpec)
    last = decision.last_epoch if isinstance(decision, RunSpec) else known.last_epoch
    return {
        "branch": branch,
        "feed": feed.definition.feed,
        "generation": feed.definition.generation,
        "landings": len(feed.landings),
        "committed_through": known.last_epoch,
        "changed": changes_since(known, binding),
        "run": _describe_run(state, decision) if isinstance(decision, RunSpec) else None,
        "reason": None if is_run else getattr(decision, "reason", None),
        "epochs": [_describe_epoch(feed, epoch) for epoch in decision.epochs] if isinstance(decision, RunSpec) else [],
        "waiting": list(range(last + 1, len(feed.landings) + 1)),
        "held": _held(feed),
        "pending": _describe_run(state, known.pending) if known.pending else None,
        "sealed": known.is_sealed,
    }


def explain(plan: dict[str, Any]) -> list[str]:
    """Return the lines that tell a person what `describe_plan` found."""
    lines = []
    run = plan["run"]
    if run is None:
        lines.append(f"Nothing to run: {plan['reason']}.")
        if plan["changed"]:
            lines.append("The job is not what made the branch's checkpoint: its next run will be refused (76).")
            lines += [f"  - {line}" for line in plan["changed"]]
    else:
        epochs = f"epochs {run['first_epoch']} to {run['last_epoch']}" if plan["epochs"] else "no epoch"
        origin = f"goes on from run {run['parent']}" if run["parent"] is not None else "begins the branch"
        lines.append(
            f"Run {run['name']} takes {epochs} of feed {plan['feed']!r} (generation {plan['generation']}); it {origin}."
        )
        if run["takes_over"] is not None:
            lines.append("  It does again what an attempt that died had planned: same epochs, same clock.")
        if run["final"]:
            lines.append("  It is final: after its last epoch every window closes, and the branch is sealed.")
    for epoch in plan["epochs"]:
        lines.append(
            f"  epoch {epoch['epoch']}: {epoch['records']} records, complete through {when(epoch['watermark_ms'])}"
        )
        lines += [
            f"    {tp['topic']}-{tp['partition']}: offsets {tp['start']} to {tp['end'] - 1}" for tp in epoch["offsets"]
        ]
    if plan["waiting"]:
        lines.append(f"Landed and left for a later run: landings {plan['waiting'][0]} to {plan['waiting'][-1]}.")
    for held in plan["held"]:
        where = f"{held['topic']}-{held['partition']}"
        newest = when(held["until_ms"])
        lines.append(
            f"{where}: {held['records']} records wait behind one above the watermark; the newest is of {newest}."
        )
    pending = plan["pending"]
    if pending is not None:
        who = f"process {pending['pid']} on {pending['host'] or 'this host'}"
        lines.append(f"Run {pending['name']} was planned by {who} and is not committed.")
    return lines


def when(time_ms: int) -> str:
    """Return a time (epoch ms) for people, in UTC."""
    if time_ms < 0:
        return "no time yet"
    if time_ms == MAX_MS:
        return "the end of time"
    try:
        return (
            datetime.fromtimestamp(time_ms / 1000, UTC)
            .isoformat(sep=" ", timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


def _describe_run(state: JobState, spec: RunSpec) -> dict[str, Any]:
    parent = state.find_run(spec.parent) if spec.parent is not None else None
    return {
        "name": spec.name,
        "id": spec.run,
        "parent": parent.spec.name if parent else None,
        "first_epoch": spec.first_epoch,
        "last_epoch": spec.last_epoch,
        "final": spec.final,
        "generation": spec.generation,
        "takes_over": spec.takes_over,
        "clock_from_ms": spec.clock_from_ms,
        "clock_to_ms": spec.clock_to_ms,
        "host": spec.attempt.host,
        "pid": spec.attempt.pid,
    }


def _describe_epoch(feed: Feed, epoch: int) -> dict[str, Any]:
    landing = feed.landings[epoch - 1]
    bounds = [(tp, *feed.epoch_range(epoch, tp)) for tp in sorted(landing.ranges)]
    offsets = [
        {"topic": tp.topic, "partition": tp.partition, "start": start, "end": end}
        for tp, start, end in bounds
        if end > start
    ]
    return {
        "epoch": epoch,
        "watermark_ms": landing.watermark_ms,
        "records": sum(end - start for _, start, end in bounds),
        "offsets": offsets,
    }


def _held(feed: Feed) -> list[dict[str, Any]]:
    if not feed.landings:
        return []
    ranges = feed.landings[-1].ranges
    return [
        {"topic": tp.topic, "partition": tp.partition, "records": ranges[tp].end - ranges[tp].release}
        | {"until_ms": ranges[tp].max_timestamp}
        for tp in sorted(ranges, key=_by_name)
        if ranges[tp].end > ranges[tp].release
    ]


def _by_name(topic_partition: TopicPartition) -> tuple[str, int]:
    return topic_partition.topic, topic_partition.partition
