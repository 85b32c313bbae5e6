"""The project's jobs on Spark and Delta through `OpenProject`, as the command line uses it: L2 and L5."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from rewindow.app.describe_job import show_job
from rewindow.app.open_project import OpenProject
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import RunRequest
from rewindow.control.run import RunReport
from rewindow.errors import NotNowError
from rewindow.tables.delta.table_rows import read_rows
from tests.conftest import copy_project
from tests.end_to_end.flights import write_sources

pytestmark = pytest.mark.spark

JOBS = ("hourly_departures", "quiet_carriers", "departure_board", "flight_weather")


@pytest.fixture(scope="module")
def landed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> OpenProject:
    root = copy_project(tmp_path_factory.mktemp("landed"))
    write_sources(root)
    project = OpenProject.open(root)
    project.land("flights")
    return project


@pytest.mark.parametrize("job", JOBS)
def test_a_run_a_landing_gives_the_tables_of_one_run(landed: OpenProject, job: str) -> None:
    last = len(landed.tables.feed("flights").landings)
    assert last >= 3
    for number in range(1, last + 1):
        assert isinstance(landed.run(job, RunRequest(through_landing=number)), RunReport)
    one = landed.run(job, RunRequest(branch="one"))
    assert isinstance(one, RunReport)
    many_hashes, one_hashes = landed.tables.hashes(job, "main"), landed.tables.hashes(job, "one")
    assert many_hashes == one_hashes
    assert any(target.startswith("output/") for target in one_hashes)
    assert sum(total.rows for target, total in one.commit.targets.items() if target.startswith("output/")) > 100


def test_asking_again_changes_nothing(landed: OpenProject) -> None:
    job = JOBS[0]
    landed.run(job, RunRequest(branch="again"))
    before = landed.tables.hashes(job, "again")
    again = landed.run(job, RunRequest(branch="again"))
    assert isinstance(again, UpToDate)
    assert landed.tables.hashes(job, "again") == before
    assert landed.land("flights").landings == ()


def test_a_final_run_closes_every_window_and_seals_the_branch(landed: OpenProject) -> None:
    job = JOBS[0]
    landed.run(job, RunRequest(branch="open"))
    landed.run(job, RunRequest(branch="closed", through_landing=2))
    landed.run(job, RunRequest(branch="closed", final=True))
    landed.run(job, RunRequest(branch="closed2", final=True))
    still_open = read_rows(f"{landed.warehouse}/flights/{job}__open").num_rows
    closed = read_rows(f"{landed.warehouse}/flights/{job}__closed").num_rows
    assert closed > still_open
    assert landed.tables.hashes(job, "closed") == landed.tables.hashes(job, "closed2")
    departures = sum(read_rows(f"{landed.warehouse}/flights/{job}__closed")["departures"].to_pylist())
    late = sum(
        m["total"] for m in show_job(landed, job, branch="closed")["metrics"] if m["metric"] == "late-record-drop"
    )
    log = read_rows(f"{landed.warehouse}/logs/flights/departures")
    assert departures + late == log.num_rows - log["dep_delay"].null_count
    again = landed.run(job, RunRequest(branch="closed"))
    assert isinstance(again, UpToDate)
    assert "sealed" in again.reason


def test_a_missing_landing_is_waited_for(landed: OpenProject) -> None:
    with pytest.raises(NotNowError, match="landing 99 of feed 'flights' does not exist yet"):
        landed.run(JOBS[0], RunRequest(branch="early", through_landing=99))
