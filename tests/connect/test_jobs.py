"""A small governed landing and run need few Spark jobs over Spark Connect, Delta's own included."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]

RUN_JOBS, LANDING_JOBS, STATUS_JOBS = 10, 7, 4
MEASURE = "import json; from tests.bench import governed; print(json.dumps(governed.measure(100, runs=(3,))))"


def test_a_small_landing_and_a_small_run_need_few_spark_jobs() -> None:
    # A process of its own: PySpark has either a local session or a remote one.
    made = subprocess.run([sys.executable, "-c", MEASURE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    figures = json.loads(made.stdout.splitlines()[-1])
    assert figures["exact"]
    assert figures["run_jobs"] <= RUN_JOBS, figures["jobs_of_run"]
    assert figures["land_jobs"] <= LANDING_JOBS, figures["jobs_of_landing"]
    assert figures["status_jobs"] <= STATUS_JOBS, figures["jobs_of_status"]
