"""Code that was edited between two runs is named and needs an explicit decision; nothing mixes two versions silently."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewindow.app.open_project import OpenProject
from tests.cli_process import command, done
from tests.end_to_end.flights import write_sources

pytestmark = pytest.mark.spark

JOB = "quiet_carriers"
CHANGED = "to_alert in jobs/quiet_carriers.py changed"


@pytest.fixture
def root(spark: SparkSession, project: Path) -> Path:
    write_sources(project, flights=600)
    OpenProject.open(project).land("flights")
    done(command(project, "run", JOB, "--through", "1"))
    return project


def edit(root: Path) -> None:
    """Edit the job so that every alert counts one departure too many."""
    file = root / "jobs/quiet_carriers.py"
    text = file.read_text()
    assert "hour.window.end_ms, departures)" in text
    file.write_text(text.replace("hour.window.end_ms, departures)", "hour.window.end_ms, departures + 1)"))


def test_an_edited_function_is_refused_until_somebody_decides(root: Path) -> None:
    before = done(command(root, "show", JOB, "--hashes"))
    (root / "jobs/quiet_carriers.py").write_text(
        (root / "jobs/quiet_carriers.py").read_text().replace('"""Turn', '# A comment.\n    """Turn')
    )
    assert done(command(root, "plan", JOB))["run"] is not None

    edit(root)
    for asked in ("plan", "run"):
        refused = done(command(root, asked, JOB), code=76)["error"]
        assert CHANGED in refused
        assert "--accept-changes" in refused
        assert "rewindow backfill quiet_carriers" in refused
    assert done(command(root, "show", JOB, "--hashes"))["tables"] == before["tables"]
    verified = done(command(root, "verify", JOB, "main/1"), code=76)["error"]
    assert CHANGED in verified

    done(command(root, "run", JOB, "--accept-changes"))
    first, second = done(command(root, "show", JOB))["runs"]
    assert first["code"] != second["code"]
    assert all(len(run["code"]) == 8 for run in (first, second))


def test_a_job_may_accept_changed_code_and_a_branch_recomputes_with_it(root: Path) -> None:
    edit(root)
    done(command(root, "backfill", JOB, "--from", "1", "--branch", "fixed"))
    done(command(root, "diff", JOB, "main", "fixed"), code=1)
    with (root / "conf/jobs/quiet_carriers.yaml").open("a") as file:
        file.write("on_code_change: accept\n")
    done(command(root, "run", JOB))
    assert len(done(command(root, "show", JOB))["runs"]) == 2
