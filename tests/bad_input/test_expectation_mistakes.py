"""Every mistake in `expect:` and in `publish --accept` is named."""

from __future__ import annotations

import re

import pytest

from tests.bad_input.expecting import expecting, replayed
from tests.bad_input.scene import Bench

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
