"""The compare-and-set of `control.ledger_steps.update`: which decision counts if other processes append in between."""

from __future__ import annotations

import pytest

from rewindow.control.ledger_steps import drive, update
from rewindow.control.plan.job_state import LedgerRow
from rewindow.errors import NotNowError
from tests.refusals import refused


class Rows:
    """A ledger in memory. Another process appends before each of the first ``faster`` appends."""

    def __init__(self, faster: int = 0) -> None:
        self.rows: list[LedgerRow] = []
        self.faster = faster

    def state(self, name: str) -> tuple[LedgerRow, ...]:
        assert name == "job"
        return tuple(self.rows)

    def append(self, name: str, *rows: LedgerRow) -> bool:
        assert name == "job"
        if self.faster:
            self.faster -= 1
            self.rows.append(LedgerRow(len(self.rows) + 1, "NOTE", {"who": "another"}))
        if rows[0].seq != len(self.rows) + 1:
            return False
        self.rows += rows
        return True


def next_row(state: tuple[LedgerRow, ...]) -> LedgerRow:
    return LedgerRow(len(state) + 1, "NOTE", {"who": "me"})


def test_it_decides_again_on_the_state_that_beat_it():
    ledger, steps = Rows(faster=2), []
    row = drive(update(ledger, "job", "decide", next_row), steps.append)
    assert row == LedgerRow(3, "NOTE", {"who": "me"})
    assert [row.body["who"] for row in ledger.rows] == ["another", "another", "me"]
    assert steps == ["decide"] * 3, "each try is a step"


def test_a_list_of_rows_is_one_append():
    ledger = Rows()
    rows = [LedgerRow(1, "PLAN", {}), LedgerRow(2, "NOTE", {})]
    assert drive(update(ledger, "job", "decide", lambda _: rows)) == rows
    assert ledger.rows == rows


@pytest.mark.parametrize("decision", [None, "up to date"])
def test_any_other_decision_appends_nothing(decision):
    ledger = Rows()
    assert drive(update(ledger, "job", "decide", lambda _: decision)) == decision
    assert ledger.rows == []


def test_what_decides_may_refuse():
    def refuse(_state):
        message = "fenced"
        raise NotNowError("made-up", "{text}", text=message)

    with pytest.raises(NotNowError, match="fenced"):
        drive(update(Rows(), "job", "decide", refuse))


def test_a_ledger_that_is_always_busy_is_left_alone():
    with refused("ledger-busy", name="job"):
        drive(update(Rows(faster=10_000), "job", "decide", next_row))
