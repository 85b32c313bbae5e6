"""What a run does about the expectations of its outputs: observe the new rows, stop if one fails, stage the results.

The observation is made once, before the COMMIT row, which stores it: from then on the ledger alone says what is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from rewindow.contracts.expectations import Observation, OnFail
from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import RunSpec
from rewindow.errors import ExpectationError

Observe = Callable[[Sequence[TaskReport]], Sequence[Observation]]
"""Returns what is observed in the rows that the tasks staged."""


class StagedRows(Protocol):
    """The rows of runs, read from the files that their tasks staged, whether or not they are published."""

    def staged_batches(
        self, spec: RunSpec, reports: Sequence[TaskReport], target: str, names: Sequence[str]
    ) -> Iterator[Any]:
        """Yield some columns of the rows that an attempt staged for a target, as Arrow record batches in their order."""
        ...

    def run_batches(self, run: CommittedRun, target: str, names: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of the rows of a committed run."""
        ...


class Evaluator(Protocol):
    """The expectations of a job's outputs."""

    def observe(
        self, spec: RunSpec, state: JobState, reports: Sequence[TaskReport], rows: StagedRows
    ) -> Sequence[Observation]:
        """Return what is observed in the rows of an attempt. Reads only these rows and those of the run before it."""
        ...


def check_met(spec: RunSpec, observed: Sequence[Observation]) -> None:
    """Raise `ExpectationError` (65) if the run does not meet an expectation with ``on_fail: fail``."""
    failed = [observation for observation in observed if not observation.is_met and observation.on_fail == OnFail.FAIL]
    if failed:
        listed = "\n".join(f"  - {observation.sentence}" for observation in failed)
        failed_words = "an expectation" if len(failed) == 1 else f"{len(failed)} expectations"
        raise ExpectationError(
            "expectations-not-met",
            "run {run} of {job} does not meet {expectations}:\n{observations}\nNothing was committed. Fix the data or "
            "the code, or change `expect:` (on_fail: hold commits without publishing, warn publishes)",
            run=spec.name,
            job=spec.job,
            expectations=failed_words,
            observations=listed,
        )


def result_rows(spec: RunSpec, observed: Sequence[Observation]) -> list[tuple[Any, ...]]:
    """Return the rows of a run for the expectations table (`contracts.expectations.EXPECTATION_COLUMNS`)."""
    return [
        (
            *(
                spec.job,
                spec.branch,
                spec.run,
                observation.output,
                observation.name,
                observation.kind,
                observation.on_fail,
                observation.is_met,
                observation.failed,
            ),
            *(observation.observed, observation.expected, "\n".join(observation.examples)),
        )
        for observation in observed
    ]


def known_results(run: CommittedRun) -> Observe | None:
    """Return what a replay of a committed run stages as its results: those of its COMMIT row, whatever is expected now."""
    observed = run.commit.expectations
    return (lambda _reports: observed) if observed else None
