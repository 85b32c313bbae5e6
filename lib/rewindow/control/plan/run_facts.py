"""What is known of all runs of a job without decoding the stored ones, of which a year has thousands. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from rewindow.control.plan.branches import CommittedRun, JobState
from rewindow.control.plan.history import History
from rewindow.control.plan.spec import JobBinding
from rewindow.control.plan.stored_runs import StoredChain


class RunFacts(NamedTuple):
    """A committed run: its number, its parent's, the attempts that planned and that staged it, and when it was committed.

    The two attempts differ if lost files were staged again.
    """

    run: int
    parent: int | None
    planned_by: str
    staged_by: str
    recorded_at: int


def run_facts(state: JobState) -> list[RunFacts]:
    """Return the facts of all committed runs, in the order of the ledger."""
    stored, later = _parts(state.committed)
    found = [] if stored is None else [RunFacts(*stored.runs.facts(at)) for at in stored.at]
    return [*found, *map(_facts, later)]


def attempts_of(runs: History[CommittedRun], first: int = 0) -> Iterator[str]:
    """Yield the attempts that staged the runs of a chain, from the run at position ``first`` on."""
    stored, later = _parts(runs)
    if stored is not None:
        yield from (stored.runs.attempts[at] for at in stored.at[first:])
    before = len(runs) - len(later)
    yield from (run.commit.attempt for run in later[max(0, first - before) :])


def bindings_of(state: JobState) -> Iterator[JobBinding]:
    """Yield what committed runs were bound to. Runs that were bound alike may be represented by one of them."""
    stored, later = _parts(state.committed)
    return chain(stored.runs.bindings() if stored else (), (run.spec.binding for run in later))


def _parts(runs: History[CommittedRun]) -> tuple[StoredChain | None, tuple[CommittedRun, ...]]:
    head = runs.head
    return (head, runs[len(head) :]) if isinstance(head, StoredChain) else (None, runs[:])


def _facts(run: CommittedRun) -> RunFacts:
    return RunFacts(run.spec.run, run.spec.parent, run.spec.attempt.id, run.commit.attempt, run.recorded_at)
