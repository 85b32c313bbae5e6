"""Read the facts of a report. It writes nothing, except that a comparison of branches publishes their committed runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rewindow.app.branch_status import process_of, unfinished
from rewindow.app.branches import JobBranches, other_hash_seed
from rewindow.app.feed_rules import rules_of
from rewindow.app.open_project import OpenProject
from rewindow.app.result_lines import as_assignments
from rewindow.app.run_references import no_runs
from rewindow.app.times import parse_time, whole_number
from rewindow.app.version import running_version
from rewindow.control.health.inputs import DETAILED_RUNS, Columns, Inputs
from rewindow.control.health.job_health import job_health
from rewindow.control.health.phrases import Command
from rewindow.control.plan.branch_decisions import find_run
from rewindow.control.plan.explain import explain
from rewindow.control.plan.job_fold import PLAN
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG, RunRequest
from rewindow.errors import RewindowError, UsageError
from rewindow.report.figures import STEPPED_RUNS
from rewindow.report.gather_report import gather
from rewindow.report.report_facts import BranchDiff, Difference, Outlook, OutputDiff, Report, Sample, Verification
from rewindow.tables.shared.paths import safe_name
from rewindow.tables.shared.state_query import Stores

MOST_STORE_ROWS, MOST_STORE_RUNS = 200_000, 1_000
"""A store is read only if a restore of it reads at most this many changelog rows and at most this many runs."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to report on: one ``run``, the runs ``since`` a run or since a time of commit, or all runs.

    ``diff`` names a branch to compare with. ``verify`` adds a replay of the last run.
    """

    branch: str
    run: str | None = None
    since: str | None = None
    diff: str | None = None
    verify: bool = False


def report(project: OpenProject, job: str, wanted: Wanted) -> Report:
    """Return the report of a job. Raises `UsageError` (2) for a branch without runs or a run that does not exist."""
    # The hash seed must be set before Spark starts. Reading the ledger of a catalog starts Spark.
    with other_hash_seed() if wanted.verify else nullcontext():
        return _report(project, job, wanted)


def _report(project: OpenProject, job: str, wanted: Wanted) -> Report:
    project.job_config(job)
    tables = project.tables
    name = safe_name(wanted.branch, "branch")
    state = project.state(job, name)
    branch = state.branch(name)
    runs, selection = _selected(job, state, branch, wanted)
    rows = tables.ledger_rows(job)
    inputs = Inputs(
        branch=branch,
        feed=tables.feed(runs[-1].spec.binding.feed),
        runs=runs,
        read_rules=partial(rules_of, project.root, runs[-1].spec.binding.feed),
        reports={run.spec.run: tables.reports(run) for run in runs[-DETAILED_RUNS:]},
        stores=_read_stores(project, state, runs[-1]),
        lagging=dict(tables.lagging(job, state, branch.name)),
        planned_at={row.seq: row.recorded_at for row in rows if row.kind == PLAN},
        accepted=state.accepted,
        steps=tables.step_times(runs[-STEPPED_RUNS:]),
    )
    if inputs.before is not None and inputs.before.spec.run not in inputs.known_reports:
        inputs = replace(inputs, before_reports=tables.reports(inputs.before))
    branches = JobBranches(project, job)
    checked = branches.verify(branch.name, [runs[-1].spec.name]) if wanted.verify else []
    return gather(
        inputs,
        job_health(inputs, state),
        ledger=state.ledger,
        selection=selection,
        made_at_ms=round(time.time() * 1000),
        version=running_version(),
        outlook=_outlook(project, job, branch) if inputs.is_newest else Outlook("Later runs exist"),
        verification=Verification(
            [replay.run for replay in checked],
            [Difference(replay.run, target, text) for replay in checked for target, text in replay.differences.items()],
        ),
        diff=_compared(branches, branch.name, wanted.diff) if wanted.diff else None,
    )


def _selected(job: str, state: JobState, branch: Branch, wanted: Wanted) -> tuple[Sequence[CommittedRun], str]:
    """Return the runs to report on, and a description of which runs they are."""
    if not branch.runs:
        raise no_runs(job, state, branch.name)
    if wanted.run is not None and wanted.since is not None:
        raise UsageError("run-with-since", "--run and --since cannot be used together: choose one")
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
        raise UsageError(
            "runs-since-missing",
            "no run of branch {branch!r} was committed since {since}: name an earlier time, or omit --since",
            branch=branch.name,
            since=wanted.since,
        )
    return chosen, f"the runs committed since {wanted.since}"


def _read_stores(project: OpenProject, state: JobState, head: CommittedRun) -> dict[str, Columns]:
    """Return the columns of each store after a run. Stores that are too large or cannot be read are left out."""
    if not state.has_state(head.spec.run):
        return {}
    basis, stores = state.basis(head.spec.run), Stores(project.tables, state, head)
    read: dict[str, Columns] = {}
    for store in head.spec.binding.stores:
        rows = sum(run.commit.rows_in(f"{CHANGELOG}{store}") for run in basis)
        if len(basis) > MOST_STORE_RUNS or rows > MOST_STORE_ROWS:
            continue
        with suppress(RewindowError):  # the page says that the store was not read; `rewindow state` says why
            read[store] = stores.rows(store).to_pydict()
    return read


def _outlook(project: OpenProject, job: str, branch: Branch) -> Outlook:
    """Return what the next run would do, and whether an attempt is unfinished."""
    pending = branch.pending
    waits = None
    if pending is not None:
        is_live = project.is_alive(pending.attempt)
        ended = "is running" if is_live else unfinished(project.warehouse, pending.attempt).how
        then = "" if is_live else f". `{Command(job, project.target.target, branch.name)('run')}` completes its plan"
        waits = f"Run {pending.name} is not committed. Its {process_of(pending.attempt)} {ended}{then}"
    try:
        described = project.plan(job, RunRequest(branch=branch.name))
    except RewindowError as error:
        return Outlook("It is refused", f"{error} (exit code {error.exit_code})", waits)
    return Outlook(explain(described)[0], None, waits)


def _compared(branches: JobBranches, first: str, second: str, samples: int = 5) -> BranchDiff:
    """Return how the outputs of two branches differ, with at most ``samples`` different keys for each output."""
    compared = branches.diff(first, second, samples)
    outputs = [
        OutputDiff(
            output,
            difference.equal,
            difference.different,
            difference.only_first,
            difference.only_second,
            [
                Sample(as_assignments(key, key), _texts(ours), _texts(theirs))
                for key, ours, theirs in difference.samples
            ],
        )
        for output, difference in compared.diffs.items()
    ]
    epochs = (compared.epochs[0], compared.epochs[-1]) if compared.epochs else None
    changed = branches.code_changes(second, first)
    return BranchDiff(
        first,
        second,
        compared.shared,
        epochs,
        compared.extent or None,
        changed,
        outputs,
        compared.on_hold,
        compared.left_out,
    )


def _texts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [as_assignments(row) for row in rows]
