"""A job that bounds the landings of one run: the same rows in more runs, and a failure repeats only one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import content_hash
from tests.bad_input.scene import FEED, JOB, MODULE, SCORE, Bench, hour, project_of, without_spark

HOURS = 5
BROKEN = """\
def score(row):
    if row.x == {x}:
        raise OSError("the disk of the machine")
    return row.x * 2
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Return a project with five landings that no run has taken."""
    with without_spark():
        bench = project_of(tmp_path / "project", FEED, MODULE.format(score=SCORE), "totals")
        for number in range(HOURS):
            bench.rows(f"h{number}", [{**row, "x": number} for row in hour(number)])
            bench.done("land activity")
        yield bench


def bounded(bench: Bench, landings: object) -> None:
    bench.write("conf/jobs/counts.yaml", f"{JOB}landings_per_run: {landings}\n")


def epochs(bench: Bench, branch: str = "main") -> list[tuple[int, int]]:
    runs = bench.json(f"show counts --branch {branch}")["runs"]
    return [(run["epochs"][0], run["epochs"][-1]) for run in runs]


def rows_of_totals(bench: Bench, schema: str = "alerts") -> str:
    return content_hash(table_path(str(bench.warehouse), f"{schema}/totals"))


def test_one_command_takes_all_landings_in_several_runs_with_the_same_rows(bench: Bench) -> None:
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.done("run counts")
    whole = rows_of_totals(bench)
    bench.done("reset counts --yes")
    bounded(bench, 2)
    bench.done("run counts")
    assert epochs(bench) == [(1, 2), (3, 4), (5, 5)]
    assert rows_of_totals(bench) == whole


def test_only_the_last_run_of_a_final_request_is_final(bench: Bench) -> None:
    bounded(bench, 2)
    bench.done("run counts --final")
    assert [run["final"] for run in bench.json("show counts")["runs"]] == [False, False, True]


def test_a_backfill_takes_as_many_runs_as_it_needs(bench: Bench) -> None:
    bounded(bench, 3)
    bench.done("run counts", "backfill counts --from 1 --branch again", "promote counts again")
    assert epochs(bench, "main") == [(1, 3), (4, 5)]


def test_what_runs_committed_before_a_failure_is_not_repeated(bench: Bench) -> None:
    bounded(bench, 2)
    bench.write("bench_job.py", MODULE.format(score=BROKEN.format(x=HOURS - 1)))
    assert bench.run("run", "counts").code == 65
    assert epochs(bench) == [(1, 2), (3, 4)]
    bench.write("bench_job.py", MODULE.format(score=SCORE))
    bench.done("run counts")
    assert epochs(bench) == [(1, 2), (3, 4), (5, 5)]


@pytest.mark.parametrize("landings", [0, -1, "many"])
def test_a_bound_that_is_no_positive_number_is_refused(bench: Bench, landings: object) -> None:
    bounded(bench, landings)
    answer = bench.run("run", "counts")
    assert answer.code == 78
    assert "landings_per_run" in answer.err
