"""Every mistake in `expect:` and in `publish --accept` is named."""

from __future__ import annotations

import pytest

from tests.bad_input.expecting import expecting, replayed
from tests.bad_input.scene import Bench

ENDLESS = '"WITH RECURSIVE t(n) AS (%s UNION ALL SELECT n + 1 FROM t) SELECT * FROM t WHERE n < 0"'
"""A query that never ends if what stands in its middle returns a row."""
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
    f"{{sql: {ENDLESS % 'SELECT 1'}, timeout: 1s}}": ("expectation-query-endless", {"limit": "1s"}),
}
"""Mistakes that only a topology or a query planner finds. Those of the file are in `tests/config`."""


@pytest.mark.parametrize("item", MISTAKES)
def test_a_mistake_is_named_with_its_line(bench: Bench, item: str) -> None:
    code, facts = MISTAKES[item]
    expecting(bench, item)
    assert bench.refuses("plan counts", code, **facts).message.startswith("conf/jobs/counts.yaml, line ")


def test_a_mistake_makes_the_job_broken_for_ls(bench: Bench) -> None:
    expecting(bench, "not_null: usr")
    assert bench.json("ls")["jobs"][0]["exit_code"] == 78


def test_a_query_that_fails_on_rows_ends_the_run(bench: Bench) -> None:
    expecting(bench, '{name: broken, sql: "SELECT 1 / (value - value) FROM new_rows"}')
    replayed(bench, 65).refused("expectation-query-failed", output="totals", expectation="broken")


def test_a_query_that_does_not_end_on_rows_ends_the_run_and_a_simpler_one_completes_it(bench: Bench) -> None:
    endless = ENDLESS % "SELECT count(*) FROM new_rows HAVING count(*) > 0"
    expecting(bench, f"{{name: endless, timeout: 1s, sql: {endless}}}")
    replayed(bench, 71).refused("expectation-query-too-slow", output="totals", expectation="endless", limit="1s")
    bench.edit("conf/jobs/counts.yaml", endless, "SELECT * FROM new_rows WHERE value < 0")
    bench.done("run counts")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("publish counts --run 1", "run-without-accept"),
        ("publish counts --branch nobody", "branch-unknown"),
        ("publish counts --accept --run main/9", "run-unknown"),
    ],
)
def test_publish_names_what_is_wrong(template: Bench, line: str, code: str) -> None:
    template.refuses(line, code)
