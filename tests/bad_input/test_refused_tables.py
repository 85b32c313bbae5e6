"""A run that is refused or fails leaves nothing that blocks the next one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import JOB, Bench, copy_of, goes_on
from tests.refusals import containing


def table_of_another(bench: Bench) -> None:
    bench.write("conf/jobs/sums.yaml", JOB.replace("job: counts", "job: sums"))


def table_of_a_lost_ledger(bench: Bench) -> None:
    table_of_another(bench)
    bench.edit("conf/jobs/sums.yaml", "alerts.totals", "sums.totals")
    bench.done("run sums")
    shutil.rmtree(bench.warehouse / "rewindow/runs")
    shutil.rmtree(bench.warehouse / "rewindow/metrics")
    shutil.rmtree(bench.warehouse / "state")


@pytest.mark.parametrize(
    ("given", "code"), [(table_of_another, "table-of-another-job"), (table_of_a_lost_ledger, "table-rows-of-no-ledger")]
)
def test_a_refused_run_leaves_no_plan(bench: Bench, given: Callable[[Bench], None], code: str) -> None:
    given(bench)
    before = bench.files()
    bench.refuses("run sums", code)
    assert {name for name in bench.files() if "heartbeats" not in name} == before.keys()
    assert "run-unfinished" not in [finding.message.code for finding in bench.findings("sums")]


def test_a_backfill_whose_branch_may_not_write_its_table_leaves_no_branch(bench: Bench) -> None:
    bench.done("backfill counts --from 1 --branch fix")
    for lost in ("rewindow/runs", "rewindow/metrics", "state", "alerts/totals"):
        shutil.rmtree(bench.warehouse / lost)
    bench.done("run counts")
    rows = DeltaTables(str(bench.warehouse)).state("counts").rows
    bench.refuses("backfill counts --from 1 --branch fix", "table-rows-of-no-ledger", table=containing("totals__fix"))
    assert DeltaTables(str(bench.warehouse)).state("counts").rows == rows
    assert [one["branch"] for one in bench.json("branch list counts")["branches"]] == ["main"]


FAILING = """\
def score(row):
    raise ValueError("not yet")
"""
RIGHT = """\
def score(row):
    return row.x * 2
"""


pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def failed(template: Bench, tmp_path: Path) -> Bench:
    """A project whose first run has failed."""
    bench = copy_of(template, tmp_path / "bench")
    shutil.rmtree(bench.warehouse)
    bench.code(FAILING)
    bench.done("land activity")
    bench.refuses("run counts", "node-failed")
    bench.code(RIGHT)
    return bench


def test_the_fixed_code_of_a_first_run_may_have_other_columns(failed: Bench) -> None:
    failed.edit("bench_job.py", '.to("totals")', '.map_values(str, value=str).to("totals")')
    goes_on(failed)
    failed.done("verify counts")


def test_the_output_of_a_first_run_that_failed_is_free_for_another_job(failed: Bench) -> None:
    failed.write("conf/jobs/renamed.yaml", JOB.replace("job: counts", "job: renamed"))
    (failed.root / "conf/jobs/counts.yaml").unlink()
    failed.done("run renamed", "show renamed")


def test_a_first_landing_that_fails_leaves_no_columns(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "bench")
    shutil.rmtree(bench.warehouse)
    bench.edit("conf/feeds/activity.yaml", "key: user, timestamp: t", "key: x, timestamp: t, invalid_timestamp: skip")
    for name in ("h0", "h1", "h2"):
        bench.rows(name, [{"user": f"ann {name}", "t": -1, "got": 1, "x": 1}])
    assert bench.run("land", "activity").code == 65
    assert not (bench.warehouse / "logs/activity/events/_delta_log").exists()
    shutil.rmtree(bench.root / "raw")
    shutil.copytree(template.root / "raw", bench.root / "raw")
    bench.edit("conf/feeds/activity.yaml", "key: x, timestamp: t, invalid_timestamp: skip", "key: user, timestamp: t")
    goes_on(bench)
