"""A run or backfill that may not write its tables is refused before anything is written: no plan, no branch, no table."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import JOB, Bench
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
