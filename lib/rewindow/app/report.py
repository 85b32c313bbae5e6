"""Collect the material of a report from a project. Nothing is written, except what a comparison of branches publishes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rewindow.app.branches import JobBranches
from rewindow.app.command_line import Command
from rewindow.app.known_branches import no_runs
from rewindow.app.own_code import running_version
from rewindow.app.project import Project
from rewindow.app.sentences import as_assignments
from rewindow.app.silent import rules_of
from rewindow.app.step_times import step_times
from rewindow.app.times import parse_time, whole_number
from rewindow.app.unfinished import how_it_ended, process_of
from rewindow.control.plan.branch_decisions import find_run
from rewindow.control.plan.branches import Branch, CommittedRun, JobState
from rewindow.control.plan.explain import explain
from rewindow.control.plan.ledger_state import PLAN
from rewindow.control.plan.spec import CHANGELOG, RunRequest
from rewindow.errors import RewindowError, UsageError
from rewindow.report.facts import BranchDiff, Difference, Outlook, OutputDiff, Report, Sample, Verification
from rewindow.report.gather import gather
from rewindow.report.material import Columns, Material
from rewindow.tables.delta.state_query import Stores
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import safe_name

MOST_STORE_ROWS, MOST_STORE_RUNS = 200_000, 1_000
"""A store is read only if a restore reads at most so many changelog rows, of so many runs."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to report on: one ``run``, the runs ``since`` a run or a time of commit, or all; and what to add."""

    branch: str
    run: str | None = None
    since: str | None = None
    diff: str | None = None
    verify: bool = False


def report(project: Project, job: str, wanted: Wanted) -> Report:
    """Return the report of a job. Raises `UsageError` (2) for a branch without runs or a run that does not exist."""
    project.job_config(job)
    tables = project.tables
    state = tables.state(job)
    branch = state.branch(safe_name(wanted.branch, "branch"))
    runs, selection = _selected(job, state, branch, wanted)
    rows = tables.ledger_rows(job)
    material = Material(
        branch=branch,
        feed=tables.feed(runs[-1].spec.binding.feed),
        runs=runs,
        planned_at={row.seq: row.recorded_at for row in rows if row.kind == PLAN},
        lagging=dict(tables.lagging(job, state, branch.name)),
        read_reports=tables.reports,
        read_store=cache(lambda store: _read_store(project, state, runs[-1], store)),
        accepted=state.accepted,
        rules=rules_of(project.root, runs[-1].spec.binding.feed),
        read_steps=lambda some: step_times(tables.warehouse, some) if isinstance(tables, DeltaTables) else {},
    )
    branches = JobBranches(project, job)
    checked = list(branches.verify(branch.name, [runs[-1].spec.name])) if wanted.verify else []
    return gather(
        material,
        ledger=state.ledger,
        selection=selection,
        made_at_ms=round(time.time() * 1000),
        version=running_version(),
        outlook=_outlook(project, job, branch) if material.is_newest else Outlook("Later runs exist"),
        verification=Verification(
            [one.run for one in checked],
            [Difference(one.run, target, text) for one in checked for target, text in one.differences.items()],
        ),
        diff=_compared(branches, branch.name, wanted.diff) if wanted.diff else None,
    )


def _selected(job: str, state: JobState, branch: Branch, wanted: Wanted) -> tuple[Sequence[CommittedRun], str]:
    """Return the runs to report on, and the words for them."""
    if not branch.runs:
        raise no_runs(job, state, branch.name)
    if wanted.run is not None and wanted.since is not None:
        message = "--run and --since cannot be used together: choose one"
        raise UsageError(message)
    if wanted.run is not None:
        return [find_run(state, branch, wanted.run)], "one run"
    if wanted.since is None:
        return branch.runs, "all runs of the branch"
    if "/" in wanted.since or whole_number(wanted.since) is not None:
        first = branch.index_of(find_run(state, branch, wanted.since).spec.run) or 1
        return branch.runs[first - 1 :], f"the runs since {wanted.since}"
    after = parse_time(wanted.since) or 0
    chosen = [run for run in branch.runs if run.recorded_at >= after]
    if not chosen:
        message = f"no run of branch {branch.name!r} was committed since {wanted.since}: name an earlier time, or omit --since"
        raise UsageError(message)
    return chosen, f"the runs committed since {wanted.since}"


def _read_store(project: Project, state: JobState, head: CommittedRun, store: str) -> Columns | None:
    """Return a store's columns; None if a catalog governs it, if it is large, or if it cannot be read."""
    if not isinstance(project.tables, DeltaTables) or not state.has_state(head.spec.run):
        return None
    basis = state.basis(head.spec.run)
    totals = [run.commit.targets.get(f"{CHANGELOG}{store}") for run in basis]
    if len(basis) > MOST_STORE_RUNS or sum(total.rows for total in totals if total) > MOST_STORE_ROWS:
        return None
    try:
        columns: Columns = Stores(project.tables, state, head).rows(store).to_pydict()
    except RewindowError:
        return None  # the page says that the store was not read; `rewindow state` says why
    return columns


def _outlook(project: Project, job: str, branch: Branch) -> Outlook:
    """Return what the next run would do."""
    pending = branch.pending
    waits = None
    if pending is not None:
        process, is_live = process_of(pending.attempt), project.is_alive(pending.attempt)
        ended = "is running" if is_live else how_it_ended(project.warehouse, pending.attempt)
        then = "" if is_live else f". `{Command(job, project.target.target, branch.name)('run')}` completes its plan"
        waits = f"Run {pending.name} is not committed. Its {process} {ended}{then}"
    try:
        described = project.plan(job, RunRequest(branch=branch.name))
    except RewindowError as error:
        return Outlook("It is refused", f"{error} (exit code {error.exit_code})", waits)
    return Outlook(explain(described)[0], None, waits)


def _compared(branches: JobBranches, first: str, second: str, samples: int = 5) -> BranchDiff:
    """Compare two branches."""
    found = branches.diff(first, second, samples)
    outputs = [
        OutputDiff(
            output,
            one.equal,
            one.different,
            one.only_first,
            one.only_second,
            [Sample(as_assignments(key, key), _texts(ours), _texts(theirs)) for key, ours, theirs in one.samples],
        )
        for output, one in found.diffs.items()
    ]
    epochs = (found.epochs[0], found.epochs[-1]) if found.epochs else None
    changed = branches.code_changes(second, first)
    return BranchDiff(
        first, second, found.shared, epochs, found.extent or None, changed, outputs, found.on_hold, found.left_out
    )


def _texts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [as_assignments(row) for row in rows]
