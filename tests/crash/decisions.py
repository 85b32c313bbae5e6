"""The decisions of production code on a ledger, cached because many interleavings need the same one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any

from rewindow.contracts.expectations import Observation, OnFail
from rewindow.control.plan import branch_decisions, planner, retention
from rewindow.control.plan import job_fold as ledger_state
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import MAIN, Attempt, JournalFile, RunRequest, RunSpec, TargetTotal
from rewindow.errors import RewindowError
from tests.control.ledgers import BINDING, a_feed, commit_of

BRANCH = "b"
FOR_EVER = 2**60
_UNMET = (Observation("totals", "no rows", "rows", OnFail.HOLD, 1, "1 row", "none"),)
Row = int
Ledger = tuple[Row, ...]


@dataclass
class Decisions:
    """The decisions, with ledger rows as numbers. None means that production code appends nothing.

    ``looks``: whether a process checks before its COMMIT whether it was fenced.
    """

    epochs: int
    looks: bool = True
    _rows: list[LedgerRow] = field(default_factory=list)
    _numbers: dict[str, Row] = field(default_factory=dict)
    _states: dict[Ledger, JobState] = field(default_factory=lambda: {(): JobState()})
    _decided: dict[Any, Any] = field(default_factory=dict)
    _specs: dict[Row, RunSpec] = field(default_factory=dict)

    def spec(self, plan: Row) -> RunSpec:
        """Return the plan in a PLAN row."""
        if plan not in self._specs:
            self._specs[plan] = RunSpec.from_json(self._rows[plan].body)
        return self._specs[plan]

    def fold(self, ledger: Ledger) -> JobState:
        """Fold a ledger. The states of its prefixes are cached."""
        if ledger not in self._states:
            row = replace(self._rows[ledger[-1]], seq=len(ledger))
            self._states[ledger] = ledger_state.fold_row(self.fold(ledger[:-1]), row)
        return self._states[ledger]

    def plan(self, ledger: Ledger, branch: str, attempt: str) -> Row | None:
        """Decide the PLAN row for a branch's next epoch."""
        key = ("plan", ledger, branch, attempt)
        if key not in self._decided:
            state = self.fold(ledger)
            through = min(state.branch(branch).last_epoch + 1, self.epochs)
            request = RunRequest(branch=branch, through_landing=through)
            feed, nobody = a_feed(self.epochs), Attempt(attempt)
            spec = None
            with contextlib.suppress(RewindowError):
                spec = planner.plan_run(state, feed, request, BINDING, nobody, lambda _: False)
            row = (
                None
                if spec is None or isinstance(spec, UpToDate)
                else self._numbered(LedgerRow(spec.run, ledger_state.PLAN, spec.as_json()))
            )
            self._decided[key] = row
        return self._decided[key]

    def commit(self, ledger: Ledger, plan: Row, *, holds: bool = False) -> Row | None:
        """Decide the COMMIT row of a staged plan. ``holds``: the run does not meet what is expected."""
        key = ("commit", ledger, plan, holds)
        if key not in self._decided:
            state, spec = self.fold(ledger), self.spec(plan)
            if state.find_run(spec.run) is not None and state.find_run(spec.run).spec.attempt == spec.attempt:  # type: ignore[union-attr]
                self._decided[key] = None
                return None
            try:
                if self.looks:
                    planner.check_is_pending(state, spec)
            except RewindowError:
                self._decided[key] = None
            else:
                commit = commit_of(state, spec, {"output/totals": TargetTotal(1, 1, 1, "0" * 32)})
                commit = replace(commit, expectations=_UNMET if holds else ())
                self._decided[key] = self._numbered(LedgerRow(state.rows + 1, ledger_state.COMMIT, commit.as_json()))
        return self._decided[key]

    def branching(self, ledger: Ledger, kind: str) -> Row | None:
        """Decide the row of a rewind, branch, promotion, acceptance, snapshot or removal of old state."""
        key = (kind, ledger)
        if key not in self._decided:
            try:
                travelled = self._travelled(self.fold(ledger), kind)
                self._decided[key] = None if travelled is None else self._numbered(travelled)
            except RewindowError:
                self._decided[key] = None
        return self._decided[key]

    def _travelled(self, state: JobState, kind: str) -> LedgerRow | None:
        main = state.branch(MAIN)
        if kind == "forget":
            return retention.decide_forget(state, FOR_EVER)
        if kind == "snapshot":
            heads = retention.due_snapshots(state, every=1)
            journal, name = JournalFile("snapshot", 1, "0" * 32), f"snapshot-{state.rows}"
            return retention.decide_snapshot(state, heads[0], name, journal, {}) if heads else None
        if kind == "rewind":
            return branch_decisions.decide_rewind(state, MAIN, main.runs[-2].spec.name if len(main.runs) > 1 else "0")
        if kind == "accept":
            held = state.on_hold(MAIN)
            return branch_decisions.decide_accept(state, MAIN, held[0].spec.name) if held else None
        if kind == "branch":
            return branch_decisions.decide_branch(state, BRANCH, MAIN, main.runs[0] if main.runs else None)
        return branch_decisions.decide_promote(state, BRANCH, MAIN, BINDING)

    def _numbered(self, row: LedgerRow) -> Row:
        text = f"{row.seq} {row.kind} {row.body}"
        if text not in self._numbers:
            self._numbers[text] = len(self._rows)
            self._rows.append(row)
        return self._numbers[text]
