"""A small governed landing and run need few Spark jobs over Spark Connect, Delta's own included."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.control.plan.spec import RunRequest
from tests.bench.governed import FEED, JOB, add_rows, cost_of, governed_project, project_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

RUN_JOBS, LANDING_JOBS = 10, 7


def test_a_small_landing_and_a_small_run_need_few_spark_jobs(tmp_path: Path) -> None:
    with governed_project(tmp_path) as (root, ui):
        for number in (1, 2):
            add_rows(root, number, 100)
            project_of(root).land(FEED)
            ran = cost_of(ui, lambda: project_of(root).run(JOB, RunRequest()))
        add_rows(root, 3, 100)
        landed = cost_of(ui, lambda: project_of(root).land(FEED))
    assert len(ran.jobs) <= RUN_JOBS, ran.jobs
    assert len(landed.jobs) <= LANDING_JOBS, landed.jobs
