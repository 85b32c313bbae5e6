"""Convert a job's state to text and back, so that commands need not fold the ledger rows again (ADR-127). Pure.

The text is only a cache of the state that results from the ledger rows. If it differs, the ledger rows count. The parts of the
text that grow with the number of runs are decoded on first use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import cached_property
from typing import Any

from rewindow.control.plan.job_state import Branch, CommittedRun, JobState, Publication, Reset, Restart, Standing
from rewindow.control.plan.sequence import History, MadeWhenUsed
from rewindow.control.plan.spec import OUTPUT, JobBinding, RunSpec, TableSpec, canonical_json
from rewindow.control.plan.stored_runs import StoredChain, StoredRuns, size_of

LAYOUT = 3
"""The version of the text. It grows by one if the form of the text changes, or if folding a row gives another state.

Text of another version is not read.
"""
_Change = int | list[list[int]]
"""A publication. If it adds one run and removes none, it is the position of that run. Otherwise it is two lists: the
positions of the added runs, and the positions of the removed runs."""


def state_lines(state: JobState) -> list[str]:
    """Return a state as lines: the state without runs, the columns of all runs, the texts that runs share, and a line per run.

    Snapshots count as runs.
    """
    positions = _Positions(state.committed)
    data = {
        "rows": state.rows,
        "ledger": state.ledger,
        "committed": len(state.committed),
        "branches": [_branch_data(branch, positions) for branch in state.branches.values()],
        "restarts": _restarts_data(state.restarts),
        "changes": {path: positions.changes(changes) for path, changes in state.changes.items()},
        "snapshots": [[run, positions.of(snapshot)] for run, snapshot in state.snapshots.items()],
        "forgotten": _as_ranges(sorted(state.forgotten)),
        "dead": sorted(state.dead),
        "accepted": sorted(state.accepted),
        "reset": state.reset and [state.reset.ledger, state.reset.tables],
    }
    lines = [positions.line(run) for run in positions.runs]
    return [
        *(json.dumps(part, ensure_ascii=False) for part in (data, positions.columns(), list(positions.shared))),
        *lines,
    ]


def state_of(lines: Sequence[str]) -> JobState:
    """Return the state that `state_lines` converted. Runs are decoded from their lines on first use."""
    data, columns, shared = (json.loads(line) for line in lines[:3])
    runs = StoredRuns(lines[3:], shared, columns)
    return JobState(
        rows=data["rows"],
        ledger=data["ledger"],
        branches={branch["name"]: _branch(branch, runs) for branch in data["branches"]},
        committed=History(head=StoredChain(runs, range(data["committed"]))),
        restarts=_restarts(data["restarts"]),
        changes={path: History(head=StoredPublications(runs, changes)) for path, changes in data["changes"].items()},
        snapshots={run: runs[position] for run, position in data["snapshots"]},
        forgotten=frozenset(_of_ranges(data["forgotten"])),
        dead=frozenset(data["dead"]),
        accepted=frozenset(data["accepted"]),
        reset=Reset(*data["reset"]) if data["reset"] else None,
    )


class StoredPublications(MadeWhenUsed[Publication]):
    """Publications of stored runs, in order."""

    def __init__(self, runs: StoredRuns, changes: Iterable[Sequence[Any]]) -> None:
        """``changes``: what `_Positions.changes` returned."""
        self._runs = runs
        self._changes: list[_Change] = []
        for change in changes:
            if isinstance(change[0], int):
                self._changes += range(change[0], change[0] + change[1])
            else:
                self._changes.append([*change])

    def __len__(self) -> int:
        """Return the number of publications."""
        return len(self._changes)

    def at(self, position: int) -> Publication:
        """Return the publication at a position; see `MadeWhenUsed`."""
        adds, removes = _both(self._changes[position])
        return Publication(
            tuple(self._runs[added] for added in adds), tuple(self._runs[removed] for removed in removes)
        )

    def rows(self, target: str) -> dict[int, int]:
        """Return how many rows of each run are in an output table after these publications, by the number of the run.

        ``target``: the output.
        """
        counts = self._runs.rows.get(target, ())
        return {run: counts[position] for run, position in self._net.items() if counts and counts[position]}

    def attempts(self) -> dict[int, str]:
        """Return the id of the attempt that wrote each run, by the number of the run.

        The result has the runs whose rows are in the table after these publications.
        """
        return {run: self._runs.attempts[position] for run, position in self._net.items()}

    @cached_property
    def _net(self) -> dict[int, int]:
        numbers, net = self._runs.numbers, dict[int, int]()
        for change in self._changes:
            if isinstance(change, int):
                net[numbers[change]] = change
                continue
            for position in change[1]:
                net.pop(numbers[position], None)
            net |= {numbers[position]: position for position in change[0]}
        return net


def _branch_data(branch: Branch, positions: _Positions) -> dict[str, Any]:
    return {
        "name": branch.name,
        "runs": _as_ranges(positions.of(run) for run in branch.runs),
        "pending": branch.pending and positions.spec(branch.pending),
        "parent": branch.parent,
        "inherited": branch.inherited,
        "publications": positions.changes(branch.publications),
        "unpublished": positions.changes(branch.unpublished),
        "tables": {target: table.as_json() for target, table in branch.tables.items()},
        "restarts": _restarts_data(branch.restarts),
        "standing": branch.standing,
        "last_number": branch.last_number,
    }


def _branch(data: Mapping[str, Any], runs: StoredRuns) -> Branch:
    return Branch(
        name=data["name"],
        runs=History(head=StoredChain(runs, [*_of_ranges(data["runs"])])),
        pending=runs.spec(data["pending"]) if data["pending"] else None,
        parent=data["parent"],
        inherited=data["inherited"],
        publications=History(head=StoredPublications(runs, data["publications"])),
        unpublished=History(StoredPublications(runs, data["unpublished"])),
        tables={target: TableSpec.from_json(table) for target, table in data["tables"].items()},
        restarts=_restarts(data["restarts"]),
        standing=Standing(data["standing"]),
        last_number=data["last_number"],
    )


def _restarts_data(restarts: Mapping[str, Restart]) -> dict[str, list[int]]:
    return {name: [restart.epoch, restart.ordinal] for name, restart in restarts.items()}


def _restarts(data: Mapping[str, Sequence[int]]) -> dict[str, Restart]:
    return {name: Restart(*restart) for name, restart in data.items()}


class _Positions:
    """Assigns positions to runs and shared texts, in the order of the stored lines. Committed runs come first."""

    def __init__(self, committed: Iterable[CommittedRun]) -> None:
        self.runs: list[CommittedRun] = []
        self._known: dict[int, int] = {}
        self.shared: dict[str, int] = {}
        """Maps each text that many runs share to its position. Each such text is stored once."""
        for run in committed:
            self.of(run)

    def of(self, run: CommittedRun) -> int:
        """Return the position of a run. A new run gets the next position."""
        # A run's number is the number of a ledger row, so it is unique among runs and snapshots.
        position = self._known.setdefault(run.spec.run, len(self.runs))
        if position == len(self.runs):
            self.runs.append(run)
        return position

    def changes(self, publications: Iterable[Publication]) -> list[list[Any]]:
        """Return publications as lists.

        ``[first, count]`` means publications that each add one run, at consecutive positions from ``first`` on.

        Any other publication is ``[added, removed]``, two lists of positions.
        """
        changes: list[list[Any]] = []
        for publication in publications:
            adds, removes = ([self.of(run) for run in runs] for runs in (publication.adds, publication.removes))
            if len(adds) != 1 or removes:
                changes.append([adds, removes])
            elif changes and isinstance(changes[-1][0], int) and sum(changes[-1]) == adds[0]:
                changes[-1][1] += 1
            else:
                changes.append([adds[0], 1])
        return changes

    def text(self, value: Any) -> int:
        """Return the position of a value's JSON text among the shared texts. A new text gets a new position."""
        return self.shared.setdefault(canonical_json(value), len(self.shared))

    def spec(self, spec: RunSpec) -> list[Any]:
        """Return a plan as a list of JSON values. Texts that many runs share are replaced by their positions."""
        of = spec.attempt
        attempt = [of.id, of.host, of.pid, of.pid_started, self.text(of.versions)]
        return [
            *(spec.branch, spec.number, spec.run, spec.parent, list(astuple(spec.input)), spec.final),
            *(self._binding(spec.binding), attempt, spec.key, spec.takes_over, spec.repeats, spec.accepted),
        ]

    def line(self, run: CommittedRun) -> str:
        """Return the line of text that stores a committed run."""
        of = run.commit
        totals = [
            number for total in of.targets.values() for number in (total.rows, total.files, total.bytes, total.digest)
        ]
        commit = [
            *(of.run, of.attempt, [of.journal.path, of.journal.bytes, of.journal.digest], self.text(list(of.targets))),
            *(
                totals,
                of.consumed,
                of.watermark_ms,
                of.chain,
                of.held,
                [expectation.as_json() for expectation in of.expectations],
            ),
            *([of.zone_ends] if of.zone_ends else []),
        ]
        return _compact([self.spec(run.spec), commit, run.seq, run.shared_ordinal, run.recorded_at])

    def columns(self) -> dict[str, Any]:
        """Return the columns: values of all runs that can be read without decoding the lines of the runs."""
        outputs = sorted({name for run in self.runs for name in run.commit.targets if name.startswith(OUTPUT)})
        totals = [run.commit.targets for run in self.runs]
        return {
            "numbers": [run.spec.run for run in self.runs],
            "attempts": [run.commit.attempt for run in self.runs],
            "keys": [run.spec.key for run in self.runs],
            "sizes": [size_of(run)[1:] for run in self.runs],
            "parents": [run.spec.parent for run in self.runs],
            "recorded": [run.recorded_at for run in self.runs],
            "planned": [
                [position, run.spec.attempt.id]
                for position, run in enumerate(self.runs)
                if run.spec.attempt.id != run.commit.attempt
            ],
            "bindings": sorted({self._binding(run.spec.binding) for run in self.runs}),
            "rows": {name: [of[name].rows if name in of else 0 for of in totals] for name in outputs},
        }

    def _binding(self, binding: JobBinding) -> int:
        others = canonical_json({"feed": binding.feed, "job": binding.job, **binding.timed_json})
        text = f'{{"binding":{binding.text},{others[1:]}'
        return self.shared.setdefault(text, len(self.shared))


def _both(change: _Change) -> tuple[Iterable[int], Iterable[int]]:
    return ((change,), ()) if isinstance(change, int) else (change[0], change[1])


def _as_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return numbers as pairs: for each range of consecutive numbers, the first number and the length."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and sum(ranges[-1]) == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, 1])
    return ranges


def _of_ranges(ranges: Iterable[Sequence[int]]) -> Iterator[int]:
    """Yield the numbers from the pairs that `_as_ranges` returned."""
    for first, count in ranges:
        yield from range(first, first + count)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
