"""The suite of the model: the bounds of each search, and the faults in the model and in the production fold that it must find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from tests.crash.forks import side_by_side
from tests.crash.interleavings import Bounds, Model
from tests.crash.rewriting import Rewrite
from tests.crash.settings import Figures, Settings

BOUNDS = {
    "two runners, two crashes, a late append": Bounds(epochs=3, runs=4, crashes=2, late=1, attempts=3),
    "a rewind beside runs, a late append": Bounds(runs=4, rewinds=1, crashes=1, late=1),
    "two rewinds and a late append": Bounds(runs=3, rewinds=2, crashes=1, late=1),
    "a branch, promoted beside runs": Bounds(runs=4, branches=1, promotes=1, crashes=1),
    "a branch, promoted and rewound": Bounds(runs=3, branches=1, promotes=1, rewinds=1, crashes=0),
    "a janitor beside runs": Bounds(runs=4, janitors=2, crashes=1),
    "a janitor, a rewind and a late append": Bounds(runs=3, rewinds=1, janitors=2, late=1),
    "a janitor, a branch and a promotion": Bounds(runs=3, branches=1, promotes=1, janitors=2, crashes=0),
    "a run on hold, accepted beside runs": Bounds(runs=4, holds=1, accepts=1, crashes=1, late=1),
    "two runs on hold and a rewind": Bounds(runs=4, holds=2, accepts=2, rewinds=1, crashes=0),
    "a run on hold, a branch and a promotion": Bounds(runs=3, holds=1, accepts=1, branches=1, promotes=1, crashes=0),
    "three runners": Bounds(processes=3, runs=4, crashes=1, attempts=2),
    "three runners and a rewind": Bounds(processes=3, runs=3, rewinds=1, crashes=1, attempts=1),
}

FAULTS = {
    "appends blindly": Bounds(runs=3),
    "presses through": Bounds(runs=3),
    "publishes before its COMMIT": Bounds(runs=2),
    "stages again": Bounds(runs=2),
    "does not look before its COMMIT": Bounds(runs=3),
    "publishes the newest": Bounds(runs=3, rewinds=2),
    "puts blindly": Bounds(runs=2),
}

REWRITTEN = {
    "a rewind forgets to fence": (
        Bounds(runs=4, rewinds=1, attempts=3),
        Rewrite("control.plan.job_fold:_fold_rewind", ", pending=None", ""),
    ),
    "a fenced plan counts as pending": (
        Bounds(runs=3),
        Rewrite(
            "control.plan.job_state:JobState.is_pending",
            "return pending is not None and (",
            "return pending is None or (",
        ),
    ),
    "what a branch stands on is forgotten": (
        Bounds(processes=1, runs=3, janitors=2, crashes=0, attempts=4),
        Rewrite("control.plan.retention:decide_forget", "and run not in kept and", "and"),
    ),
    "a branch begins where the state was forgotten": (
        Bounds(processes=1, runs=3, janitors=2, branches=1, crashes=0, attempts=4),
        Rewrite(
            "control.plan.branch_decisions:decide_branch",
            "check_has_state(state, base.spec.run if base else None)",
            "pass",
        ),
    ),
    "runs behind one on hold are published": (
        Bounds(runs=3, holds=1, crashes=0),
        Rewrite("control.plan.job_fold:_with_run", "run.commit.holds or branch.unpublished", "run.commit.holds"),
    ),
    "accepting one run releases all": (
        Bounds(runs=3, holds=2, accepts=1, crashes=0),
        Rewrite("control.plan.job_fold:_released", "break", "pass"),
    ),
    "a rewind keeps what waited": (
        Bounds(runs=3, holds=1, rewinds=1, crashes=0),
        Rewrite("control.plan.job_fold:_with_change", "run.spec.run in kept", "True"),
    ),
    "a promotion forgets what it takes out": (
        Bounds(processes=1, runs=4, branches=1, promotes=1, crashes=0, attempts=4),
        Rewrite("control.plan.job_fold:_fold_promote", ", removes=into.runs[common:]", ""),
    ),
}
"""Faults in the production fold."""


def suite(settings: Settings) -> Figures:
    """Explore all bounds, and check that each fault is found. ``quick``: explore only two runs without a crash."""
    figures = Figures("model")
    seconds = 5.0 if settings.quick else 600.0
    chosen = {"two runs": Bounds(crashes=0)} if settings.quick else BOUNDS
    states, exhaustive, survivors = 0, [], []
    jobs = [partial(_explored, name, bounds, (), seconds) for name, bounds in chosen.items()]
    jobs += [partial(_explored, fault, bounds, (fault,), seconds) for fault, bounds in FAULTS.items()]
    jobs += [partial(_explored, fault, bounds, (), seconds, rewrite) for fault, (bounds, rewrite) in REWRITTEN.items()]
    faults = [*FAULTS, *REWRITTEN]
    for said in side_by_side(jobs, settings.at_once):
        settings.say(f"model: {said}")
        if said["name"] in faults:
            survivors += [] if said["wrong"] else [said["name"]]
            continue
        states += said["states"]
        exhaustive += [said["name"]] if said.get("exhaustive") else []
        figures.count(f"wrong: {said['wrong']}" if said["wrong"] else "ok", said["name"])
    for name in survivors:
        figures.count("wrong: the model does not find it", name)
    killed = {"killed": len(faults) - len(survivors), "of": len(faults)}
    figures.more = {"states": states, "exhaustive": len(exhaustive), "of": len(chosen), "faults": killed}
    return figures


def _explored(
    name: str, bounds: Bounds, faults: Sequence[str], seconds: float, rewrite: Rewrite | None = None
) -> dict[str, Any]:
    if rewrite is not None:
        rewrite.apply()
    found = Model(bounds, frozenset(faults)).explore(15_000_000, seconds)
    return {"name": name, "bounds": {key: value for key, value in asdict(bounds).items() if value}, **found}
