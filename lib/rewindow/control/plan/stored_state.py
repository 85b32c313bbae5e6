"""A job's state as text, from which it is continued without folding the rows that made it (ADR-127). Pure.

The rows decide: the text only says what folding them gives. Nothing in it that grows with the runs is read before somebody
asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.control.plan.branches import Branch, JobState, Reset, Restart, Standing
from rewindow.control.plan.history import History
from rewindow.control.plan.spec import TableSpec
from rewindow.control.plan.stored_publications import Positions, StoredPublications, as_ranges, of_ranges
from rewindow.control.plan.stored_runs import StoredChain, StoredRuns

LAYOUT = 2
"""Grows by one whenever the text changes, or what folding a row gives. Text of another layout is not read."""


def state_lines(state: JobState) -> list[str]:
    """Return a state as lines: the state, its columns, the texts that runs share, and a line for each run and snapshot."""
    at = Positions(state.committed)
    data = {
        "rows": state.rows,
        "ledger": state.ledger,
        "committed": len(state.committed),
        "branches": [_branch_data(branch, at) for branch in state.branches.values()],
        "restarts": _restarts_data(state.restarts),
        "changes": {path: at.changes(changes) for path, changes in state.changes.items()},
        "snapshots": [[run, at.of(snapshot)] for run, snapshot in state.snapshots.items()],
        "forgotten": as_ranges(sorted(state.forgotten)),
        "dead": sorted(state.dead),
        "accepted": sorted(state.accepted),
        "reset": state.reset and [state.reset.ledger, state.reset.tables],
    }
    lines = [at.line(run) for run in at.runs]
    return [*(json.dumps(one, ensure_ascii=False) for one in (data, at.columns(), list(at.shared))), *lines]


def state_of(lines: Sequence[str]) -> JobState:
    """Return the state of `state_lines`. Its runs are read from their lines when somebody asks for them."""
    data, columns, shared = (json.loads(line) for line in lines[:3])
    runs = StoredRuns(lines[3:], shared, columns)
    return JobState(
        rows=data["rows"],
        ledger=data["ledger"],
        branches={branch["name"]: _branch(branch, runs) for branch in data["branches"]},
        committed=History(head=StoredChain(runs, range(data["committed"]))),
        restarts=_restarts(data["restarts"]),
        changes={path: History(head=StoredPublications(runs, changes)) for path, changes in data["changes"].items()},
        snapshots={run: runs[at] for run, at in data["snapshots"]},
        forgotten=frozenset(of_ranges(data["forgotten"])),
        dead=frozenset(data["dead"]),
        accepted=frozenset(data["accepted"]),
        reset=Reset(*data["reset"]) if data["reset"] else None,
    )


def _branch_data(branch: Branch, at: Positions) -> dict[str, Any]:
    return {
        "name": branch.name,
        "runs": as_ranges(at.of(run) for run in branch.runs),
        "pending": branch.pending and at.spec(branch.pending),
        "parent": branch.parent,
        "inherited": branch.inherited,
        "publications": at.changes(branch.publications),
        "unpublished": at.changes(branch.unpublished),
        "tables": {target: table.as_json() for target, table in branch.tables.items()},
        "restarts": _restarts_data(branch.restarts),
        "standing": branch.standing,
        "last_number": branch.last_number,
    }


def _branch(data: Mapping[str, Any], runs: StoredRuns) -> Branch:
    return Branch(
        name=data["name"],
        runs=History(head=StoredChain(runs, [*of_ranges(data["runs"])])),
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
