"""The state into which a job's ledger folds: committed runs, branches, and publications to tables. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rewindow.control.plan.sequence import History, Numbered
from rewindow.control.plan.spec import CHANGELOG, OUTPUT, Commit, RunSpec, TableSpec
from rewindow.streams.record import UNKNOWN


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A ledger row: its number (from 1), kind and JSON body.

    ``recorded_at`` (epoch ms) decides what `gc` keeps. In a catalog, it also decides which reports are read together with a
    stored fold. No result depends on it. ``token`` is unique to the append that wrote the row, and empty before the row is
    stored.
    """

    seq: int
    kind: str
    body: Mapping[str, Any]
    recorded_at: int = 0
    token: str = ""


@dataclass(frozen=True, slots=True)
class CommittedRun:
    """A committed run. ``seq`` is the number of its COMMIT row, ``shared_ordinal`` its position among all runs of the job."""

    spec: RunSpec
    commit: Commit
    seq: int
    shared_ordinal: int
    recorded_at: int = 0


@dataclass(frozen=True, slots=True)
class Publication:
    """One Delta commit to a table: the runs whose rows it adds, and the runs whose rows it removes."""

    adds: tuple[CommittedRun, ...] = ()
    removes: tuple[CommittedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """A republication of a table: the publication epoch that it starts, and the number of publications that it replaces."""

    epoch: int
    ordinal: int


class Standing(StrEnum):
    """Status of a branch. Only open branches take runs."""

    OPEN = "open"
    PROMOTED = "promoted"
    """Another branch has taken over the chain of this branch and will get the next runs."""
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Branch:
    """A chain of runs, and the plan of the next run (``pending``), if any.

    The chain starts with ``inherited`` runs of the parent branch, whose rows are only in the parent's output tables. ``tables``
    are the tables that the branch writes, by target. ``publications`` are the commits to the branch's own output tables, and
    ``restarts`` the republications of these tables by target. ``unpublished`` are the commits that wait until a run is
    accepted. Each adds one run: the first a run on hold, the others the runs after it, up to the end of the chain.
    ``last_number`` is the number of the last run that this branch committed, even if the run was rewound or replaced since.
    """

    name: str
    runs: History[CommittedRun] = field(default_factory=History)
    pending: RunSpec | None = None
    parent: str | None = None
    inherited: int = 0
    publications: History[Publication] = field(default_factory=History)
    unpublished: History[Publication] = field(default_factory=History)
    tables: Mapping[str, TableSpec] = field(default_factory=dict)
    restarts: Mapping[str, Restart] = field(default_factory=dict)
    standing: Standing = Standing.OPEN
    last_number: int = 0

    @property
    def next_number(self) -> int:
        """The number of the next run.

        It is higher than the number of any run that this branch committed, than the head's number, and than the length of the
        chain (ADR-141).
        """
        return max(len(self.runs), self.last_number, self.head.spec.number if self.head else 0) + 1

    @property
    def head(self) -> CommittedRun | None:
        """The last run, from whose checkpoint the next run resumes."""
        return self.runs[-1] if self.runs else None

    @property
    def last_epoch(self) -> int:
        """The last committed epoch; 0 without runs."""
        return self.runs[-1].spec.input.last if self.runs else 0

    @property
    def is_sealed(self) -> bool:
        """Whether the last run was final, so that no run can follow (D18)."""
        return bool(self.runs) and self.runs[-1].spec.final

    @property
    def chain(self) -> str:
        """The head's chain hash; ``""`` without runs."""
        return self.runs[-1].commit.chain if self.runs else ""

    @property
    def watermark_ms(self) -> int:
        """The head's watermark; -1 without runs."""
        return self.runs[-1].commit.watermark_ms if self.runs else UNKNOWN

    @property
    def base(self) -> CommittedRun | None:
        """The run of the parent branch after which this branch starts; None for the beginning."""
        return self.runs[self.inherited - 1] if self.inherited else None

    @property
    def own_runs(self) -> tuple[CommittedRun, ...]:
        """The runs whose rows are in the branch's own output tables."""
        return self.runs[self.inherited :]

    @property
    def has_own_runs(self) -> bool:
        """Whether the branch's own output tables have rows of runs, or will have them."""
        return len(self.runs) > self.inherited

    @property
    def published_runs(self) -> Sequence[CommittedRun]:
        """The runs before the first run on hold."""
        return self.runs.until(len(self.runs) - len(self.unpublished))

    @property
    def is_open(self) -> bool:
        """Whether the branch takes more runs."""
        return self.standing is Standing.OPEN

    @property
    def is_kept(self) -> bool:
        """Whether the branch was not dropped, so that its output tables are kept."""
        return self.standing is not Standing.DROPPED

    def index_of(self, run: int | None) -> int | None:
        """Return the number of runs in the chain up to and including a run; 0 for None, and None if the chain lacks the run."""
        if run is None:
            return 0
        return next((number for number, run_id in enumerate(run_ids(self.runs), start=1) if run_id == run), None)


@dataclass(frozen=True, slots=True)
class Reset:
    """What a RESET row ended: a ledger identity, and the tables that had been published under it.

    ``tables`` maps the path of each table to its targets, and each target to its last publication epoch.
    """

    ledger: str
    tables: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job. ``rows`` is the number of the last ledger row. ``committed`` are all runs in ledger order."""

    rows: int = 0
    ledger: str = ""
    """The identity of the ledger: the token of its first row, or of its last RESET row (ADR-75)."""
    branches: Mapping[str, Branch] = field(default_factory=dict)
    committed: History[CommittedRun] = field(default_factory=History)
    restarts: Mapping[str, Restart] = field(default_factory=dict)
    """Republications of tables that branches share, by table path."""
    changes: Mapping[str, History[Publication]] = field(default_factory=dict)
    """Publications to tables that branches share, by path. Each run, snapshot or FORGET row that changes the table adds one."""
    snapshots: Mapping[int, CommittedRun] = field(default_factory=dict)
    """Maps each run's number to the snapshot of all stores after this run. The snapshot has its own number, attempt and files."""
    forgotten: frozenset[int] = frozenset()
    """Runs and snapshots whose rows were removed from the changelogs. Only a snapshot can restore the state after them."""
    dead: frozenset[str] = frozenset()
    """Attempts that can no longer commit, because a later row ended their plan."""
    accepted: frozenset[int] = frozenset()
    """Numbers of runs that did not meet an expectation with ``on_fail: hold``, and that somebody accepted."""
    reset: Reset | None = None
    """The last RESET. Its tables must be emptied before anything else is published."""

    def branch(self, name: str) -> Branch:
        """Return the branch of this name, or an empty branch if the ledger has no such branch."""
        return self.branches.get(name, Branch(name))

    def restart(self, branch: str, target: str, path: str) -> Restart:
        """Return the last republication of a branch's table; epoch 1 if there was none."""
        restarts = self.branch(branch).restarts if target.startswith(OUTPUT) else self.restarts
        return restarts.get(target if target.startswith(OUTPUT) else path, Restart(1, 0))

    def on_hold(self, branch: str) -> tuple[CommittedRun, ...]:
        """Return the runs of a branch that are on hold; empty for a closed branch. Inherited runs are left out."""
        # Only unpublished runs can be on hold, so the many published runs need not be decoded.
        chain = self.branch(branch)
        return (
            self.holding([run for publication in chain.unpublished for run in publication.adds])
            if chain.is_open
            else ()
        )

    def holding(self, runs: Sequence[CommittedRun]) -> tuple[CommittedRun, ...]:
        """Return the runs on hold among ``runs``."""
        return tuple(run for run in runs if run.commit.holds and run.spec.run not in self.accepted)

    def is_pending(self, spec: RunSpec) -> bool:
        """Return whether this plan may still be committed, because no later row fenced it."""
        pending = self.branch(spec.branch).pending
        return pending is not None and (pending.run, pending.attempt.id) == (spec.run, spec.attempt.id)

    def shared(self, path: str) -> History[Publication]:
        """Return the publications to the shared table at a path. All branches that use the table publish to it."""
        return self.changes.get(path, History())

    def naming(self, path: str) -> tuple[CommittedRun, ...]:
        """Return the runs and snapshots whose rows the shared table at a path has once all publications are made."""
        runs: dict[int, CommittedRun] = {}
        for change in self.shared(path):
            for run in change.removes:
                runs.pop(run.spec.run, None)
            runs |= {run.spec.run: run for run in change.adds}
        return tuple(runs.values())

    def basis(self, run: int | None) -> tuple[CommittedRun, ...]:
        """Return the runs that restore the state after a run: the last snapshot in its chain, if any, and the runs after it."""
        later: list[CommittedRun] = []
        for committed in self._back_from(run):
            if (snapshot := self.snapshots.get(committed.spec.run)) is not None:
                return (snapshot, *reversed(later))
            later.append(committed)
        return tuple(reversed(later))

    def has_state(self, run: int | None) -> bool:
        """Return whether the state after a run can still be restored."""
        return all(committed.spec.run not in self.forgotten for committed in self.basis(run))

    def chain_to(self, run: int | None) -> tuple[CommittedRun, ...]:
        """Return a run's ancestors and the run itself, oldest first, even if they were rewound; empty for None."""
        return tuple(reversed(list(self._back_from(run))))

    def _back_from(self, run: int | None) -> Iterator[CommittedRun]:
        """Yield a run and its ancestors, newest first."""
        # Each run was committed after its parent, so one pass backwards meets all ancestors.
        for committed in reversed(self.committed):
            if run is None:
                return
            if committed.spec.run == run:
                yield committed
                run = committed.spec.parent

    def find_run(self, run: int | None) -> CommittedRun | None:
        """Return the committed run with an id, or None."""
        if run is None:
            return None
        stored = self.committed.head
        later = reversed(self.committed[len(stored) :] if isinstance(stored, Numbered) else self.committed)
        match = next((committed for committed in later if committed.spec.run == run), None)
        return stored.find(run) if match is None and isinstance(stored, Numbered) else match


def with_shared(changes: Mapping[str, History[Publication]], change: Publication) -> Mapping[str, History[Publication]]:
    """Return the publications to shared tables, by path, with ``change`` added for each table that its runs write.

    Rows are removed only from changelogs.
    """
    adds, removes = _by_path(change.adds, ""), _by_path(change.removes, CHANGELOG)
    grown = {
        path: changes.get(path, History()).append(Publication(tuple(adds.get(path, ())), tuple(removes.get(path, ()))))
        for path in dict.fromkeys((*adds, *removes))
    }
    return {**changes, **grown}


def _by_path(runs: Iterable[CommittedRun], prefix: str) -> dict[str, list[CommittedRun]]:
    """Return runs by the paths of the shared tables that they write, for targets that start with ``prefix``."""
    runs_of: dict[str, list[CommittedRun]] = {}
    for run in runs:
        targets = run.spec.binding.tables.items()
        paths = [table.path for target, table in targets if target.startswith(prefix) and not target.startswith(OUTPUT)]
        for path in dict.fromkeys(paths):
            runs_of.setdefault(path, []).append(run)
    return runs_of


def run_ids(runs: History[CommittedRun]) -> Iterator[int]:
    """Yield the numbers of runs, in order, without decoding stored runs."""
    later: Sequence[CommittedRun] = runs
    if isinstance(runs.head, Numbered):
        yield from runs.head.numbers()
        later = runs[len(runs.head) :]
    yield from (run.spec.run for run in later)


def shared_runs(chain: History[CommittedRun], other: History[CommittedRun]) -> int:
    """Return the length of the common prefix of two chains."""
    common = 0
    for mine, theirs in zip(run_ids(chain), run_ids(other), strict=False):
        if mine != theirs:
            break
        common += 1
    return common
