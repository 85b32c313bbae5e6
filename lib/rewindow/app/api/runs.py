"""Runs of a job: the records that each run processed, the rows that it wrote, and the tables and stores as of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from rewindow.app.api.calls import Context
from rewindow.app.api.results import Outcome, lines, table
from rewindow.app.api.rows import Output, State, output_source, store_source
from rewindow.app.result_lines import backfilled_lines
from rewindow.contracts.expectations import Observation
from rewindow.control.health.inputs import dropped_by_reason, rows_by_output
from rewindow.control.plan.job_state import Branch, CommittedRun
from rewindow.control.plan.planner import UpToDate, UpToDateButChanged
from rewindow.control.run import RunReport
from rewindow.errors import HintMessage, UsageError
from rewindow.streams.record import known_time


@dataclass(frozen=True, slots=True)
class Run:
    """A committed run of a job. If a call found nothing to do, it is the branch's last run.

    Times are epoch milliseconds in UTC, None if the time is unknown.
    """

    job: str
    branch: str
    name: str | None
    """The run's name, such as ``main/3``; None if the branch has no run at all."""
    is_new: bool
    """Whether the call that returned this value executed the run."""
    reason: str | None
    """Why nothing was run; None for a new run."""
    epochs: tuple[int, int] | None
    """The first and the last landing that the run processed; None if it processed no landing."""
    records: Mapping[str, int]
    """The number of records that the run processed, by topic."""
    rows: Mapping[str, int]
    """The number of rows that the run added, by output."""
    dropped: Mapping[str, Mapping[str, int]] | None
    """The numbers of records that the run dropped, by kind and reason: ``{"late": {"window-closed": 1}}``. None if the call did
    not execute the run."""
    hints: tuple[HintMessage, ...]
    """Why outputs got no rows although the run processed records."""
    watermark_ms: int | None
    """The time through which the feed was complete."""
    is_final: bool
    """Whether the run closed every window and sealed the branch."""
    expectations: tuple[Observation, ...]
    """How the run's rows met the expectations of its outputs, in the order of the job's file. Each observation has ``is_met``."""
    is_published: bool
    """Whether the output tables have the run's rows. They lack them while this run or an earlier run of the branch is on
    hold."""
    _context: Context = field(repr=False, compare=False)
    landed: Outcome | None = None
    """If the call had `land=True`: what it landed before the run, with warnings."""
    completed: tuple[str, ...] = ()
    """The runs that an earlier attempt had planned and did not finish. The call completed them before its own run."""

    def output(self, name: str | None = None) -> Output:
        """Return the rows of an output as of this run: all rows that the branch has published up to and including this run.

        ``name``: the output's topic or table; may be omitted if the job has only one output. Raises `UsageError` (2) for an
        unknown output. While this run or an earlier run of the branch is on hold, reading the rows raises `UsageError` (2).
        """
        with self._context.command() as (project, _):
            return Output(output_source(project, self.job, name, branch=self.branch, run=self._name), self._context)

    def state(self, store: str) -> State:
        """Return the entries of a store after this run. Raises `UsageError` (2) for an unknown store."""
        with self._context.command() as (project, _):
            return State(store_source(project, self.job, store, branch=self.branch, run=self._name), self._context)

    @property
    def _name(self) -> str:
        if self.name is None:
            raise UsageError(
                "branch-never-run",
                "job {job!r} has no run on branch {branch!r} yet: {reason}",
                job=self.job,
                branch=self.branch,
                reason=self.reason or "run it first",
            )
        return self.name

    def _repr_html_(self) -> str:
        return as_html(self)


class Runs(tuple[Run, ...]):
    """The runs of a branch, the oldest first."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        title = f"Job {self[-1].job}, branch {self[-1].branch}" if self else "No runs yet"
        return table(title, [as_row(run) for run in self])


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill: its branch, which has its own tables, and the runs that the call made."""

    job: str
    branch: str
    stands_on: str | None
    """The run of main after which the branch begins; None if it begins before the first run."""
    first_epoch: int
    replaced: tuple[str, ...]
    """The earlier runs of the branch that were replaced because they had executed other code."""
    continues: str | None
    """The last earlier run of the branch that was kept; None if no run was kept."""
    runs: Runs

    def _repr_html_(self) -> str:
        said = backfilled_lines(self.job, self.branch, self.stands_on, self.first_epoch, self.replaced, self.continues)
        return lines(said) + Markup("").join(as_html(run) for run in self.runs)


def as_html(run: Run) -> Markup:
    """Return a run as HTML: what was landed, the reason if nothing was run, the run's figures, and what it dropped."""
    sentences = list(run.landed.sentences) if run.landed else []
    sentences += [f"Completed run {name}, which an attempt that did not finish had planned." for name in run.completed]
    sentences += [f"Nothing to run: {run.reason}."] if run.reason else []
    dropped = [
        f"{kind}: {', '.join(f'{count} {reason}'.strip() for reason, count in reasons.items())}"
        for kind, reasons in (run.dropped or {}).items()
    ]
    shown = table(f"Job {run.job}, branch {run.branch}", [as_row(run)]) if run.name else Markup("")
    dropped += [f"{unmet.on_fail}: {unmet.sentence}" for unmet in run.expectations if not unmet.is_met]
    dropped += [] if run.is_published else [f"Run {run.name} is not published: a run is on hold."]
    return lines(sentences) + shown + lines([*dropped, *(f"{hint}." for hint in run.hints)])


def as_row(run: Run) -> dict[str, Any]:
    """Return a run as a row of a table."""
    return {
        "run": run.name,
        "epochs": run.epochs,
        "records": sum(run.records.values()),
        "rows": sum(run.rows.values()),
        "watermark_ms": run.watermark_ms,
        "final": run.is_final,
    }


def runs_of(context: Context, branch: Branch) -> Runs:
    """Return the committed runs of a branch."""
    published = len(branch.published_runs)
    return Runs(
        _run(context, branch.name, run, is_published=index < published) for index, run in enumerate(branch.runs)
    )


def result_of(context: Context, job: str, branch: Branch, results: Sequence[RunReport | UpToDate]) -> Run:
    """Return the last result of a command as a run.

    Its ``completed`` names the runs of the earlier results, which an unfinished attempt had planned.
    """
    *before, last = results_of(context, job, branch, results)
    return replace(last, completed=tuple(run.name for run in before if run.name))


def results_of(context: Context, job: str, branch: Branch, results: Iterable[RunReport | UpToDate]) -> Runs:
    """Return the results of a command as runs of a branch. If a result has no run, the branch's last run takes its place."""
    return Runs(_result(context, job, branch, result) for result in results)


def _result(context: Context, job: str, branch: Branch, result: RunReport | UpToDate) -> Run:
    if isinstance(result, RunReport):
        new = _run(context, branch.name, result, is_published=result.is_published)
        return replace(new, is_new=True, dropped=dropped_by_reason(result.metrics), hints=result.hints)
    if branch.head is not None:
        return replace(
            _run(context, branch.name, branch.head, is_published=not branch.unpublished), reason=_why(result)
        )
    return Run(
        job=job,
        branch=branch.name,
        name=None,
        is_new=False,
        reason=_why(result),
        epochs=None,
        records={},
        rows={},
        dropped=None,
        hints=(),
        watermark_ms=None,
        is_final=False,
        expectations=(),
        is_published=False,
        _context=context,
    )


def _run(context: Context, branch: str, run: CommittedRun | RunReport, *, is_published: bool) -> Run:
    spec, commit = run.spec, run.commit
    return Run(
        job=spec.job,
        branch=branch,
        name=spec.name,
        is_new=False,
        reason=None,
        epochs=(spec.input.first, spec.input.last) if spec.epochs else None,
        records=dict(commit.consumed),
        rows=rows_by_output(commit),
        dropped=None,
        hints=(),
        watermark_ms=known_time(commit.watermark_ms),
        is_final=spec.final,
        expectations=commit.expectations,
        is_published=is_published,
        _context=context,
    )


def _why(result: UpToDate) -> str:
    return result.told() if isinstance(result, UpToDateButChanged) else result.reason
