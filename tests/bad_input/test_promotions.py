"""A promotion that takes rows away says so, and so does what comes before and after it."""

from __future__ import annotations

import json

from tests.bad_input.scene import MODULE, SCORE, Bench


def test_a_promotion_that_takes_rows_away_says_how_many_and_how_it_is_undone(bench: Bench) -> None:
    (before,) = json.loads(bench.run("head", "counts", "--json").out)["tables"]
    bench.write("bench_job.py", MODULE.format(score=SCORE).replace('grace="5m"', 'grace="3d"'))
    branch = bench.run("backfill", "counts", "--from", "1", "--branch", "patient")
    assert "totals got no rows from its 24 records" in branch.out
    assert "`rewindow run counts --branch patient --final` closes all, and seals the branch" in branch.out
    promoted = bench.run("promote", "counts", "patient")
    assert promoted.code == 0, promoted
    assert f"totals: {before['count']} rows fewer than before, 0 in place of {before['count']}." in promoted.out
    back = bench.run("rewind", "counts", "--to", "main/2")
    assert back.code == 2
    assert "To undo a promotion, restore the code, then backfill and promote again" in back.err
    bench.code(SCORE)
    for words in (("backfill", "counts", "--from", "1", "--branch", "undo"), ("promote", "counts", "undo", "--json")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    assert json.loads(answer.out)["fewer"] == {}
    (after,) = json.loads(bench.run("head", "counts", "--json").out)["tables"]
    assert [{**row, "_run": ""} for row in after["rows"]] == [{**row, "_run": ""} for row in before["rows"]]


def test_a_promotion_says_that_the_present_code_is_not_that_of_the_branch(bench: Bench) -> None:
    fixed = MODULE.format(score=SCORE).replace('grace="5m"', 'grace="6m"')
    bench.write("bench_job.py", fixed)
    for branch in ("same", "other"):
        assert bench.run("backfill", "counts", "--from", "1", "--branch", branch).code == 0
    assert "present code" not in bench.run("promote", "counts", "same").out
    bench.code(SCORE)
    promoted = bench.run("promote", "counts", "other")
    assert promoted.code == 0, promoted
    assert "The present code is not that of other/1: " in promoted.out
    assert "grace of closed" in promoted.out
    assert "which is refused (76) otherwise" in promoted.out
    assert bench.run("run", "counts").code == 76
    bench.write("bench_job.py", fixed)
    assert bench.run("run", "counts").code == 0


def test_a_run_says_that_its_branch_is_new_and_a_question_about_an_unknown_branch_names_the_known_ones(
    bench: Bench,
) -> None:
    said = "Branch fux is new, and starts with the first landing. `rewindow branch drop counts fux` removes it."
    assert said in bench.run("run", "counts", "--branch", "fux").out
    assert "is new" not in bench.run("run", "counts", "--branch", "fux").out
    for more in ((), ("--missing",)):
        asked = bench.run("why", "counts", "u1", "--branch", "fox", *more)
        assert asked.code == 2
        assert "job 'counts' has no runs on branch 'fox' (branches: main, fux)" in asked.err
