"""Decide which staged rows of a job's journal are still needed, where state and outputs are rows of it. Pure.

Rows are named by attempt and part, the first element of their target: ``output``, ``changelog``, ``internal`` and others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from rewindow.control.plan.branches import JobState, LedgerRow
from rewindow.control.plan.ledger_state import COMMIT, PLAN, fold
from rewindow.control.plan.ledger_state_gc import RESTAGE, SNAPSHOT
from rewindow.control.plan.spec import CHANGELOG, OUTPUT

_OUTPUT, _CHANGELOG, _INTERNAL, _METRIC = OUTPUT.rstrip("/"), CHANGELOG.rstrip("/"), "internal", "metric"
WHY: Mapping[str, str] = {
    _OUTPUT: "of a run that was rewound, dropped or staged again",
    _CHANGELOG: "of a run that was forgotten or staged again",
    _INTERNAL: "the internal logs of an attempt",
    _METRIC: "the metrics of a run that was staged again",
}
"""Why rows of an attempt that counted can be deleted, by part. Rows of other parts stay."""


class Needed:
    """What a job's ledger needs of its journal now, and what it needed a retention ago."""

    def __init__(self, rows: Sequence[LedgerRow], state: JobState, before_ms: int) -> None:
        """``rows`` and the state that they fold into. What was needed at ``before_ms`` stays, whatever happened since."""
        self._states = (state, fold(takewhile(lambda row: row.recorded_at < before_ms, rows)))
        self._before_ms = before_ms
        self._named = dict(_named(rows))
        self._parts = [_parts(one) for one in self._states]
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


def _named(rows: Iterable[LedgerRow]) -> Iterable[tuple[str, int]]:
    """Yield the attempts that rows name, with the time of the row; later rows come later."""
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
    outputs = [run.commit.attempt for one in state.branches.values() if one.is_kept for run in one.runs]
    runs = (*state.committed, *state.snapshots.values())
    stores = [run.commit.attempt for run in runs if run.spec.run not in state.forgotten]
    metrics = [run.commit.attempt for run in state.committed]
    parts = ((_OUTPUT, outputs), (_CHANGELOG, stores), (_METRIC, metrics))
    return frozenset((one, part) for part, attempts in parts for one in attempts)
