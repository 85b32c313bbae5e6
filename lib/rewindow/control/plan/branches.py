"""Runs that are true, the chains they form, and what each chain's tables got: what a job's ledger folds into. Pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rewindow.control.plan.spec import CHANGELOG, Commit, RunSpec, TableSpec
from rewindow.streams.record import UNKNOWN


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row: its number (1, 2, 3 ...), kind and JSON body. ``recorded_at`` (epoch ms) is for people only."""

    seq: int
    kind: str
    body: Mapping[str, Any]
    recorded_at: int = 0


@dataclass(frozen=True, slots=True)
class CommittedRun:
    """A run that is true. ``seq`` is the number of its COMMIT row, ``shared_ordinal`` its place among all of the job's."""

    spec: RunSpec
    commit: Commit
    seq: int
    shared_ordinal: int
    recorded_at: int = 0


@dataclass(frozen=True, slots=True)
class Publication:
    """What one Delta commit does to a branch's output tables: the runs whose rows come, and those whose rows go."""

    adds: tuple[CommittedRun, ...] = ()
    removes: tuple[CommittedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """Where a table was published anew: the publication epoch, and the ordinal that holds all that was due by then."""

    epoch: int
    ordinal: int


class Standing(StrEnum):
    """Whether a branch may go on."""

    OPEN = "open"
    PROMOTED = "promoted"
    """A branch that became another branch: what comes next is the other's."""
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Branch:
    """A chain of runs, and the plan that may become the next.

    A branch begins with runs of its parent, ``inherited`` of them, whose rows are in the parent's output tables only.
    ``publications`` is what its own output tables get, one commit each; ``tables`` are those tables, by target;
    ``restarts`` says, by target, where one was published anew.
    """

    name: str
    runs: tuple[CommittedRun, ...] = ()
    pending: RunSpec | None = None
    parent: str | None = None
    inherited: int = 0
    publications: tuple[Publication, ...] = ()
    tables: Mapping[str, TableSpec] = field(default_factory=dict)
    restarts: Mapping[str, Restart] = field(default_factory=dict)
    standing: Standing = Standing.OPEN

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

    @property
    def own_runs(self) -> tuple[CommittedRun, ...]:
        """The runs whose rows are in its own output tables."""
        return self.runs[self.inherited :]

    @property
    def is_open(self) -> bool:
        """Whether it may take another run."""
        return self.standing is Standing.OPEN

    @property
    def is_there(self) -> bool:
        """Whether its output tables are kept: nobody gave it up."""
        return self.standing is not Standing.DROPPED

    def index_of(self, run: int | None) -> int | None:
        """Return how many runs the chain has up to and with a run; 0 for None, None for a run that is not in it."""
        if run is None:
            return 0
        return next((place for place, one in enumerate(self.runs, start=1) if one.spec.run == run), None)


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as its ledger tells it. ``rows`` is the number of its last row, ``committed`` all runs in ledger order."""

    rows: int = 0
    branches: Mapping[str, Branch] = field(default_factory=dict)
    committed: tuple[CommittedRun, ...] = ()
    restarts: Mapping[str, Restart] = field(default_factory=dict)
    """Where a table that branches share was published anew, by its path."""
    changes: tuple[Publication, ...] = ()
    """What tables that branches share get, of each committed run, snapshot and forgetting, in ledger order."""
    snapshots: Mapping[int, CommittedRun] = field(default_factory=dict)
    """By run, the snapshot of all stores at its end: an entry that has the snapshot's own number, attempt and files."""
    forgotten: frozenset[int] = frozenset()
    """Runs and snapshots whose rows left the changelogs: no run goes on from one of those runs without a snapshot."""

    def branch(self, name: str) -> Branch:
        """Return a branch; one without runs if the ledger has none of that name."""
        return self.branches.get(name, Branch(name))

    def is_pending(self, spec: RunSpec) -> bool:
        """Whether this very plan may still be committed: no later row fenced it."""
        pending = self.branch(spec.branch).pending
        return pending is not None and (pending.run, pending.attempt.id) == (spec.run, spec.attempt.id)

    def shared(self, path: str) -> tuple[Publication, ...]:
        """Return what the shared table at a path gets, one commit each: it gets the runs of all branches that name it."""
        changes = (
            Publication(
                tuple(run for run in change.adds if _writes(run, path)),
                tuple(run for run in change.removes if _writes(run, path, CHANGELOG)),
            )
            for change in self.changes
        )
        return tuple(change for change in changes if change.adds or change.removes)

    def naming(self, path: str) -> tuple[CommittedRun, ...]:
        """Return the runs and snapshots whose rows are in the shared table at a path in the end."""
        runs: dict[int, CommittedRun] = {}
        for change in self.shared(path):
            for run in change.removes:
                runs.pop(run.spec.run, None)
            runs |= {run.spec.run: run for run in change.adds}
        return tuple(runs.values())

    def basis(self, run: int | None) -> tuple[CommittedRun, ...]:
        """Return what the state after a run is read from: the last snapshot of its chain, if any, and the runs since."""
        later: list[CommittedRun] = []
        for one in reversed(self.chain_to(run)):
            if (snapshot := self.snapshots.get(one.spec.run)) is not None:
                return (snapshot, *reversed(later))
            later.append(one)
        return tuple(reversed(later))

    def has_state(self, run: int | None) -> bool:
        """Whether the state after a run can still be read: nothing that it is read from was forgotten."""
        return all(one.spec.run not in self.forgotten for one in self.basis(run))

    def chain_to(self, run: int | None) -> tuple[CommittedRun, ...]:
        """Return the runs that a run stands on, itself included, first to last; none for None. Rewound ones are found too."""
        chain: list[CommittedRun] = []
        known = {committed.spec.run: committed for committed in self.committed}
        while run is not None and (found := known.get(run)) is not None:
            chain.append(found)
            run = found.spec.parent
        return tuple(reversed(chain))

    def find_run(self, run: int) -> CommittedRun | None:
        """Return the committed run of that id, or None."""
        return next((committed for committed in self.committed if committed.spec.run == run), None)


def _writes(run: CommittedRun, path: str, prefix: str = "") -> bool:
    return any(table.path == path and target.startswith(prefix) for target, table in run.spec.binding.tables.items())


def shared_runs(one: Sequence[CommittedRun], other: Sequence[CommittedRun]) -> int:
    """Return how many runs two chains have in common from their beginning."""
    common = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine.spec.run != theirs.spec.run:
            break
        common += 1
    return common
