"""Replay a committed run from its parent's checkpoint and compare all rows, to find nondeterminism.

The replay distributes its tasks differently, uses other batch sizes, writes into folders that belong to no table, and deletes
them at the end. For each target the digests of all rows must be equal: outputs, changes of every store, metrics and internal
logs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork
from rewindow.control.plan.compatibility import check_has_landings
from rewindow.control.plan.job_diff import differences_besides_tables
from rewindow.control.plan.job_state import Branch, CommittedRun
from rewindow.control.plan.spec import Attempt, RunSpec, TargetTotal, totals
from rewindow.control.run import Engine, Job, Tables, execute, known_results
from rewindow.errors import CheckpointError, Lines


class Scratch(Tables, Protocol):
    """Tables that can also compare a replay with the committed run."""

    def scratch_roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Return a folder outside of all tables for each target."""
        ...

    def reports(self, run: CommittedRun) -> Sequence[TaskReport]:
        """Return what a committed run's tasks reported."""
        ...

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target that differs between a replay and the committed run."""
        ...

    def discard(self, spec: RunSpec) -> None:
        """Delete what was written to scratch folders."""
        ...


@dataclass(frozen=True, slots=True)
class Verified:
    """A replayed run.

    ``counts``: how many rows the replay made for each target. ``differences``: for each target that differs, a description of the
    first such row.
    """

    run: str
    counts: Mapping[str, int]
    differences: Mapping[str, str]


OTHER_ROWS = 1_021
"""The batch size (rows) of a replay. It is a prime, so that batches end at other places than in the run."""


class LikeBefore:
    """An engine that repeats the executions (record or vectorized) of a run, with tasks in reverse order and other batch sizes.

    The execution must be the same, because some metrics are measured only in record execution.
    """

    def __init__(self, engine: Engine, reports: Iterable[TaskReport]) -> None:
        self._engine = engine
        self._vectorized = {report.sub_topology for report in reports if report.is_vectorized}
        self.stage_rows = engine.stage_rows

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology with the execution that the run used for it."""
        execution = work.execution if work.sub_topology in self._vectorized else Execution.RECORD
        return self._engine.run_sub_topology(
            replace(work, tasks=work.tasks[::-1], execution=execution, rows_at_once=OTHER_ROWS)
        )


def verify(
    job: Job, run: CommittedRun, attempt: Attempt, engine: Engine, tables: Scratch, branch: Branch | None = None
) -> Generator[str, None, Verified]:
    """Replay one committed run. Raises `CheckpointError` (76) if the job's code differs from the code of the run.

    ``branch``: the branch of the run. Error messages use its name to say how its runs can be verified again.
    """
    differences = differences_besides_tables(run.spec.binding, job.binding)
    if differences:
        listed = Lines(f"  - {line}" for line in differences)
        raise CheckpointError(
            "verified-code-differs",
            "run {run} was made by different code:\n{changes}\nCheck out the version that made it, then verify",
            run=run.spec.name,
            changes=listed,
        )
    spec = replace(run.spec, attempt=attempt)
    check_has_landings(run, job.feed, branch)
    try:
        before, results = LikeBefore(engine, tables.reports(run)), known_results(run)
        reports = yield from execute(job, spec, before, tables, tables.scratch_roots, observe=results)
        made, committed = totals(reports), run.commit.targets
        different = {
            target: tables.first_difference(run, target, spec, reports)
            for target in sorted({*made, *committed})
            if content(made.get(target)) != content(committed.get(target))
        }
    finally:
        tables.discard(spec)
    return Verified(
        run.spec.name, {target: total.rows for target, total in sorted(made.items()) if total.rows}, different
    )


def content(total: TargetTotal | None) -> tuple[int, str]:
    """Return the number and the digest of a target's rows. They are equal if the rows are the same."""
    # The total of a target without rows may be missing or have zero rows. Both mean the same.
    return (total.rows, total.digest) if total and total.rows else (0, "")
