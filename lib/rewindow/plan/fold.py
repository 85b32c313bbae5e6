"""What a job's ledger says: its rows folded into lineages, runs and publications. Pure, and the judge of every row.

======  ===========================================================================================================
PLAN    a run is decided; an earlier plan of the lineage that was not committed can never be committed again
COMMIT  the run is true; only for the plan that is pending in its lineage
FENCE   the pending plan is dead, though no other takes its place yet
NOTE    for people; means nothing
======  ===========================================================================================================

A row that does not fit is a broken invariant (exit code 70): the ledger was written by another hand, and nothing is
done on top of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rewindow.core.record import UNKNOWN
from rewindow.errors import InvariantError
from rewindow.plan.spec import Commit, RunSpec, chain_hash

PLAN, COMMIT, FENCE, NOTE = "PLAN", "COMMIT", "FENCE", "NOTE"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row: its number (1, 2, 3 ...), kind and JSON body. ``recorded_at`` (epoch ms) is for people only."""

    seq: int
    kind: str
    body: Mapping[str, Any]
    recorded_at: int = 0


@dataclass(frozen=True, slots=True)
class CommittedRun:
    """A run that is true. ``seq`` is the number of its COMMIT row, which counts by nothing but its place.

    ``ordinal`` is its place (1, 2, ...) among the rows that change the lineage's output tables, ``shared_ordinal`` that
    among all of the job's runs.
    """

    spec: RunSpec
    commit: Commit
    seq: int
    ordinal: int
    shared_ordinal: int
    recorded_at: int = 0


@dataclass(frozen=True, slots=True)
class Lineage:
    """A chain of runs, and the plan that may become the next."""

    name: str
    runs: tuple[CommittedRun, ...] = ()
    pending: RunSpec | None = None

    @property
    def head(self) -> CommittedRun | None:
        """The last run, whose checkpoint the next one goes on from."""
        return self.runs[-1] if self.runs else None

    @property
    def last_epoch(self) -> int:
        """The last epoch that is committed; 0 for none."""
        return self.runs[-1].spec.last_epoch if self.runs else 0

    @property
    def is_sealed(self) -> bool:
        """Whether its last run was final: nothing comes after it (D18)."""
        return bool(self.runs) and self.runs[-1].spec.final

    @property
    def chain(self) -> str:
        """The head's chain hash; ``""`` for none."""
        return self.runs[-1].commit.chain if self.runs else ""

    @property
    def watermark_ms(self) -> int:
        """The head's watermark; -1 for none."""
        return self.runs[-1].commit.watermark_ms if self.runs else UNKNOWN


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as its ledger tells it. ``rows`` is the number of its last row, ``committed`` all runs in ledger order."""

    rows: int = 0
    lineages: Mapping[str, Lineage] = field(default_factory=dict)
    committed: tuple[CommittedRun, ...] = ()

    def lineage(self, name: str) -> Lineage:
        """Return a lineage; one without runs if the ledger has none of that name."""
        return self.lineages.get(name, Lineage(name))

    def is_pending(self, spec: RunSpec) -> bool:
        """Whether this very plan may still be committed: no later row fenced it."""
        pending = self.lineage(spec.lineage).pending
        return pending is not None and (pending.run, pending.attempt.id) == (spec.run, spec.attempt.id)

    def find_run(self, run: int) -> CommittedRun | None:
        """Return the committed run of that id, or None."""
        return next((committed for committed in self.committed if committed.spec.run == run), None)


def fold(rows: Iterable[LedgerRow]) -> JobState:
    """Return what a job's ledger rows say. Raises `InvariantError` (70) at the first row that does not fit."""
    state = JobState()
    for row in rows:
        state = fold_row(state, row)
    return state


def fold_row(state: JobState, row: LedgerRow) -> JobState:
    """Return the state after one more row. Raises `InvariantError` (70) if the row does not fit."""
    if row.seq != state.rows + 1:
        raise _broken(row, f"it follows row {state.rows}")
    state = replace(state, rows=row.seq)
    if row.kind == PLAN:
        return _fold_plan(state, row)
    if row.kind == COMMIT:
        return _fold_commit(state, row)
    if row.kind == FENCE:
        return _fold_fence(state, row)
    if row.kind == NOTE:
        return state
    raise _broken(row, "this version of rewindow does not know its kind: update rewindow")


def _fold_plan(state: JobState, row: LedgerRow) -> JobState:
    spec = RunSpec.from_json(row.body)
    lineage = state.lineage(spec.lineage)
    head = lineage.head
    if spec.run != row.seq:
        raise _broken(row, f"its run is {spec.run}")
    if state.committed and spec.job != state.committed[0].spec.job:
        raise _broken(row, f"it plans the job {spec.job!r} in the ledger of {state.committed[0].spec.job!r}")
    if lineage.is_sealed:
        raise _broken(row, f"the lineage {spec.lineage!r} is sealed")
    if spec.parent != (head.spec.run if head else None) or spec.number != len(lineage.runs) + 1:
        raise _broken(
            row, f"run {spec.name} says its parent is {spec.parent}, the ledger's is {head and head.spec.run}"
        )
    if spec.first_epoch != lineage.last_epoch + 1 or spec.last_epoch < spec.first_epoch - spec.final:
        epochs = f"{spec.first_epoch}..{spec.last_epoch}"
        raise _broken(row, f"run {spec.name} takes epochs {epochs} after epoch {lineage.last_epoch}")
    if spec.clock_from_ms != lineage.watermark_ms or spec.clock_to_ms < spec.clock_from_ms:
        clock = f"{spec.clock_from_ms} to {spec.clock_to_ms}"
        raise _broken(row, f"the clock of run {spec.name} goes from {clock} after {lineage.watermark_ms}")
    if head and spec.generation < head.spec.generation:
        raise _broken(row, f"run {spec.name} goes back to generation {spec.generation} of the feed")
    return _with(state, replace(lineage, pending=spec))


def _fold_commit(state: JobState, row: LedgerRow) -> JobState:
    commit = Commit.from_json(row.body)
    lineage = _pending_in(state, commit.run)
    if lineage is None or lineage.pending is None or lineage.pending.attempt.id != commit.attempt:
        raise _broken(row, f"it commits run {commit.run} of attempt {commit.attempt}, whose plan is not pending")
    spec = lineage.pending
    if commit.chain != chain_hash(lineage.chain, spec, commit.targets):
        raise _broken(row, f"the chain of run {spec.name} is not that of its plan, its parent and its digests")
    if commit.watermark_ms != spec.clock_to_ms:
        raise _broken(row, f"run {spec.name} ends at {commit.watermark_ms}, planned was {spec.clock_to_ms}")
    run = CommittedRun(spec, commit, row.seq, len(lineage.runs) + 1, len(state.committed) + 1, row.recorded_at)
    state = replace(state, committed=(*state.committed, run))
    return _with(state, replace(lineage, runs=(*lineage.runs, run), pending=None))


def _fold_fence(state: JobState, row: LedgerRow) -> JobState:
    lineage = _pending_in(state, row.body["run"])
    if lineage is None:
        raise _broken(row, f"it fences run {row.body['run']}, whose plan is not pending")
    return _with(state, replace(lineage, pending=None))


def _pending_in(state: JobState, run: int) -> Lineage | None:
    for lineage in state.lineages.values():
        if lineage.pending is not None and lineage.pending.run == run:
            return lineage
    return None


def _with(state: JobState, lineage: Lineage) -> JobState:
    return replace(state, lineages={**state.lineages, lineage.name: lineage})


def _broken(row: LedgerRow, why: str) -> InvariantError:
    message = f"the ledger is broken at row {row.seq} ({row.kind}): {why}. Nothing was done; restore the ledger table"
    return InvariantError(message)
