"""What Spark reads otherwise from a CSV file than it was written is named with its line and the option that reads it."""

from __future__ import annotations

import pytest

from tests.ingest.test_bad_values import GOOD, NAMES, found


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (
            '"two\nlines"',
            "line 3, column user: a value goes on in the next line, which needs `options: {multiLine: true}`",
        ),
        (r'"the \"best\" one"', r"line 3: a backslash is before a quote within a value. If it escapes"),
        (r'"the \"best\", so far"', r"line 3: a backslash is before a quote within a value. If it escapes"),
        (r'"C:\temp\"', None),
        ('"the ""best"" one, so far"', None),
        (r"C:\temp\a" + '"b', None),
    ],
)
def test_quotes_and_line_breaks_within_values_are_named_with_the_option_that_reads_them(tmp_path, user, said):
    told = found(tmp_path, NAMES + GOOD + GOOD.replace("ann", user))
    assert said is None if told is None else told.startswith(f"d3.csv, {said}")


def test_a_time_without_a_date_is_no_time(tmp_path):
    told = found(tmp_path, NAMES + GOOD.replace("2026-01-01T00:00:00Z", "08:30"))
    assert told == (
        "d3.csv, line 2, column at: '08:30' is a time without a date. If all of its values are, declare the column as STRING "
        "under `schema:`"
    )
