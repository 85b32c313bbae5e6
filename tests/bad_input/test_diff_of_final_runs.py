"""`diff` compares the rows of final runs, if both branches end with one after the same epoch, and says so if they do not."""

from __future__ import annotations

import pytest

from tests.bad_input.scene import Bench


@pytest.fixture
def branched(sample: Bench) -> Bench:
    """The project with a sealed main branch, and a branch of other code, which leaves out an order of the last window."""
    sample.done("rewind daily_orders --to 0", "run daily_orders --final")
    sample.edit("jobs/daily_orders.py", "amount > 0", "amount > 2.5")
    sample.done("backfill daily_orders --from 1 --branch fix")
    return sample


def test_the_rows_of_two_final_runs_are_compared(branched: Bench) -> None:
    branched.done("run daily_orders --branch fix --final")
    found = branched.json("diff daily_orders main fix")["daily-orders"]
    assert (found["only_first"], found["epochs"], found["final_runs"]) == (1, [1, 3], True)
    verdict = branched.json("report daily_orders --branch fix --diff main")["verdict"]
    assert "verdict-branch-differs" in [sentence["code"] for sentence in verdict]
    branched.done("promote daily_orders fix", "rewind daily_orders --to fix/1")


def test_the_rows_of_a_single_final_run_are_not_compared_and_it_says_so(branched: Bench) -> None:
    found = branched.json("diff daily_orders main fix")["daily-orders"]
    assert (found["epochs"], found["final_runs"]) == ([1, 3], False)
    verdict = branched.json("report daily_orders --branch fix --diff main")["verdict"]
    codes = {sentence["code"] for sentence in verdict}
    assert codes >= {"verdict-runs-left-out", "verdict-branch-equal"}
    itself = branched.json("diff daily_orders main main")
    assert itself["daily-orders"]["epochs"] is None
