"""What a task says when its command fails: the params of its DAG instead of options, and commands that a worker can run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindow.airflow.dag_run import in_a_dag
from tests.bad_input.scene import Bench, copy_of, without_spark

WHERE = "--project /opt/shop --target local"
PARAMS = ("through", "accept_changes")


@pytest.fixture
def bench(two_hours: Bench, tmp_path: Path) -> Iterator[Bench]:
    with without_spark():
        yield copy_of(two_hours, tmp_path / "project")


def test_a_refused_change_names_the_params_and_the_backfill_dag(bench: Bench) -> None:
    bench.edit("bench_job.py", 'grace="5m"', 'grace="6m"')
    refused = bench.run("run", "counts").err
    told = in_a_dag(refused, params=PARAMS, where=WHERE, dag_id="night_counts")
    assert "grace of" in told
    assert "`rewindow backfill" not in told
    recompute = "trigger the DAG night_counts__backfill with the param from=1, which asks before it publishes"
    assert recompute in told
    assert "--" not in told.replace(WHERE, "")


def test_an_accepted_change_names_the_param() -> None:
    message = "Restore the code; or resume with these changes, --accept-changes; or run `rewindow land orders` first"
    assert in_a_dag(message, params=PARAMS, where=WHERE) == (
        "Restore the code; or resume with these changes, the DAG's param accept_changes; or run "
        "`rewindow land orders --project /opt/shop --target local` first"
    )


def test_an_option_without_a_param_says_where_to_pass_it() -> None:
    told = in_a_dag("wait for it, or pass --takeover to fence it", params=PARAMS, where=WHERE)
    assert told == (
        "wait for it, or pass --takeover to fence it\n"
        f"This DAG has no param for --takeover: run the task's command on a worker with it and {WHERE}."
    )
    own = in_a_dag("resume with these changes, --accept-changes", params=(), where="")
    assert "This DAG has no param for --accept-changes" in own, "a DAG of somebody's own"


@pytest.mark.parametrize("message", ["", "orders: 3 -- 4", "d3.csv, line 5: 'a--b' is not a number", "`x --y`\nz"])
def test_other_words_stay_as_they_are(message: str) -> None:
    assert in_a_dag(message, params=PARAMS, where=WHERE).startswith(message)
