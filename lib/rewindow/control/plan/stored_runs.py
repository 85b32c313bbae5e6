"""Stored runs: one line of text per run, decoded when the run is first used. Pure.

A year has thousands of runs, and a command needs the last few. The values that a command needs of all runs are stored in columns:
their numbers, parents, attempts and times, and how many rows each run added to an output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from rewindow.contracts.expectations import Observation
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState
from rewindow.control.plan.sequence import History, MadeWhenUsed, Numbered
from rewindow.control.plan.spec import (
    CHANGELOG,
    Attempt,
    Commit,
    EpochSpan,
    JobBinding,
    JournalFile,
    RunSpec,
    TargetTotal,
)


class StoredRuns(MadeWhenUsed[CommittedRun]):
    """The runs of a stored state, by position. Each is decoded from its line on first use."""

    def __init__(self, lines: Sequence[str], shared: Sequence[str], columns: Mapping[str, Any]) -> None:
        """Keep the lines without decoding them.

        ``shared``: the texts to which lines refer by their positions in this sequence.
        """
        self._lines, self._shared = lines, shared
        self._made: list[CommittedRun | None] = [None] * len(lines)
        self._values: dict[int, Any] = {}
        self._bindings: dict[int, JobBinding] = {}
        self.numbers: list[int] = columns["numbers"]
        self.attempts: list[str] = columns["attempts"]
        self.keys: list[str | None] = columns["keys"]
        self.rows: Mapping[str, list[int]] = columns["rows"]
        self.sizes: list[tuple[int, int, int]] = columns["sizes"]
        self._parents: list[int | None] = columns["parents"]
        self._recorded: list[int] = columns["recorded"]
        self._planned: Mapping[int, str] = dict(columns["planned"])
        self._bound: Sequence[int] = columns["bindings"]

    def __len__(self) -> int:
        """Return the number of runs and snapshots."""
        return len(self._lines)

    def at(self, position: int) -> CommittedRun:
        """Return the run at a position; see `MadeWhenUsed`."""
        made = self._made[position]
        if made is None:
            made = self._made[position] = self._run(json.loads(self._lines[position]))
        return made

    @cached_property
    def position(self) -> Mapping[int, int]:
        """Maps the number of each run to its position."""
        return {number: position for position, number in enumerate(self.numbers)}

    def facts(self, position: int) -> tuple[int, int | None, str, str, int]:
        """Return the fields of `RunFacts` for the run at a position, without decoding its line."""
        attempt = self.attempts[position]
        return (
            self.numbers[position],
            self._parents[position],
            self._planned.get(position, attempt),
            attempt,
            self._recorded[position],
        )

    def bindings(self) -> Iterator[JobBinding]:
        """Yield each binding of a run or snapshot once."""
        return (self._binding(number) for number in self._bound)

    def spec(self, data: Sequence[Any]) -> RunSpec:
        """Return the plan from ``data``, the result of `stored_state._Positions.spec`."""
        branch, number, run, parent, span, final, binding, attempt, key, takes_over, repeats, accepted = data
        name, host, pid, pid_started, versions = attempt
        made_by = Attempt(name, host, pid, pid_started, self._value(versions))
        return RunSpec(
            *(branch, number, run, parent, EpochSpan(*span), final, self._binding(binding)),
            *(made_by, key, takes_over, repeats, tuple(accepted)),
        )

    def _run(self, data: Sequence[Any]) -> CommittedRun:
        spec, of, seq, ordinal, recorded_at = data
        run, attempt, journal, targets, totals, consumed, watermark_ms, chained, held, observed, *zone_ends = of
        made = {
            target: TargetTotal(*totals[4 * index : 4 * index + 4]) for index, target in enumerate(self._value(targets))
        }
        results = tuple(Observation.from_json(observation) for observation in observed)
        file = JournalFile(*journal)
        commit = Commit(run, attempt, file, made, consumed, watermark_ms, chained, held, results, *zone_ends)
        return CommittedRun(self.spec(spec), commit, seq, ordinal, recorded_at)

    def _value(self, number: int) -> Any:
        if number not in self._values:
            self._values[number] = json.loads(self._shared[number])
        return self._values[number]

    def _binding(self, number: int) -> JobBinding:
        if number not in self._bindings:
            self._bindings[number] = JobBinding.from_json(self._value(number))
        return self._bindings[number]


class StoredChain(Numbered[CommittedRun]):
    """Some stored runs, in order."""

    def __init__(self, runs: StoredRuns, positions: Sequence[int]) -> None:
        """Bind to ``runs`` and the positions of this chain's runs."""
        self.runs, self.positions = runs, positions

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.positions)

    def at(self, position: int) -> CommittedRun:
        """Return the run at a position in the chain; see `MadeWhenUsed`."""
        return self.runs[self.positions[position]]

    def find(self, number: int) -> CommittedRun | None:
        """Return the run with a number, or None."""
        position = self.runs.position.get(number)
        return self.runs[position] if position is not None and position in self.positions else None

    def numbers(self) -> Iterable[int]:
        """Return the numbers of the runs, in order."""
        return (self.runs.numbers[position] for position in self.positions)

    def until(self, length: int) -> StoredChain:
        """Return the first ``length`` runs."""
        return StoredChain(self.runs, self.positions[:length])


def run_of_request(branch: Branch, key: str) -> CommittedRun | None:
    """Return the branch's own run that was made for a request with this key, or None."""
    head = branch.runs.head
    if not isinstance(head, StoredChain):
        return next((run for run in branch.own_runs if run.spec.key == key), None)
    stored = (
        head[index] for index in range(branch.inherited, len(head)) if head.runs.keys[head.positions[index]] == key
    )
    later = (run for run in branch.runs[max(branch.inherited, len(head)) :] if run.spec.key == key)
    return next(chain(stored, later), None)


def sizes_of(state: JobState) -> Iterator[_Size]:
    """Yield the sizes of the files of each run and snapshot of a job."""
    head = state.committed.head
    before = len(head) if isinstance(head, StoredChain) else 0
    if isinstance(head, StoredChain):
        yield from (_Size(head.runs.numbers[position], *head.runs.sizes[position]) for position in head.positions)
    yield from map(size_of, (*state.committed[before:], *state.snapshots.values()))


def size_of(run: CommittedRun) -> _Size:
    """Return the sizes of the files of a run or snapshot."""
    totals = [total for target, total in run.commit.targets.items() if target.startswith(CHANGELOG)]
    files, size = sum(total.files for total in totals), sum(total.bytes for total in totals)
    return _Size(run.spec.run, files, size, run.commit.journal.bytes)


class RunFacts(NamedTuple):
    """Facts of a committed run: its number, its parent's number, two attempts, and the time of its commit (epoch ms).

    ``planned_by`` and ``staged_by`` differ if lost files were staged again.
    """

    run: int
    parent: int | None
    planned_by: str
    staged_by: str
    recorded_at: int


def run_facts(state: JobState) -> list[RunFacts]:
    """Return the facts of all committed runs, in the order of the ledger."""
    stored, later = _parts(state.committed)
    facts = [] if stored is None else [RunFacts(*stored.runs.facts(position)) for position in stored.positions]
    return [*facts, *map(_facts, later)]


def attempts_of(runs: History[CommittedRun], first: int = 0) -> Iterator[str]:
    """Yield the attempts that staged the runs of a chain, from the run at position ``first`` on."""
    stored, later = _parts(runs)
    if stored is not None:
        yield from (stored.runs.attempts[position] for position in stored.positions[first:])
    before = len(runs) - len(later)
    yield from (run.commit.attempt for run in later[max(0, first - before) :])


def bindings_of(state: JobState) -> Iterator[JobBinding]:
    """Yield the bindings of committed runs. A binding that several runs share may be yielded only once."""
    stored, later = _parts(state.committed)
    return chain(stored.runs.bindings() if stored else (), (run.spec.binding for run in later))


class _Size(NamedTuple):
    """The files of a run or snapshot: number and bytes of its changelog files, and the bytes of its journal file."""

    run: int
    files: int
    bytes: int
    journal: int


def _parts(runs: History[CommittedRun]) -> tuple[StoredChain | None, tuple[CommittedRun, ...]]:
    head = runs.head
    return (head, runs[len(head) :]) if isinstance(head, StoredChain) else (None, runs[:])


def _facts(run: CommittedRun) -> RunFacts:
    return RunFacts(run.spec.run, run.spec.parent, run.spec.attempt.id, run.commit.attempt, run.recorded_at)
