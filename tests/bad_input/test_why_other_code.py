"""`rewindow why` names the changes of a job because of which a replay does not give a row."""

from __future__ import annotations

import pytest

from tests.bad_input.scene import Bench, goes_on
from tests.refusals import containing, told

SUMS = '.aggregate(lambda: 0, lambda key, value, total: total + value, store="sums", value=int)'
SUPPRESS = 'suppress(until_window_closes(), name="closed")'
STRADDLES = "why totals ann --window 2023-11-14T23:30:00Z"
"""Asks for a window whose records one run took and whose row the next run wrote."""


@pytest.fixture
def summed(bench: Bench) -> Bench:
    """A job whose results depend on the user function, with one run."""
    bench.done("rewind counts --to 0")
    bench.edit("bench_job.py", '.count(store="sums")', SUMS)
    bench.done("run counts")
    return bench


def test_a_row_that_depends_on_state_of_other_code_names_the_change(summed: Bench) -> None:
    summed.edit("bench_job.py", "row.x * 2", "row.x * 3")
    goes_on(summed)
    summed.refuses(STRADDLES, "row-not-replayed", reasons=containing("score in bench_job.py changed"))
    summed.done("why totals ann")


def test_other_code_that_gives_the_same_row_is_noted(bench: Bench) -> None:
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    told(bench.said("why totals ann")["notes"], "code-changed-same-row", run="main/2")


def test_a_removed_suppress_is_named_though_runs_resume_without_it(summed: Bench) -> None:
    goes_on(summed)
    summed.edit("bench_job.py", 'counts.suppress(until_window_closes(), name="closed")', "counts")
    summed.refuses(STRADDLES, "row-of-other-code", changes=containing("suppress closed is removed"))
