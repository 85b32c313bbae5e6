"""Illegal ledgers, of which `fold` must refuse the last row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rewindow.control.plan import job_fold as folding
from rewindow.control.plan.job_fold import (
    BRANCH,
    COMMIT,
    DROP,
    FENCE,
    FORGET,
    PLAN,
    PROMOTE,
    REPUBLISH,
    RESET,
    REWIND,
)
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.spec import RunSpec
from rewindow.errors import InvariantError
from tests.control.ledgers import HOUR, a_feed, commit_row, plan_row, planned, run_rows

Rows = list[LedgerRow]
FEED = a_feed(4)


def _runs(*throughs: int, branch: str = "main", onto: Sequence[LedgerRow] = ()) -> Rows:
    rows = list(onto)
    for through in throughs:
        rows = run_rows(rows, f"{branch}-{through}", FEED, branch=branch, through_landing=through)
    return rows


def _and(rows: Rows, kind: str, **body: Any) -> Rows:
    return [*rows, LedgerRow(len(rows) + 1, kind, body)]


def _branched() -> Rows:
    rows = _and(_runs(1, 2), BRANCH, branch="trial", parent="main", at=1)
    return _runs(2, branch="trial", onto=rows)


def _head(rows: Rows, branch: str) -> int | None:
    head = folding.fold(rows).branch(branch).head
    return head.spec.run if head else None


def _planned(rows: Rows, change: Callable[[RunSpec], RunSpec], through: int = 3) -> Rows:
    spec = change(planned(rows, "forger", FEED, through_landing=through))
    return [*rows, LedgerRow(len(rows) + 1, PLAN, spec.as_json())]


def _taking(spec: RunSpec, **change: Any) -> RunSpec:
    return replace(spec, input=replace(spec.input, **change))


def _committed(rows: Rows, **change: Any) -> Rows:
    good = commit_row(rows, planned(rows[:-1], "one", FEED, through_landing=3))
    return [*rows, LedgerRow(good.seq, COMMIT, {**good.body, **change})]


def _pending(rows: Rows) -> Rows:
    return [*rows, plan_row(planned(rows, "one", FEED, through_landing=3))]


def _fenced() -> Rows:
    rows = _pending(_runs(1))
    late = commit_row(rows, planned(rows[:-1], "one", FEED, through_landing=3))
    return [*_and(rows, FENCE, run=rows[-1].seq), replace(late, seq=late.seq + 1)]


def _rewound() -> Rows:
    rows = _pending(_runs(1, 2))
    late = commit_row(rows, planned(rows[:-1], "one", FEED, through_landing=3))
    return [*_and(rows, REWIND, branch="main", to=1, head=3), replace(late, seq=late.seq + 1)]


def _reset() -> Rows:
    rows = _pending(_runs(1, 2))
    late = commit_row(rows, planned(rows[:-1], "one", FEED, through_landing=3))
    return [*_and(rows, RESET, was="", tables={}), replace(late, seq=late.seq + 1)]


def _promote(rows: Rows, **change: Any) -> Rows:
    body = {"branch": "trial", "into": "main", "branch_head": _head(rows, "trial"), "head": _head(rows, "main")}
    return _and(rows, PROMOTE, **{**body, "tables": {}, **change})


FORGED: dict[str, Callable[[], Rows]] = {
    "a number is missing": lambda: [*_runs(1), LedgerRow(4, "NOTE", {})],
    "a number comes twice": lambda: [*_runs(1), LedgerRow(2, "NOTE", {})],
    "an unknown kind": lambda: _and(_runs(1), "GUESS"),
    "a plan that skips an epoch": lambda: _planned(_runs(1), lambda spec: _taking(spec, first=3)),
    "a plan that takes an epoch twice": lambda: _planned(_runs(1, 2), lambda spec: _taking(spec, first=2)),
    "a plan with another parent": lambda: _planned(_runs(1, 2), lambda spec: replace(spec, parent=1)),
    "a plan with another number": lambda: _planned(_runs(1), lambda spec: replace(spec, number=5)),
    "a plan that names another row": lambda: _planned(_runs(1), lambda spec: replace(spec, run=1)),
    "a plan with another clock": lambda: _planned(_runs(1), lambda spec: _taking(spec, clock_from_ms=7)),
    "a plan whose clock goes back": lambda: _planned(_runs(1, 2), lambda spec: _taking(spec, clock_to_ms=HOUR)),
    "a commit of another attempt": lambda: _committed(_pending(_runs(1)), attempt="two"),
    "a commit on another chain": lambda: _committed(_pending(_runs(1)), chain="0" * 64),
    "a commit with another watermark": lambda: _committed(_pending(_runs(1)), watermark_ms=1),
    "a commit that was fenced": _fenced,
    "a commit that a rewind fenced": _rewound,
    "a commit that is made twice": lambda: [*_runs(1), replace(_runs(1)[-1], seq=3)],
    "a fence of nothing": lambda: _and(_runs(1), FENCE, run=1),
    "a rewind that saw another head": lambda: _and(_runs(1, 2, 3), REWIND, branch="main", to=1, head=3),
    "a rewind to a run of nobody": lambda: _and(_runs(1, 2), REWIND, branch="main", to=2, head=3),
    "a branch of a name that was used": lambda: _and(_branched(), BRANCH, branch="trial", parent="main", at=1),
    "a branch at a run of nobody": lambda: _and(_runs(1), BRANCH, branch="trial", parent="main", at=9),
    "a promotion that saw another head": lambda: _promote(_branched(), head=1),
    "a promotion that saw another branch": lambda: _promote(_branched(), branch_head=1),
    "a promotion of what is behind": lambda: _promote(_runs(3, onto=_branched())),
    "a promotion into itself": lambda: _promote(_branched(), into="trial", head=_head(_branched(), "trial")),
    "a second promotion": lambda: _promote(_promote(_branched())),
    "a plan on a branch that was promoted": lambda: [
        *_promote(_branched()),
        replace(_pending_on_trial()[-1], seq=len(_branched()) + 2),
    ],
    "a forgetting of what a branch stands on": lambda: _and(_runs(1, 2), FORGET, runs=[3]),
    "a forgetting of nobody": lambda: _and(_runs(1, 2), FORGET, runs=[99]),
    "a drop of main": lambda: _and(_runs(1), DROP, branch="main"),
    "a second drop": lambda: _and(_and(_branched(), DROP, branch="trial"), DROP, branch="trial"),
    "a reset of another ledger": lambda: _and(_runs(1), RESET, was="another", tables={}),
    "a commit that a reset fenced": _reset,
    "a table anew that is not there": lambda: _and(_runs(1), REPUBLISH, branch="main", target="output/none"),
}


def _pending_on_trial() -> Rows:
    rows = _branched()
    spec = planned(rows, "one", FEED, branch="trial", through_landing=3)
    return [*rows, plan_row(replace(spec, run=spec.run + 1))]


def accepted(name: str) -> str:
    """Return ``ok`` if the fold refuses the last row of a forged ledger, and otherwise ``wrong: ...``."""
    rows = FORGED[name]()
    state = JobState()
    for row in rows[:-1]:
        state = folding.fold_row(state, row)
    try:
        folding.fold_row(state, rows[-1])
    except InvariantError:
        return "ok"
    return f"wrong: the fold accepts {name}"
