"""Decide which state and rows of a job `gc` keeps, from the ledger and a retention. Pure.

`gc` keeps the state after these runs: the last run of every open branch, every run younger than the retention (also if it was
rewound or its branch was dropped), and for every open branch the last run older than the retention.

If a job stores state and outputs as rows of its journal, staged rows are identified by attempt and part. The part is the first
element of their target: ``output``, ``changelog``, ``internal`` and others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, islice, takewhile
from typing import Any

from rewindow.control.plan.job_fold import COMMIT, FORGET, PLAN, RESTAGE, SNAPSHOT, fold
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.spec import CHANGELOG, OUTPUT, JournalFile, TargetTotal
from rewindow.control.plan.stored_runs import RunFacts, run_facts

EVERY = 30
"""After this many runs a snapshot is due, so that a restore need not read the files of more runs."""
MOST_RUNS = 8
"""After this many times `EVERY` runs a snapshot is due even if few rows changed, because a restore reads files of each run."""
_OUTPUT, _CHANGELOG, _INTERNAL, _METRIC = OUTPUT.rstrip("/"), CHANGELOG.rstrip("/"), "internal", "metric"
WHY: Mapping[str, str] = {
    _OUTPUT: "of a run that was rewound, dropped or staged again",
    _CHANGELOG: "of a run that was forgotten or staged again",
    _INTERNAL: "the internal logs of an attempt",
    _METRIC: "the metrics of a run that was staged again",
}
"""Maps each part to the reason why its rows can be deleted although the ledger names their attempt. Other parts are kept."""
_MOST_ROWS = 5_000_000
"""If the changelogs have more rows than this, `run` leaves the snapshot to `gc`."""


def dead_attempts(state: JobState) -> frozenset[str]:
    """Return the attempts that can no longer commit, because a later row replaced their plan.

    Attempts before a RESET are left out. Their committed files are kept for the retention.
    """
    # A pending plan may repeat an attempt. Then the rows that this attempt staged are still needed, to compare the new rows
    # with.
    pending = [branch.pending for branch in state.branches.values() if branch.pending is not None]
    return state.dead - {plan.repeats for plan in pending}


def due_snapshots(state: JobState, every: int = EVERY) -> list[CommittedRun]:
    """Return the last runs of open branches that are due for a snapshot."""
    heads = {branch.head.spec.run: branch.head for branch in state.branches.values() if branch.is_open and branch.head}
    return [head for head in heads.values() if is_due(state, head, every)]


def due_before_run(state: JobState, branch: str, every: int = EVERY) -> CommittedRun | None:
    """Return the last run of a branch if the next run must first write a snapshot of the state after it; otherwise None."""
    head = state.branch(branch).head
    if head is None or not state.branch(branch).is_open or not is_due(state, head, every):
        return None
    # A run holds the rows of its snapshot in memory, so a larger snapshot is left to `gc`.
    return head if sum(run.commit.changelog_rows for run in state.basis(head.spec.run)) <= _MOST_ROWS else None


def is_due(state: JobState, run: CommittedRun, every: int) -> bool:
    """Return whether a snapshot of the state after a run, the last of an open branch, is due.

    A snapshot is due if at least ``every`` runs followed the last snapshot, and they changed at least half as many rows as that
    snapshot has. After `MOST_RUNS` times as many runs a snapshot is due in any case.
    """
    heads = [branch.head for branch in state.branches.values() if branch.is_open]
    if run not in heads or not run.spec.binding.stores or not state.has_state(run.spec.run):
        return False
    basis, snapshots = state.basis(run.spec.run), {run_of_basis.spec.run for run_of_basis in state.snapshots.values()}
    later = [run_of_basis for run_of_basis in basis if run_of_basis.spec.run not in snapshots]
    of_snapshot = sum(
        run_of_basis.commit.changelog_rows for run_of_basis in basis if run_of_basis.spec.run in snapshots
    )
    # With fewer changes, it costs more to write all rows again than later restores save.
    pays = 2 * sum(run_of_basis.commit.changelog_rows for run_of_basis in later) >= of_snapshot
    return len(later) >= every and (pays or len(later) >= MOST_RUNS * every)


def decide_snapshot(
    state: JobState, run: CommittedRun, attempt: str, journal: JournalFile, targets: Mapping[str, TargetTotal]
) -> LedgerRow:
    """Return the row that names a staged snapshot of the state after a run. ``targets``: what was staged, by changelog."""
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
    """The rows of a job's journal that its ledger needs now, and the rows that it needed at an earlier time."""

    def __init__(self, rows: Sequence[LedgerRow], state: JobState, before_ms: int) -> None:
        """``state``: the state into which ``rows`` fold.

        Rows of the journal that were needed at ``before_ms`` are kept in any case.
        """
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
        """Return whether the rows of an attempt's part are needed, were needed at ``before_ms``, or were written after that."""
        if attempt in self._pending or part not in WHY or self._named[attempt] >= self._before_ms:
            return True
        return any((attempt, part) in parts for parts in self._parts)


def is_state(part: str) -> bool:
    """Return whether the rows of a part are entries of stores, which a run in progress may still read."""
    return part == _CHANGELOG


def _wanted(state: JobState, runs: Iterable[RunFacts], before_ms: int) -> set[int]:
    """Return the numbers of the runs after which the state is kept."""
    wanted = {facts.run for facts in runs if facts.recorded_at >= before_ms}
    for branch in state.branches.values():
        if branch.is_open and branch.head is not None:
            wanted.add(branch.head.spec.run)
            older = (run.spec.run for run in reversed(branch.runs) if run.recorded_at < before_ms)
            wanted.update(islice(older, 1))
    return wanted


def _bases(state: JobState, runs: Sequence[RunFacts], wanted: Iterable[int]) -> set[int]:
    """Return the numbers of the runs and snapshots that restore the states after ``wanted`` (see `JobState.basis`)."""
    needed, bases = set(wanted), set[int]()
    # Each run was committed after its parent, so one pass backwards meets all ancestors.
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
    """Yield the attempts that ledger rows name, with the time of each row, in the order of the rows."""
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
    """Return the pairs (attempt, part) of the rows that a state needs: for outputs, to restore state, and for metrics."""
    outputs = [run.commit.attempt for item in state.branches.values() if item.is_kept for run in item.runs]
    runs = (*state.committed, *state.snapshots.values())
    stores = [run.commit.attempt for run in runs if run.spec.run not in state.forgotten]
    metrics = [run.commit.attempt for run in state.committed]
    parts = ((_OUTPUT, outputs), (_CHANGELOG, stores), (_METRIC, metrics))
    return frozenset((item, part) for part, attempts in parts for item in attempts)
