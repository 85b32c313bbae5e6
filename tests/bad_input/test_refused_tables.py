"""A run or backfill that may not write its tables is refused before anything is written: no plan, no branch, no table."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import JOB, Bench


def table_of_another(bench: Bench) -> None:
    bench.write("conf/jobs/sums.yaml", JOB.replace("job: counts", "job: sums"))


def table_of_a_lost_ledger(bench: Bench) -> None:
    table_of_another(bench)
    bench.edit("conf/jobs/sums.yaml", "alerts.totals", "sums.totals")
    assert bench.run("run", "sums").code == 0
    shutil.rmtree(bench.warehouse / "rewindow/runs")
    shutil.rmtree(bench.warehouse / "rewindow/metrics")
    shutil.rmtree(bench.warehouse / "state")


@pytest.mark.parametrize(("given", "code"), [(table_of_another, 78), (table_of_a_lost_ledger, 76)])
def test_a_refused_run_leaves_no_plan(bench: Bench, given: Callable[[Bench], None], code: int) -> None:
    given(bench)
    before = bench.files()
    refused = bench.run("run", "sums")
    assert refused.code == code, refused
    assert {name for name in bench.files() if "heartbeats" not in name} == before.keys()
    assert "planned" not in bench.run("status", "sums").out


def test_a_backfill_whose_branch_may_not_write_its_table_leaves_no_branch(bench: Bench) -> None:
    assert bench.run("backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    for lost in ("rewindow/runs", "rewindow/metrics", "state", "alerts/totals"):
        shutil.rmtree(bench.warehouse / lost)
    assert bench.run("run", "counts").code == 0
    rows = DeltaTables(str(bench.warehouse)).state("counts").rows
    refused = bench.run("backfill", "counts", "--from", "1", "--branch", "fix")
    assert refused.code == 76, refused
    assert "totals__fix" in refused.err
    assert "[table-rows-of-no-ledger]" in refused.err
    assert "choose another branch name" in refused.err
    assert DeltaTables(str(bench.warehouse)).state("counts").rows == rows
    assert "fix" not in bench.run("branch", "list", "counts").out
