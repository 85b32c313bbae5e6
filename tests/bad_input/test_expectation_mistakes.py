"""Every mistake in `expect:` and in `publish --accept` is named."""

from __future__ import annotations

import json

import pytest

from tests.bad_input.expecting import expecting, replayed
from tests.bad_input.scene import Bench

MISTAKES = {
    "a column that does not exist": ("not_null: usr", "output 'totals' has no column 'usr': did you mean `user`?"),
    "a range of text": ("range: {column: value, min: few}", "'few' is no value of column 'value', which is long"),
    "a value of another type": ("values: {column: value, allowed: [true]}", "True is no value of column 'value'"),
    "bounds the wrong way around": ("range: {column: value, min: 9, max: 1}", "min 9 is above max 1: swap them"),
    "no column of the query": ("sql: SELECT usr FROM new_rows", "this query cannot be used"),
    "no query": ("sql: DROP TABLE new_rows", "only SELECT ... and WITH ... are queries"),
    "an aggregate": ("sql: SELECT count(*) FROM new_rows WHERE value < 0", "it returns a row for an empty set of rows"),
    "a number of rows": (
        "sql: SELECT count(*) AS c FROM new_rows HAVING count(*) < 3",
        (
            "it returns a row for an empty set of rows, as an aggregate without GROUP BY may, so a run that adds no rows could "
            "not meet it. Select offending rows; to ask for a number of rows, use `rows: {min: N}` instead of `sql`"
        ),
    ),
    "a clock": ("sql: SELECT * FROM new_rows WHERE now() > 0", "now gives another value in each attempt"),
    "two in one": ("{unique: key, late: 1%}", "unique and late are two expectations"),
    "none": ("{on_fail: warn}", "there is no expectation: write one of not_null, unique, range"),
    "an unknown key": ("{unique: key, on_fial: warn}", "on_fial is not a known key: did you mean `on_fail`?"),
    "an unknown word": ("{unique: key, on_fail: stop}", "on_fail must be 'warn', 'hold' or 'fail'"),
    "no bound": ("rows: {}", "there is no bound: write min, max or both"),
    "a share": ("late: 0.5", "is not a share"),
    "no columns": ("unique: []", "names no columns"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("command", ["plan counts", "run counts", "ls"])
def test_a_mistake_is_named_with_its_line(bench: Bench, name: str, command: str) -> None:
    item, says = MISTAKES[name]
    expecting(bench, item)
    answer = bench.run(*command.split())
    told = answer.out + answer.err
    if command == "ls":
        assert answer.code == 0
        told = json.dumps(json.loads(bench.run("ls", "--json").out))
        says = json.dumps(says)[1:-1]
    else:
        assert answer.code == 78, told
    assert "conf/jobs/counts.yaml, line " in told
    assert says in told, told


def test_two_expectations_have_two_names(bench: Bench) -> None:
    expecting(bench, "unique: key", "unique: key")
    answer = bench.run("plan", "counts")
    assert answer.code == 78
    assert "[config-file-invalid]" in answer.err
    assert (
        "conf/jobs/counts.yaml, line 9: two expectations are named 'unique key': give one of them a `name:`"
        in answer.err
    )


def test_a_query_that_fails_on_rows_ends_the_run(bench: Bench) -> None:
    expecting(bench, '{name: broken, sql: "SELECT 1 / (value - value) FROM new_rows"}')
    answer = replayed(bench, 65)
    assert "[expectation-query-failed]" in answer.err
    assert "totals: broken: the query fails on the rows of this run" in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["publish", "counts", "--run", "1"], "--run works only with --accept"),
        (["publish", "counts", "--branch", "nobody"], "there is no branch 'nobody'"),
        (["publish", "counts", "--accept", "--run", "main/9"], "run 'main/9' does not exist"),
    ],
)
def test_publish_names_what_is_wrong(bench: Bench, words: list[str], says: str) -> None:
    answer = bench.run(*words)
    assert (answer.code, says in answer.err) == (2, True), answer.err
