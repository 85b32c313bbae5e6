"""Decide what of a job `gc` keeps and what it forgets, from the ledger and a retention. Pure.

Kept is the state after the last run of every open branch, after every run younger than the retention (including rewound
runs and runs of dropped branches), and after the last older run of every open branch.

Where state and outputs are rows of the job's journal, staged rows are named by attempt and part, the first element of their
target: ``output``, ``changelog``, ``internal`` and others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, islice, takewhile
from typing import Any

from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.ledger_state import COMMIT, FORGET, PLAN, RESTAGE, SNAPSHOT, fold
from rewindow.control.plan.spec import CHANGELOG, OUTPUT, JournalFile, TargetTotal
from rewindow.control.plan.stored_runs import RunFacts, run_facts

EVERY = 30
"""Number of runs that a restore reads before a snapshot replaces them."""
MOST_RUNS = 8
"""After so many times `EVERY` runs a snapshot is due however few rows have changed: each run has its own files."""
_OUTPUT, _CHANGELOG, _INTERNAL, _METRIC = OUTPUT.rstrip("/"), CHANGELOG.rstrip("/"), "internal", "metric"
WHY: Mapping[str, str] = {
    _OUTPUT: "of a run that was rewound, dropped or staged again",
    _CHANGELOG: "of a run that was forgotten or staged again",
    _INTERNAL: "the internal logs of an attempt",
    _METRIC: "the metrics of a run that was staged again",
}
"""Why rows of an attempt that counted can be deleted, by part. Rows of other parts stay."""
_MOST_ROWS = 5_000_000
"""The rows of changelogs from which `run` writes a snapshot."""


def dead_attempts(state: JobState) -> frozenset[str]:
    """Return the attempts that can no longer commit, because a later row replaced their plan.

    Leaves out those before a RESET, whose committed files stay for the retention.
    """
    # What the attempt that a pending plan repeats has staged is compared with the new rows.
    pending = [branch.pending for branch in state.branches.values() if branch.pending is not None]
    return state.dead - {plan.repeats for plan in pending}


def due_snapshots(state: JobState, every: int = EVERY) -> list[CommittedRun]:
    """Return the last runs of open branches that are due for a snapshot."""
    heads = {branch.head.spec.run: branch.head for branch in state.branches.values() if branch.is_open and branch.head}
    return [head for head in heads.values() if is_due(state, head, every)]


def due_before_run(state: JobState, branch: str, every: int = EVERY) -> CommittedRun | None:
    """Return the last run of a branch if the next run writes a snapshot of it first; None if it does not."""
    head = state.branch(branch).head
    if head is None or not state.branch(branch).is_open or not is_due(state, head, every):
        return None
    # The rows of a snapshot are held in memory. `gc` writes one with many rows.
    return head if sum(map(_changes, state.basis(head.spec.run))) <= _MOST_ROWS else None


def is_due(state: JobState, run: CommittedRun, every: int) -> bool:
    """Return whether the state after a run, the last of an open branch, is due for a snapshot.

    It is restored from ``every`` runs or more, and they changed at least half as many rows as the last snapshot has. After
    `MOST_RUNS` times as many runs it is due in any case.
    """
    heads = [branch.head for branch in state.branches.values() if branch.is_open]
    if run not in heads or not run.spec.binding.stores or not state.has_state(run.spec.run):
        return False
    basis, snapshots = state.basis(run.spec.run), {run_of_basis.spec.run for run_of_basis in state.snapshots.values()}
    later = [run_of_basis for run_of_basis in basis if run_of_basis.spec.run not in snapshots]
    of_snapshot = sum(_changes(run_of_basis) for run_of_basis in basis if run_of_basis.spec.run in snapshots)
    # For fewer changes, writing all rows again would cost more than it saves.
    pays = 2 * sum(map(_changes, later)) >= of_snapshot
    return len(later) >= every and (pays or len(later) >= MOST_RUNS * every)


def decide_snapshot(
    state: JobState, run: CommittedRun, attempt: str, journal: JournalFile, targets: Mapping[str, TargetTotal]
) -> LedgerRow:
    """Return the row that makes a snapshot the state after a run."""
    body = {
        "run": run.spec.run,
        "attempt": attempt,
        "journal": asdict(journal),
        "targets": {target: asdict(total) for target, total in targets.items()},
    }
    return LedgerRow(state.rows + 1, SNAPSHOT, body)


def decide_forget(state: JobState, before_ms: int) -> LedgerRow | None:
    """Return the row that forgets unneeded runs and snapshots committed before a time; None if there are none."""
    runs = run_facts(state)
    kept = _bases(state, runs, _wanted(state, runs, before_ms))
    recorded = chain(((facts.run, facts.recorded_at) for facts in runs), _snapshots(state))
    forgotten = sorted(
        run
        for run, recorded_at in recorded
        if recorded_at < before_ms and run not in kept and run not in state.forgotten
    )
    return LedgerRow(state.rows + 1, FORGET, {"runs": forgotten}) if forgotten else None


class Needed:
    """What a job's ledger needs of its journal now, and what it needed a retention ago."""

    def __init__(self, rows: Sequence[LedgerRow], state: JobState, before_ms: int) -> None:
        """``rows`` and the state that they fold into. What was needed at ``before_ms`` stays, whatever happened since."""
        self._states = (state, fold(takewhile(lambda row: row.recorded_at < before_ms, rows)))
        self._before_ms = before_ms
        self._named = dict(_named(rows))
        self._parts = [_parts(state_then) for state_then in self._states]
        plans = [branch.pending for branch in state.branches.values() if branch.pending]
        self._pending = {plan.attempt.id for plan in plans} | {plan.repeats or "" for plan in plans}

    def is_known(self, attempt: str) -> bool:
        """Return whether the ledger names an attempt."""
        return attempt in self._named

    def has(self, attempt: str, part: str) -> bool:
        """Return whether rows are needed, or were a retention ago, or are younger than that."""
        if attempt in self._pending or part not in WHY or self._named[attempt] >= self._before_ms:
            return True
        return any((attempt, part) in parts for parts in self._parts)


def is_state(part: str) -> bool:
    """Return whether rows are of stores, which a run in progress may still read."""
    return part == _CHANGELOG


def _changes(run: CommittedRun) -> int:
    """Return how many rows of changelogs a run or snapshot has."""
    return sum(total.rows for target, total in run.commit.targets.items() if target.startswith(CHANGELOG))


def _wanted(state: JobState, runs: Iterable[RunFacts], before_ms: int) -> set[int]:
    """Return the runs after which the state is kept."""
    wanted = {facts.run for facts in runs if facts.recorded_at >= before_ms}
    for branch in state.branches.values():
        if branch.is_open and branch.head is not None:
            wanted.add(branch.head.spec.run)
            older = (run.spec.run for run in reversed(branch.runs) if run.recorded_at < before_ms)
            wanted.update(islice(older, 1))
    return wanted


def _bases(state: JobState, runs: Sequence[RunFacts], wanted: Iterable[int]) -> set[int]:
    """Return the runs and snapshots from which the states after some runs are restored, as `JobState.basis` does for one."""
    needed, bases = set(wanted), set[int]()
    # A run comes after its parent, so the last one is looked at first.
    for facts in reversed(runs):
        snapshot = state.snapshots.get(facts.run)
        if facts.run in needed and snapshot is not None:
            bases.add(snapshot.spec.run)
        elif facts.run in needed:
            bases.add(facts.run)
            needed.update(() if facts.parent is None else (facts.parent,))
    return bases


def _snapshots(state: JobState) -> Iterator[tuple[int, int]]:
    return ((snapshot.spec.run, snapshot.recorded_at) for snapshot in state.snapshots.values())


def _named(rows: Iterable[LedgerRow]) -> Iterable[tuple[str, int]]:
    """Yield the attempts that rows name, with the time of each row, in the order of the rows."""
    for row in rows:
        if row.kind == PLAN:
            plan: Mapping[str, Any] = row.body
            yield plan["attempt"]["id"], row.recorded_at
            if plan.get("repeats"):
                yield plan["repeats"], row.recorded_at
        elif row.kind in (COMMIT, SNAPSHOT, RESTAGE):
            yield row.body["attempt"], row.recorded_at
            if row.kind == RESTAGE:
                yield row.body["was"], row.recorded_at


def _parts(state: JobState) -> frozenset[tuple[str, str]]:
    """Return what outputs are published and republished from, what the state after a run is restored from, and metrics."""
    outputs = [run.commit.attempt for item in state.branches.values() if item.is_kept for run in item.runs]
    runs = (*state.committed, *state.snapshots.values())
    stores = [run.commit.attempt for run in runs if run.spec.run not in state.forgotten]
    metrics = [run.commit.attempt for run in state.committed]
    parts = ((_OUTPUT, outputs), (_CHANGELOG, stores), (_METRIC, metrics))
    return frozenset((item, part) for part, attempts in parts for item in attempts)
