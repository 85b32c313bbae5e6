"""Runs on hold in the fold: what is published, what waits, and what a rewind, a promotion or a reset makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.control.health.holds import describe_holds, explain_holds
from rewindow.control.plan.branch_decisions import (
    decide_accept,
    decide_branch,
    decide_drop,
    decide_promote,
    decide_rewind,
)
from rewindow.control.plan.job_fold import ACCEPT, fold
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.repair_decisions import decide_republish, decide_restage, needed
from rewindow.control.plan.spec import Commit
from rewindow.errors import UsageError
from rewindow.tables.shared.publications import due_tables, missing, net
from tests.control.ledgers import BINDING, HELD, a_feed, commit_row, plan_row, planned, run_rows
from tests.refusals import containing, fixes, refused


def three_runs(*on_hold: int, branch: str = "main", rows: tuple[LedgerRow, ...] = ()) -> list[LedgerRow]:
    made = list(rows)
    for number in (1, 2, 3):
        feed = a_feed(number)
        made = run_rows(
            made, f"{branch}-{number}", feed, holds=number in on_hold, branch=branch, through_landing=number
        )
    return made


def added(branch) -> list[str]:
    return [run.spec.name for one in branch.publications for run in one.adds]


def accepted(rows: list[LedgerRow], run: str | None = None, branch: str = "main") -> list[LedgerRow]:
    row = decide_accept(fold(rows), branch, run)
    assert row is not None
    return [*rows, row]


def test_a_run_on_hold_and_all_behind_it_wait():
    state = fold(three_runs(2))
    main = state.branch("main")
    assert added(main) == ["main/1"]
    assert [run.spec.name for run in main.published_runs] == ["main/1"]
    assert [run.spec.name for run in main.runs] == ["main/1", "main/2", "main/3"]
    assert [run.spec.name for run in state.on_hold("main")] == ["main/2"]


def test_tables_that_branches_share_do_not_wait():
    state = fold(three_runs(1))
    due = {one.target: len(one.publications) for one in due_tables(state, "main")}
    assert due == {"output/totals": 0, "changelog/sums": 3, "metrics": 3}


def test_an_accepted_run_is_published_with_what_waited_behind_it():
    rows = accepted(three_runs(2))
    state = fold(rows)
    assert added(state.branch("main")) == ["main/1", "main/2", "main/3"]
    assert not state.branch("main").unpublished
    assert state.on_hold("main") == ()
    assert decide_accept(state, "main", "main/2") is None, "a command that is called again finds its work done"
    assert decide_accept(state, "main", None) is None


def test_publishing_stops_at_the_next_run_on_hold():
    rows = three_runs(1, 3)
    with refused("held-runs-several", runs="main/1 or --run main/3"):
        decide_accept(fold(rows), "main", None)
    assert added(fold(accepted(rows, "main/1")).branch("main")) == ["main/1", "main/2"]
    later_first = accepted(rows, "3")
    assert added(fold(later_first).branch("main")) == [], "the first one still holds it back"
    assert added(fold(accepted(later_first)).branch("main")) == ["main/1", "main/2", "main/3"]


@given(st.sets(st.integers(1, 3)), st.permutations([1, 2, 3]))
def test_when_all_are_accepted_the_publications_are_those_of_runs_that_held_nothing(on_hold, order):
    rows = three_runs(*on_hold)
    for number in order:
        if number in on_hold:
            rows = accepted(rows, str(number))
    other = [[run.spec.run for run in one.adds] for one in fold(three_runs()).branch("main").publications]
    held = [[run.spec.run for run in one.adds] for one in fold(rows).branch("main").publications]
    assert held == other


def test_a_run_that_is_rewound_while_on_hold_is_in_no_publication():
    rows = three_runs(2)
    row = decide_rewind(fold(rows), "main", "main/1")
    assert row is not None
    main = fold([*rows, row]).branch("main")
    assert added(main) == ["main/1"]
    assert [one.removes for one in main.publications] == [(), ()]
    assert main.unpublished == ()
    again = run_rows([*rows, row], "again", a_feed(2))
    assert added(fold(again).branch("main")) == ["main/1", "main/4"]
    assert fold(again).find_run(again[-1].body["run"]) is not None


def test_a_rewind_to_the_run_on_hold_leaves_it_on_hold():
    rows = three_runs(2)
    row = decide_rewind(fold(rows), "main", "main/2")
    assert row is not None
    state = fold([*rows, row])
    assert [run.spec.name for run in state.on_hold("main")] == ["main/2"]
    assert added(fold(accepted([*rows, row])).branch("main")) == ["main/1", "main/2"]


def test_a_published_run_leaves_the_tables_even_if_a_later_one_is_on_hold():
    rows = three_runs(3)
    row = decide_rewind(fold(rows), "main", "main/1")
    assert row is not None
    main = fold([*rows, row]).branch("main")
    assert [[run.spec.name for run in one.removes] for one in main.publications] == [[], [], ["main/2"]]
    assert [run.spec.name for run in net(main.publications).adds] == ["main/1"]


def test_a_branch_with_a_run_on_hold_is_not_promoted():
    rows = three_runs(2, branch="trial", rows=tuple(three_runs()))
    with refused(
        "promoted-run-on-hold",
        run="trial/2",
        branch="trial",
        reason="totals: rows: 0 rows, expected at least 1",
        job="counts",
    ):
        decide_promote(fold(rows), "trial", "main", BINDING)
    done = accepted(rows, branch="trial")
    row = decide_promote(fold(done), "trial", "main", BINDING)
    assert row is not None
    fold([*done, row])
    with refused("ledger-row-broken", reason=containing("on hold")):
        fold([*rows, replace(row, seq=len(rows) + 1)])


def test_a_branch_that_stands_on_a_run_on_hold_is_not_promoted():
    rows = three_runs(3)
    branch = decide_branch(fold(rows), "trial", "main", fold(rows).branch("main").head)
    assert branch is not None
    rows = run_rows([*rows, branch], "d", a_feed(4), branch="trial")
    assert fold(rows).on_hold("trial") == (), "its own tables wait for nothing"
    with refused("promoted-run-on-hold", run="main/3", branch="trial", job="counts"):
        decide_promote(fold(rows), "trial", "main", BINDING)
    rewound = decide_rewind(fold(rows), "main", "main/2")
    assert rewound is not None
    for before in (rows, [*rows, rewound]):
        done = accepted(before, "main/3", branch="trial")
        assert decide_promote(fold(done), "trial", "main", BINDING) is not None


def test_a_dropped_branch_holds_nothing():
    rows = three_runs(2, branch="trial", rows=tuple(three_runs()))
    drop = decide_drop(fold(rows), "trial")
    assert drop is not None
    state = fold([*rows, drop])
    assert (state.on_hold("trial"), decide_accept(state, "trial", None)) == ((), None)


def test_a_promotion_replaces_runs_on_hold():
    rows = three_runs(branch="trial", rows=tuple(three_runs(2)))
    row = decide_promote(fold(rows), "trial", "main", BINDING)
    assert row is not None
    main = fold([*rows, row]).branch("main")
    assert (main.unpublished, [run.spec.name for run in net(main.publications).adds]) == (
        (),
        ["trial/1", "trial/2", "trial/3"],
    )
    assert [run.spec.name for run in main.publications[-1].removes] == ["main/1"]


def test_files_of_a_run_on_hold_are_needed_and_can_be_restaged():
    rows = three_runs(2)
    state = fold(rows)
    held = state.on_hold("main")[0]
    assert held.spec.run in needed(state)
    row = decide_restage(state, held, "repeated", held.commit.journal)
    main = fold(accepted([*rows, row])).branch("main")
    assert main.publications[1].adds[0].commit.attempt == "repeated"


def test_a_republication_leaves_out_what_waits():
    rows = three_runs(1)
    state = fold(rows)
    table = state.branch("main").tables["output/totals"]
    rows.append(decide_republish(state, "main", "output/totals", table))
    due = next(one for one in due_tables(fold(rows), "main") if one.target == "output/totals")
    assert list(missing(due, 0)) == []
    due = next(one for one in due_tables(fold(accepted(rows)), "main") if one.target == "output/totals")
    assert (due.restart.ordinal, list(missing(due, 0))) == (1, [1, 2, 3])


@pytest.mark.parametrize("run", [1, 99])
def test_only_a_run_on_hold_can_be_accepted(run):
    rows = three_runs(2)
    with refused("ledger-row-broken", reason=containing("is not on hold")):
        fold([*rows, LedgerRow(len(rows) + 1, ACCEPT, {"run": run})])
    done = accepted(rows)
    with refused("ledger-row-broken", reason=containing("is not on hold")):
        fold([*done, replace(done[-1], seq=len(done) + 1)])


@pytest.mark.parametrize(("branch", "run"), [("nobody", None), ("main", "main/9"), ("main", "0")])
def test_what_cannot_be_accepted_is_said(branch, run):
    with pytest.raises(UsageError):
        decide_accept(fold(three_runs(2)), branch, run)


def test_a_commit_without_expectations_is_stored_as_before():
    spec = planned([], "a")
    body = commit_row([plan_row(spec)], spec).body
    assert "expectations" not in body
    held = commit_row([plan_row(spec)], spec, holds=True).body
    assert Commit.from_json(held).expectations == (HELD,)
    assert Commit.from_json(held).as_json() == held
    assert {name: value for name, value in held.items() if name != "expectations"} == body


def test_a_hold_says_what_it_is_and_how_it_ends():
    first, second = describe_holds(fold(three_runs(2, 3)), "main")
    assert (first["run"], first["before"], first["behind"]) == ("main/2", "main/1", ["main/3"])
    assert first["unmet"] == [HELD.sentence]
    accept, remove = "publish counts --accept --run main/2", "rewind counts --to main/1"
    assert fixes("\n".join(explain_holds([first, second]))) == [accept, remove]
    assert explain_holds(describe_holds(fold(three_runs()), "main")) == []
