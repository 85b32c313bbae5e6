"""Describe a plan and runs on hold, as text and as JSON values. Pure.

The text of a plan says what would run and why, and which landings and records wait. The text of a run on hold says which
expectation it does not meet, and which commands publish or remove the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rewindow.contracts.instants import instant
from rewindow.control.health.holds import explain_holds, explain_lag
from rewindow.control.health.inputs import Inputs, not_taken
from rewindow.control.health.job_health import job_health
from rewindow.control.health.phrases import counted, waits
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_diff import changes_since
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import JobBinding, RunSpec
from rewindow.streams.punctuation import UNALIGNED
from rewindow.streams.record import known_time

_MOST_EPOCHS, _AT_EACH_END = 12, 3
"""If a plan has more epochs than the first number, only the first and last epochs are printed. The second number says how
many."""
_MOST_PARTITIONS = 8
"""A printed plan shows the offsets of an epoch in at most this many partitions."""


def describe_plan(
    state: JobState, feed: Feed, decision: RunSpec | UpToDate, branch: str, binding: JobBinding
) -> dict[str, Any]:
    """Return a decision as JSON values. Runs appear by name.

    * ``epochs``: each with its watermark (epoch ms) and the offsets ``[start, end)`` of each topic-partition.
    * ``held``: landed records that the feed's watermark holds back, by topic-partition.
    * ``pending``: a plan that is not committed. ``ledger_row``: the row of the plan in the runs ledger.
    * ``waiting``: landings that are left for later runs.
    * ``changed``: how the job differs from the branch's checkpoint. The next run accepts these changes; otherwise planning
      fails.
    * ``on_hold``: committed runs that are not published. The next run would be published after them.
    """
    chain = state.branch(branch)
    health = job_health(Inputs(chain, feed, chain.runs), state)
    reason = decision.reason if isinstance(decision, UpToDate) else None
    last = decision.input.last if isinstance(decision, RunSpec) else chain.last_epoch
    return {
        "branch": branch,
        "feed": feed.definition.feed,
        "generation": feed.definition.generation,
        "landings": len(feed.landings),
        "committed_through": chain.last_epoch,
        "changed": changes_since(chain, binding),
        "run": _describe_run(state, decision) if isinstance(decision, RunSpec) else None,
        "reason": reason,
        "reason_code": reason.code if reason else None,
        "epochs": [_describe_epoch(feed, epoch) for epoch in decision.epochs] if isinstance(decision, RunSpec) else [],
        "waiting": list(not_taken(feed, last)),
        "held": [asdict(held) for held in health.held],
        "pending": _describe_run(state, chain.pending) if chain.pending else None,
        "sealed": health.is_sealed,
        "on_hold": list(health.on_hold),
    }


def explain(plan: dict[str, Any]) -> list[str]:
    """Return the lines that describe a plan from `describe_plan`."""
    lines = []
    run = plan["run"]
    if run is None:
        lines.append(f"Nothing to run: {plan['reason']}.")
        if plan["changed"] and not plan["sealed"]:
            lines.append(
                "The job has changed since the branch's checkpoint. The next run that takes a landing accepts that:"
            )
            lines += [f"  - {line}" for line in plan["changed"]]
    else:
        first, last = run["first_epoch"], run["last_epoch"]
        epochs = f"epoch {first}" if first == last else f"epochs {first} to {last}" if plan["epochs"] else "no epoch"
        origin = f"continues from run {run['parent']}" if run["parent"] is not None else "starts the branch"
        lines.append(
            f"Run {run['name']} takes {epochs} of feed {plan['feed']!r} (generation {plan['generation']}) and {origin}."
        )
        if run["takes_over"] is not None:
            lines.append("  It completes the plan of an attempt that did not finish, with the same epochs and clock.")
        if run["final"]:
            lines.append("  It is final: it closes every open window and seals the branch.")
        if run["accepted"]:
            lines += ["  It accepts what has changed since that run:", *(f"    - {line}" for line in run["accepted"])]
    lines += _explain_epochs(plan["epochs"])
    if plan["waiting"]:
        first, last = plan["waiting"][0], plan["waiting"][-1]
        left = f"Landing {first} is" if first == last else f"Landings {first} to {last} are"
        lines.append(f"{left} left for a later run.")
    for held in plan["held"]:
        where = f"{held['topic']}-{held['partition']}"
        newest = instant(held["until_ms"])
        wait = waits(held["records"], "record")
        lines.append(f"{where}: {wait} for the watermark to pass; the newest is at {newest}.")
    lines += [f"{stalled['what']}. {stalled['fix']}." for stalled in plan.get("silent", ())]
    lines += [f"Not known ({unknown['about']}): {unknown['reason']}." for unknown in plan.get("unknown", ())]
    pending = plan["pending"]
    if pending is not None:
        process = f"process {pending['pid']} on {pending['host'] or 'this host'}"
        is_replaced = run is not None and run["takes_over"] is None
        then = "This run replaces it" if is_replaced else "Nothing of it counts yet"
        lines.append(f"Run {pending['name']} was planned by {process} and is not committed. {then}.")
    lines += [f"{plan['ended']}."] if plan.get("ended") else []
    if plan.get("unaligned_schedules"):
        lines.append(f"{UNALIGNED}: {', '.join(plan['unaligned_schedules'])}.")
    lines += explain_holds(plan["on_hold"])
    lines += [f"{hint}." for hint in plan.get("undeclared", ())]
    return [*lines, *explain_lag(plan.get("lagging", {}), "The next run")]


def _explain_epochs(epochs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of some epochs. If there are many, the epochs in the middle share one line."""
    if len(epochs) > _MOST_EPOCHS:
        left_out = epochs[_AT_EACH_END:-_AT_EACH_END]
        records = sum(epoch["records"] for epoch in left_out)
        between = f"  epochs {left_out[0]['epoch']} to {left_out[-1]['epoch']}: {counted(records, 'record')}"
        return [*_explain_epochs(epochs[:_AT_EACH_END]), between, *_explain_epochs(epochs[-_AT_EACH_END:])]
    lines = []
    for epoch in epochs:
        through = instant(epoch["watermark_ms"], "no time yet")
        lines.append(f"  epoch {epoch['epoch']}: {counted(epoch['records'], 'record')}, complete through {through}")
        lines += [f"    {_offsets(epoch['offsets'])}"] if epoch["offsets"] else []
    return lines


def _offsets(taken: Sequence[Mapping[str, Any]]) -> str:
    """Return one line with the offsets that an epoch reads from each partition."""
    shown = [
        f"{tp['topic']}-{tp['partition']} {tp['start']}"
        + (f" to {tp['end'] - 1}" if tp["end"] > tp["start"] + 1 else "")
        for tp in taken[:_MOST_PARTITIONS]
    ]
    more = len(taken) - len(shown)
    return f"offsets: {', '.join(shown)}{f', and {more} more partitions' if more else ''}"


def _describe_run(state: JobState, spec: RunSpec) -> dict[str, Any]:
    pending = state.branch(spec.branch).pending
    taken = pending if pending and pending.run == spec.takes_over else None
    parent = state.find_run(spec.parent) if spec.parent is not None else None
    return {
        "name": spec.name,
        "ledger_row": spec.run,
        "parent": parent.spec.name if parent else None,
        "first_epoch": spec.input.first,
        "last_epoch": spec.input.last,
        "final": spec.final,
        "accepted": list(spec.accepted),
        "generation": spec.input.generation,
        "takes_over": taken.name if taken else None,
        "clock_from_ms": known_time(spec.input.clock_from_ms),
        "clock_to_ms": known_time(spec.input.clock_to_ms),
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
        "watermark_ms": known_time(landing.watermark_ms),
        "records": sum(end - start for _, start, end in bounds),
        "offsets": offsets,
    }
