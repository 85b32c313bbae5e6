"""Describe runs on hold: what they do not meet, and what publishes or removes them, as text and as JSON values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.control.plan.branch_decisions import BEGINNING
from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import MAIN

Hold = Mapping[str, Any]
"""A run on hold as JSON values; see `describe_holds`."""


def describe_holds(state: JobState, branch: str) -> list[dict[str, Any]]:
    """Return the runs of a branch itself that are on hold as JSON values, the one that publishing waits for first.

    ``unmet``: the expectations that hold it, as sentences. ``behind``: the later runs that wait behind it. ``before``: the run
    to which a rewind removes it; None for the beginning. ``accept`` and ``remove`` are the commands that publish and remove it.
    """
    option = "" if branch == MAIN else f" --branch {branch}"
    known = state.branch(branch)
    held = state.on_hold(branch)
    described = []
    for run in held:
        index = known.index_of(run.spec.run) or 1
        before, job = known.runs[index - 2].spec.name if index > 1 else None, run.spec.job
        described.append(
            {
                "job": job,
                "branch": branch,
                "run": run.spec.name,
                "unmet": [one.told for one in run.commit.held_by],
                "behind": [one.spec.name for one in known.runs[index:]],
                "before": before,
                "accept": f"rewindow publish {job}{option} --accept --run {run.spec.name}",
                "remove": f"rewindow rewind {job}{option} --to {before or BEGINNING}",
            }
        )
    return described


def explain_holds(holds: Sequence[Hold]) -> list[str]:
    """Return the lines that present runs on hold. Only the first one can be published now."""
    if not holds:
        return []
    first, *others = holds
    lines = [
        f"Run {first['run']} is on hold, so its rows are not published:",
        *(f"  - {one}" for one in first["unmet"]),
    ]
    held = {one["run"] for one in others}
    behind = [f"{run} (on hold, too)" if run in held else run for run in first["behind"]]
    if behind:
        lines.append(f"  Behind it, and not published either: {', '.join(behind)}.")
    return [*lines, f"  Publish it: `{first['accept']}`. Or remove it: `{first['remove']}`."]
