"""Expectations on the command line: met, warned and failed runs, and what a query sees of the run before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.errors import StorageError
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.expecting import NOTHING_IS_NEW, expecting, replayed, state, table
from tests.bad_input.scene import FRESH, Bench, copy_of, hour


def test_a_run_that_meets_all_is_published_and_its_results_are_stored(bench: Bench) -> None:
    expecting(bench, "unique: key", "not_null: [user, value]", "late: 100%", "{rows: {min: 1}, name: some}")
    replayed(bench, 0)
    commit = state(bench).branch("main").runs[-1].commit
    assert [(one.name, one.failed) for one in commit.expectations] == [
        ("unique key", 0),
        ("not_null user, value", 0),
        ("late", 0),
        ("some", 0),
    ]
    stored = table(bench, "rewindow/expectations").to_pylist()
    assert [(row["name"], row["is_met"], row["job"], row["branch"]) for row in stored] == [
        (one.name, True, "counts", "main") for one in commit.expectations
    ]
    assert {row["_run"] for row in stored} == {state(bench).branch("main").runs[-1].spec.run}


def test_results_are_those_without_expectations(template: Bench, tmp_path: Path) -> None:
    free, bound = copy_of(template, tmp_path / "a"), copy_of(template, tmp_path / "b")
    expecting(bound, "unique: key", NOTHING_IS_NEW % "warn", "{sql: SELECT * FROM previous_rows, on_fail: warn}")
    for bench in (free, bound):
        replayed(bench, 0)
    assert free.result() == bound.result()
    commits = [state(bench).branch("main").runs[-1].commit for bench in (free, bound)]
    digests = [{t: one.digest for t, one in commit.targets.items() if t != "expectations"} for commit in commits]
    assert digests[0] == digests[1]


def test_a_warning_is_published_and_told(bench: Bench) -> None:
    expecting(bench, NOTHING_IS_NEW % "warn")
    replayed(bench, 0)
    assert not state(bench).on_hold("main")
    shown = bench.json("show counts")
    assert [(one["run"], one["expectation"], one["on_fail"]) for one in shown["unmet"]] == [("main/3", "rows", "warn")]


def test_a_failed_run_is_not_committed_and_fails_again_until_something_changes(bench: Bench) -> None:
    expecting(bench, "{range: {column: value, max: 0}}")
    before = [row.kind for row in DeltaTables(str(bench.warehouse)).ledger_rows("counts")]
    rows = table(bench, "alerts/totals").num_rows
    for _ in range(2):
        replayed(bench, 65).refused("expectations-not-met", run="main/3", job="counts")
    after = [row.kind for row in DeltaTables(str(bench.warehouse)).ledger_rows("counts")]
    assert after == [*before, "PLAN", "PLAN"]
    assert table(bench, "alerts/totals").num_rows == rows
    bench.edit("conf/jobs/counts.yaml", "max: 0", "max: 1000")
    assert replayed(bench, 0).out.count("completes the plan") == 1


def test_a_query_cannot_depend_on_the_attempt_that_makes_the_run(bench: Bench) -> None:
    expecting(bench, "{sql: SELECT _run FROM new_rows WHERE _run % 2 = 0}")
    replayed(bench, 78).refused("expectation-query-invalid")


def test_a_change_of_expectations_needs_no_approval(bench: Bench) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", "")
    expecting(bench, "unique: key")
    replayed(bench, 0)
    bench.rows("more", hour(FRESH + 1))
    bench.edit("conf/jobs/counts.yaml", "- unique: key", "- not_null: user")
    replayed(bench, 0)
    bench.rows("most", hour(FRESH + 2))
    bench.edit("conf/jobs/counts.yaml", "    expect:\n      - not_null: user\n", "")
    replayed(bench, 0)
    bench.done("verify counts main/3 main/4 main/5")
    assert table(bench, "rewindow/expectations").num_rows == 2


def test_the_rows_of_the_run_before_are_those_of_one_run(bench: Bench) -> None:
    query = "{sql: SELECT _run FROM previous_rows WHERE _run <> (SELECT max(_run) FROM previous_rows), on_fail: fail}"
    expecting(bench, query, "{name: one, sql: SELECT DISTINCT _run FROM previous_rows, on_fail: warn}")
    replayed(bench, 0)
    one = state(bench).branch("main").runs[-1].commit.expectations[1]
    assert one.failed == 1, one


@pytest.mark.parametrize("is_deleted", [False, True])
def test_the_rows_of_the_run_before_are_found_after_optimize_and_vacuum(bench: Bench, *, is_deleted: bool) -> None:
    replayed(bench, 0)
    bench.rows("next", hour(FRESH + 1))
    committed = state(bench).branch("main").runs[-1]
    output = DeltaTable(str(bench.warehouse / "alerts" / "totals"))
    output.optimize.compact()
    output.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    bench.done("land activity")
    expecting(bench, "{name: all, sql: SELECT * FROM previous_rows, on_fail: warn}")
    if is_deleted:
        before = Path.glob(bench.warehouse / "alerts" / "totals", "*.parquet")
        for file in before:
            file.unlink()
        with pytest.raises(StorageError):
            list(DeltaTables(str(bench.warehouse)).run_batches(committed, "output/totals", ["user"]))
        return
    replayed(bench, 0)
    observed = state(bench).branch("main").runs[-1].commit.expectations[0]
    assert observed.failed == committed.commit.targets["output/totals"].rows > 0


SLOW = '"WITH RECURSIVE t(n) AS (%s UNION ALL SELECT n + 1 FROM t WHERE n < 400000) SELECT * FROM t WHERE n < 0"'
"""A query that takes some ten seconds if its middle returns a row. Nothing stops it: an endless one would slow later tests."""
MISTAKES = {
    "not_null: usr": ("expectation-column-unknown", {"column": "usr"}),
    "range: {column: value, min: few}": ("expectation-value-invalid", {"value": "few", "type": "long"}),
    "values: {column: value, allowed: [true]}": ("expectation-value-invalid", {"value": True}),
    "range: {column: value, min: 9, max: 1}": ("expectation-bounds-swapped", {}),
    "sql: SELECT usr FROM new_rows": ("expectation-query-invalid", {}),
    "sql: DROP TABLE new_rows": ("expectation-query-invalid", {}),
    "sql: SELECT count(*) FROM new_rows WHERE value < 0": ("expectation-query-invalid", {}),
    "sql: SELECT count(*) AS c FROM new_rows HAVING count(*) < 3": ("expectation-query-invalid", {}),
    "sql: SELECT * FROM new_rows WHERE now() > 0": ("expectation-query-invalid", {}),
    f"sql: {'/**/' * 60}DELETE": ("expectation-query-invalid", {}),
    f"sql: SELECT {'(' * 9_000}1{')' * 9_000}": ("expectation-query-invalid", {}),
    f"{{sql: {SLOW % 'SELECT 1'}, timeout: 1s}}": ("expectation-query-endless", {"limit": "1s"}),
}
"""Mistakes that only a topology or a query planner finds. Those of the file are in `tests/config`."""


@pytest.mark.parametrize("item", MISTAKES)
def test_a_mistake_is_named_with_its_line(bench: Bench, item: str) -> None:
    code, facts = MISTAKES[item]
    expecting(bench, item)
    message = bench.refuses("plan counts", code, **facts).message
    assert re.match(r"conf/jobs/counts.yaml, line \d+: ", message)


def test_a_mistake_makes_the_job_broken_for_ls(bench: Bench) -> None:
    expecting(bench, "not_null: usr")
    assert bench.json("ls")["jobs"][0]["exit_code"] == 78


def test_a_query_that_fails_on_rows_ends_the_run(bench: Bench) -> None:
    expecting(bench, '{name: broken, sql: "SELECT 1 / (value - value) FROM new_rows"}')
    replayed(bench, 65).refused("expectation-query-failed", output="totals", expectation="broken")


def test_a_query_that_does_not_end_on_rows_ends_the_run_and_a_simpler_one_completes_it(bench: Bench) -> None:
    slow = SLOW % "SELECT count(*) FROM new_rows HAVING count(*) > 0"
    expecting(bench, f"{{name: slow, timeout: 1s, sql: {slow}}}")
    replayed(bench, 71).refused("expectation-query-too-slow", output="totals", expectation="slow", limit="1s")
    bench.edit("conf/jobs/counts.yaml", slow, "SELECT * FROM new_rows WHERE value < 0")
    bench.done("run counts")
