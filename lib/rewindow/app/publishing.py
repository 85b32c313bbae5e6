"""Publish committed runs, including a run on hold if somebody accepts it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rewindow.app.open_project import OpenProject
from rewindow.app.telemetry.command_facts import PUBLISH
from rewindow.app.telemetry.telemetry import OnStep
from rewindow.control.branch import accept, catch_up
from rewindow.control.health.holds import describe_holds, explain_holds
from rewindow.control.health.phrases import command_words
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.branch_decisions import check_can_publish
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import StorageError, naming
from rewindow.tables.shared.paths import safe_name


@dataclass(frozen=True, slots=True)
class Published:
    """The result of `publish`: the accepted run, the targets that got commits (``lagged``), and the runs still on hold."""

    branch: str
    accepted: str | None
    lagged: list[str]
    on_hold: list[dict[str, Any]]
    not_on_hold: str | None = None
    """The run that the user named, if it is not on hold."""
    accepts: bool = False
    """Whether the user asked to accept a run."""


def publish(
    project: OpenProject, job: str, branch: str, *, accepts: bool, run: str | None, on_step: OnStep = None
) -> Published:
    """Make the commits that a branch's tables lack. With ``accepts``, first accept ``run``, by default the only run on hold.

    Raises `UsageError` (2) for an unknown branch or run, or if several runs are on hold and none is named.
    """
    project.job_config(job)
    name, tables = safe_name(branch, "branch"), project.tables
    state = project.state(job)
    check_can_publish(state, name)
    lagged, accepted = list(tables.lagging(job, state, name)), None
    with naming(JOB=command_words(job, name)), project.telemetry.operation(PUBLISH, job, name) as observed:
        if accepts:
            row = _accept(project, job, name, run, observed.watching(on_step))
            accepted = tables.state(job).find_run(row.body["run"]) if row else None
        else:
            drive(catch_up(job, tables, name), observed.watching(on_step))
        state = tables.state(job)
        made = accepted.spec.name if accepted else None
        not_on_hold = run if accepts and made is None else None
        done = Published(name, made, lagged, describe_holds(state, name), not_on_hold, accepts)
        said = {**asdict(done), "on_hold": [hold["run"] for hold in done.on_hold]}
        observed.done(lambda: project.gatherer.branch_changed(state, name, said))
    return done


def _accept(project: OpenProject, job: str, branch: str, run: str | None, on_step: OnStep) -> LedgerRow | None:
    """Accept a run on hold. If the run is accepted and only publishing it fails, the error says so."""
    before = len(project.tables.state(job).accepted)
    try:
        return drive(accept(job, branch, run, project.tables), on_step)
    except StorageError as error:
        if len(project.tables.state(job).accepted) > before:
            error.surrounded(after=". The run is accepted, and is published then")
        raise


def published_lines(job: str, done: Published) -> list[str]:
    """Return the lines that are printed for the result of `publish`."""
    lines = [f"Accepted run {done.accepted} of {job}."] if done.accepted else []
    if done.not_on_hold is not None:
        lines.append(f"Run {done.not_on_hold} of {job} is not on hold.")
    elif done.accepts and done.accepted is None:
        lines.append(f"No run of {job} is on hold on branch {done.branch}, so nothing was accepted.")
    if done.lagged:
        lines.append(f"Published what {', '.join(done.lagged)} lacked.")
    if done.on_hold:
        return [*lines, *explain_holds(done.on_hold)]
    return [*lines, f"Everything that is committed on branch {done.branch} of {job} is published."]
