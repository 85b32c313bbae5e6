"""`diff` compares the rows of final runs, if both branches end with one after the same epoch, and says so if they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.scene import Say

LEFT_OUT = "are not compared: the branches do not both end with a final run after the same epoch"


@pytest.fixture
def branched(say: Say, shop: Path) -> Path:
    """The project with a sealed main branch, and a branch of other code, which leaves out an order of the last window."""
    assert say("land", "orders")[0] == 0
    assert say("run", "daily_orders", "--final")[0] == 0
    job = shop / "jobs/daily_orders.py"
    job.write_text(job.read_text().replace("amount > 0", "amount > 2.5"))
    assert say("backfill", "daily_orders", "--from", "1", "--branch", "fix")[0] == 0
    return shop


def test_the_rows_of_two_final_runs_are_compared(say: Say, branched: Path) -> None:
    assert say("run", "daily_orders", "--branch", "fix", "--final")[0] == 0
    code, text = say("diff", "daily_orders", "main", "fix")
    assert code == 1
    assert text.startswith("Compared epochs 1 to 3 and the final runs, which main and fix replayed separately.\n")
    found = json.loads(say("diff", "daily_orders", "main", "fix", "--json")[1])["daily-orders"]
    assert (found["only_first"], found["epochs"], found["final_runs"]) == (1, [1, 3], True)
    _, text = say("report", "daily_orders", "--branch", "fix", "--diff", "main", "--json")
    assert "Differs from branch main in epochs 1 to 3 and the final runs: daily-orders in 1 key" in text
    code, text = say("promote", "daily_orders", "fix")
    assert code == 0
    assert "Branch main is sealed now, because fix/2 is a final run: it takes no more runs." in text
    assert say("rewind", "daily_orders", "--to", "fix/1")[0] == 0


def test_the_rows_of_a_single_final_run_are_not_compared_and_it_says_so(say: Say, branched: Path) -> None:
    code, text = say("diff", "daily_orders", "main", "fix")
    assert code == 0
    assert text.startswith(
        "Compared epochs 1 to 3, which main and fix replayed separately. The rows of final run main/"
    )
    assert LEFT_OUT in text
    _, text = say("report", "daily_orders", "--branch", "fix", "--diff", "main", "--json")
    told = [one["text"] for one in json.loads(text)["verdict"]]
    assert any(LEFT_OUT in one for one in told)
    assert "Equal to branch main in epochs 1 to 3, in every output" in told


def test_a_final_run_that_both_branches_have_is_not_compared(say: Say, branched: Path) -> None:
    code, text = say("diff", "daily_orders", "main", "main")
    assert code == 0
    assert text.startswith("Nothing to compare: ")
    assert LEFT_OUT not in text
