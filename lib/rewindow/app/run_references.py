"""How users refer to branches, runs and epochs: a run as ``main/3``, an epoch by a landing (``12``) or an event time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewindow.app.open_project import OpenProject
from rewindow.app.times import parse_time, whole_number
from rewindow.config.load import names_of
from rewindow.config.yaml_text import did_you_mean
from rewindow.control.health.phrases import command_words
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import find_run, first_epoch_at
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState
from rewindow.control.plan.spec import BEGINNING, MAIN, RunRequest
from rewindow.errors import RewindowError, UsageError
from rewindow.tables.shared.paths import safe_name

if TYPE_CHECKING:
    from rewindow.tables.shared.state_query import Stores
    from rewindow.tables.shared.warehouse import Warehouse


def starting_epoch(state: JobState, main: Branch, feed: Feed, text: str) -> int:
    """Return the first epoch of a run, landing or event time. Raises `UsageError` (2) for any other text."""
    if "/" in text:
        return find_run(state, main, text).spec.input.first
    number = whole_number(text)
    if number is not None:
        return number
    return first_epoch_at(feed, parse_time(text) or 0)


def request_through(state: JobState, main: Branch, branch: str, text: str | None) -> RunRequest:
    """Return the request for a run of ``branch`` that stops where ``text`` says; by default at the last epoch of `main`.

    ``text`` is the name of a run, the number of a landing, or an event time. Raises `UsageError` (2) for any other text.
    """
    if text is None:
        return RunRequest(branch=branch, through_landing=main.last_epoch or None)
    if "/" in text:
        return RunRequest(branch=branch, through_landing=find_run(state, main, text).spec.input.last)
    number = whole_number(text)
    if number is not None:
        return RunRequest(branch=branch, through_landing=number)
    return RunRequest(branch=branch, through_ms=parse_time(text))


@contextmanager
def without_options(remedy: str, *own: str) -> Iterator[None]:
    """Add advice to errors that advise an option of `run`, unless this command has the same option.

    Such errors have the fact ``run_option``. ``own`` are the options of `run` that this command has, too. ``remedy`` says what
    to do instead of using ``{option}``.
    """
    try:
        yield
    except RewindowError as error:
        option = error.facts.get("run_option")
        if option and option not in own:
            error.surrounded(after=f". This command has no {option}: {remedy.format(option=option)}")
        raise


def run_first(job: str, branch: str) -> str:
    """Return the remedy for `without_options` that first calls `run` with the option, then repeats the command."""
    return f"`rewindow run {command_words(job, branch)} {{option}}`, then this command again"


def with_runs(job: str, state: JobState, name: str) -> Branch:
    """Return a branch. Raises `UsageError` (2) if it has no runs."""
    branch = state.branch(name)
    if not branch.runs:
        raise no_runs(job, state, name)
    return branch


def check_has_branch(job: str, state: JobState, branch: str) -> None:
    """Raise `UsageError` (2) if no command has created a branch. `main` exists even before a job's first run."""
    if branch != MAIN and branch not in state.branches:
        raise no_runs(job, state, branch)


def unknown_name(root: Path, name: str) -> UsageError:
    """Return the error for a name that no job and no feed of the project has."""
    jobs, feeds = names_of(root, "jobs"), names_of(root, "feeds")
    return UsageError(
        "job-or-feed-unknown",
        "there is no job or feed {name!r}: {hint}jobs are {jobs}, feeds are {feeds}",
        name=name,
        hint=did_you_mean(name, [*jobs, *feeds]),
        jobs=", ".join(jobs) or "none",
        feeds=", ".join(feeds) or "none",
    )


def no_runs(job: str, state: JobState, branch: str) -> UsageError:
    """Return the error for a branch without runs."""
    others = sorted(name for name, other in state.branches.items() if other.runs)
    more = f" (branches with runs: {', '.join(others)})" if others else f": run `rewindow run {job}` first"
    return UsageError(
        "branch-not-run-yet",
        "job {job!r} has no runs on branch {branch!r} yet{hint}",
        job=job,
        branch=branch,
        hint=more,
    )


class AsOf(NamedTuple):
    """A job's ledger, one of its branches, and a run of that branch."""

    state: JobState
    branch: Branch
    run: CommittedRun

    @property
    def runs(self) -> tuple[CommittedRun, ...]:
        """The runs of the branch up to and including ``run``."""
        return self.branch.runs[: self.branch.index_of(self.run.spec.run)]

    def stores(self, tables: Warehouse) -> Stores:
        """Return the job's stores after ``run``. Raises `CheckpointError` (76) if `gc` has deleted this state."""
        from rewindow.tables.shared.state_query import Stores  # noqa: PLC0415 - most commands name runs and read no store

        return Stores(tables, self.state, self.run)


def as_of(project: OpenProject, job: str, branch: str, at: str | None) -> AsOf:
    """Return a job's ledger, a branch, and the run that ``at`` names, by default the last run of the branch.

    Rows that an interrupted command left unpublished are published first. Raises `UsageError` (2) if the branch has no runs
    or lacks this run, or if ``at`` is the state before the first run.
    """
    project.job_config(job)
    name = safe_name(branch, "branch")
    state = project.state(job)
    for _step in project.tables.publish(job, state, name):
        pass
    of_branch = state.branch(name)
    run = of_branch.head if at is None else None if at == BEGINNING else find_run(state, of_branch, at)
    if not of_branch.runs:
        raise no_runs(job, state, name)
    if run is None:
        raise UsageError(
            "beginning-has-nothing",
            "job {job!r} has no state before its first run on branch {branch!r}: choose a run that `rewindow show {job}` lists",
            job=job,
            branch=name,
        )
    return AsOf(state, of_branch, run)
