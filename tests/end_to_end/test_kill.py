"""After SIGKILL during a run, the same command gives the tables of a clean run, on real Spark and Delta."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.app.project import Project
from rewindow.control.plan.spec import RunRequest
from tests.end_to_end.flights import write_sources

pytestmark = pytest.mark.spark

KILLED = """
import os, signal, sys
from rewindow.control.plan.spec import RunRequest
from rewindow.app.project import Project

def on_step(step):
    if step.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

Project.open(sys.argv[1]).run("quiet_carriers", RunRequest(), on_step)
"""


@pytest.fixture
def landed(spark: SparkSession, project: Path) -> Project:
    write_sources(project, flights=600)
    loaded = Project.open(project)
    loaded.land("flights")
    loaded.run("quiet_carriers", RunRequest(branch="clean"))
    loaded.run("quiet_carriers", RunRequest(through_landing=1))
    return loaded


def test_a_run_killed_at_any_step_is_taken_over_by_the_next_call(landed: Project) -> None:
    for step in ("execute sub-topology 1", "commit", "publish output"):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(landed.root), step],
            env={**os.environ, "PYTHONPATH": str(landed.root)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    plan = landed.plan("quiet_carriers", RunRequest())
    committed_by_the_last = plan["run"] is None
    assert committed_by_the_last, "the last process died after its COMMIT"
    landed.run("quiet_carriers", RunRequest())
    assert landed.tables.hashes("quiet_carriers", "main") == landed.tables.hashes("quiet_carriers", "clean")
    numbers = [run.spec.number for run in landed.tables.state("quiet_carriers").branch("main").runs]
    assert numbers == [1, 2]
