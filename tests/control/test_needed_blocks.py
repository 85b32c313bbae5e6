"""Staged rows are needed as long as the ledger, now or a retention ago, publishes or restores from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewindow.control.plan.branch_decisions import decide_rewind
from rewindow.control.plan.job_fold import fold
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.repair_decisions import decide_restage
from rewindow.control.plan.retention import Needed, decide_forget, decide_snapshot
from rewindow.control.plan.spec import MAIN, JournalFile
from tests.control.ledgers import plan_row, planned, run_rows

LONG_AGO, NOW = 1_000, 9_000
PARTS = ("output", "changelog", "internal", "report")


def dated(rows: Sequence[LedgerRow], at: int) -> list[LedgerRow]:
    return [row if row.recorded_at else replace(row, recorded_at=at) for row in rows]


def kept(rows: Sequence[LedgerRow], attempt: str, before_ms: int) -> list[str]:
    needed = Needed(rows, fold(rows), before_ms)
    return [part for part in PARTS if needed.has(attempt, part)]


def three_runs() -> list[LedgerRow]:
    rows: list[LedgerRow] = []
    for attempt, through in (("a", 1), ("b", 2), ("c", 3)):
        rows = run_rows(rows, attempt, through_landing=through)
    return dated(rows, LONG_AGO)


def test_a_run_that_counts_keeps_what_it_staged_but_its_internal_logs() -> None:
    assert kept(three_runs(), "a", NOW) == ["output", "changelog", "report"]
    assert kept(three_runs(), "a", LONG_AGO) == list(PARTS), "it is younger than the retention"


def test_a_rewound_run_keeps_its_output_for_the_retention_and_its_state_until_it_is_forgotten() -> None:
    rows = three_runs()
    rows = dated([*rows, decide_rewind(fold(rows), MAIN, "main/2")], NOW)
    assert kept(rows, "c", NOW) == ["output", "changelog", "report"]
    assert kept(rows, "c", NOW + 1) == ["changelog", "report"]
    assert kept(rows, "b", NOW + 1) == ["output", "changelog", "report"]


def test_a_forgotten_run_keeps_its_state_for_the_retention() -> None:
    rows = three_runs()
    head = fold(rows).branch(MAIN).runs[-1]
    snapshot = decide_snapshot(fold(rows), head, "s", JournalFile("s", 1, "0" * 32), {})
    rows = dated([*rows, snapshot], LONG_AGO)
    forget = decide_forget(fold(rows), NOW)
    assert forget is not None
    rows = dated([*rows, forget], NOW)
    assert kept(rows, "c", NOW) == ["output", "changelog", "report"]
    assert kept(rows, "c", NOW + 1) == ["output", "report"]
    assert kept(rows, "s", NOW + 1) == ["changelog", "report"]


def test_a_planned_attempt_keeps_everything() -> None:
    rows = run_rows([], "a", through_landing=1)
    rows = dated([*rows, plan_row(planned(rows, "b"))], LONG_AGO)
    assert kept(rows, "b", NOW) == list(PARTS)
    assert not Needed(rows, fold(rows), NOW).is_known("c")


def test_a_run_that_was_staged_again_shows_its_metrics_once() -> None:
    parts = ("metric", "output")
    rows = three_runs()
    run = fold(rows).branch(MAIN).runs[1]
    rows = dated([*rows, decide_restage(fold(rows), run, "b2", JournalFile("s", 1, "0" * 32))], NOW)

    def shown(attempt: str) -> list[str]:
        return [part for part in parts if Needed(rows, fold(rows), NOW + 1).has(attempt, part)]

    assert {attempt: shown(attempt) for attempt in ("a", "b", "b2")} == {"a": [*parts], "b": [], "b2": [*parts]}
