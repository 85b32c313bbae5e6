"""The runs of a branch that are on hold, and the commits that its tables lack, with the wording of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.control.health.phrases import command_words, counted
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import BEGINNING
from rewindow.errors import ReasonMessage

Hold = Mapping[str, Any]
"""A run on hold as JSON values; see `describe_holds`."""
UNFINISHED = ReasonMessage("attempt-unfinished", "an attempt did not finish: the next run completes it")


def lag_words(lagging: Mapping[str, int], unit: str = "commit") -> str:
    """Return how many commits, or landings, each table lacks, such as ``output/totals by 1 commit``."""
    return ", ".join(f"{target} by {counted(count, unit)}" for target, count in lagging.items())


def explain_lag(lagging: Mapping[str, int], who: str) -> list[str]:
    """Return the lines that describe tables without the latest commits.

    ``who`` will publish these commits, such as "The next run".
    """
    return [f"Tables lag behind the ledger: {lag_words(lagging)}. {who} publishes them."] if lagging else []


def describe_holds(state: JobState, branch: str) -> list[dict[str, Any]]:
    """Return the runs of a branch that are on hold, in order, as JSON values. The first of them must be published first.

    ``unmet``: the expectations that the run does not meet, as sentences. ``behind``: the later runs, which cannot be published
    before this run. ``before``: the run before this run, None for the beginning. ``accept`` and ``remove``: the commands that
    publish or remove this run.
    """
    runs, described = state.branch(branch).runs, []
    for run in state.on_hold(branch):
        index, job = state.branch(branch).index_of(run.spec.run) or 1, command_words(run.spec.job, branch)
        before = runs[index - 2].spec.name if index > 1 else None
        described.append(
            {
                "job": run.spec.job,
                "branch": branch,
                "run": run.spec.name,
                "unmet": [unmet.sentence for unmet in run.commit.held_by],
                "behind": [later.spec.name for later in runs[index:]],
                "before": before,
                "accept": f"rewindow publish {job} --accept --run {run.spec.name}",
                "remove": f"rewindow rewind {job} --to {before or BEGINNING}",
            }
        )
    return described


def explain_holds(holds: Sequence[Hold]) -> list[str]:
    """Return the lines that describe runs on hold. Only the first of these runs can be published now."""
    if not holds:
        return []
    hold, *others = holds
    lines = [
        f"Run {hold['run']} is on hold, so its rows are not published:",
        *(f"  - {unmet}" for unmet in hold["unmet"]),
    ]
    held = {other["run"] for other in others}
    behind = [f"{run} (on hold, too)" if run in held else run for run in hold["behind"]]
    if behind:
        lines.append(f"  Behind it, and not published either: {', '.join(behind)}.")
    return [*lines, f"  Publish it: `{hold['accept']}`. Or remove it: `{hold['remove']}`."]
