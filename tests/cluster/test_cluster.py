"""A job on a standalone cluster with rewindow as a wheel writes the same tables, even if a worker dies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import yaml
from pyspark.sql import SparkSession

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows
from tests.cli_process import command, done
from tests.conftest import ROOT, copy_project
from tests.daemons import Cluster, Daemon, build_wheel, cluster, python_without_rewindow
from tests.end_to_end.flights import write_sources

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = "held"
HOLD, WAITS = "REWINDOW_TEST_HOLD", 120

HELD = '''
"""Hourly departures, but the first task that finds the hold file writes its process id and waits until the file is deleted."""
import os, time
from pathlib import Path
from rewindow import Count, StreamsBuilder, TimeWindows, until_window_closes
import rewindow

def build_topology():
    hours = StreamsBuilder()
    departures = hours.stream("departures").filter(held).group_by_key().windowed_by(TimeWindows.of("1h", grace="1h"))
    counted = departures.aggregate(Count(), store="hours").suppress(until_window_closes(), name="closed")
    counted.to_stream().to("held")
    return hours.build()

def held(_key, _value):
    hold = Path("HOLD")
    if hold.exists():
        where = Path("HOLD.where")
        if not where.exists():
            new = Path(f"HOLD.{os.getpid()}")
            new.write_text(f"{os.getppid()}\\n{rewindow.__file__}")
            new.rename(where)
        while hold.exists():
            time.sleep(0.02)
    return True
'''


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_project(tmp_path_factory.mktemp("cluster"))
    write_sources(root)
    (root / "jobs" / "held.py").write_text(HELD.replace("HOLD", str(root / "hold")))
    job = {
        "job": JOB,
        "topology": "jobs.held:build_topology",
        "feed": "flights",
        "outputs": {"held": {"table": "flights.held"}},
    }
    (root / "conf" / "jobs" / "held.yaml").write_text(yaml.safe_dump(job))
    return root


@pytest.fixture(scope="module")
def running(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("spark")
    build_wheel(ROOT, root / "dist")
    with cluster(folder / "daemons") as daemons:
        target = {
            "target": "cluster",
            "warehouse": "warehouse",
            "master": daemons.master,
            "cores": 2,
            "ships": ["dist/rewindow-*.whl"],
            "spark": {
                "spark.pyspark.python": str(python_without_rewindow(folder / "python")),
                "spark.executor.memory": "512m",
            },
        }
        (root / "conf" / "targets" / "cluster.yaml").write_text(yaml.safe_dump(target))
        yield daemons


@pytest.fixture(scope="module")
def here(root: Path, spark: SparkSession) -> OpenProject:
    project = OpenProject.open(root)
    project.land("flights")
    return project


def worker_of(cluster: Cluster, pid: int) -> Daemon:
    """Return the worker that owns a process's executor."""
    parents = {parent.pid for parent in [psutil.Process(pid), *psutil.Process(pid).parents()]}
    (worker,) = [worker for worker in cluster.workers if worker.process.pid in parents]
    return worker


@pytest.mark.cluster
def test_landing_on_the_cluster_writes_the_same_logs(here: OpenProject, running: Cluster, root: Path) -> None:
    target = yaml.safe_load((root / "conf" / "targets" / "cluster.yaml").read_text())
    elsewhere = root / "landed-there"
    (elsewhere / "raw").parent.mkdir()
    (elsewhere / "raw").symlink_to(root / "warehouse" / "raw")
    moved = {**target, "target": "landing", "warehouse": "landed-there"}
    (root / "conf" / "targets" / "landing.yaml").write_text(yaml.safe_dump(moved))
    done(command(root, "land", "flights", "--target", "landing"))
    there = OpenProject.open(root, "landing")
    feeds = [project.tables.feed("flights") for project in (here, there)]
    # Only the attempts differ that made the landings.
    landings = [[replace(landing, attempt="") for landing in feed.landings] for feed in feeds]
    assert landings[0] == landings[1]
    for topic in ("departures", "weather"):
        logs = [read_rows(f"{project.warehouse}/logs/flights/{topic}") for project in (here, there)]
        order = [("partition", "ascending"), ("offset", "ascending")]
        mine, theirs = (log.sort_by(order).select(sorted(log.column_names)) for log in logs)
        assert mine.equals(theirs)


@pytest.mark.cluster
@pytest.mark.parametrize("job", ["hourly_departures", "quiet_carriers", "departure_board", "flight_weather"])
def test_the_cluster_writes_the_same_tables(here: OpenProject, running: Cluster, root: Path, job: str) -> None:
    here.run(job, RunRequest(branch="here"))
    done(command(root, "run", job, "--target", "cluster", "--branch", "there", "--through", "2"))
    done(command(root, "run", job, "--target", "cluster", "--branch", "there"))
    assert here.tables.hashes(job, "there") == here.tables.hashes(job, "here")


@pytest.mark.cluster
def test_a_worker_killed_during_a_run_changes_nothing(here: OpenProject, running: Cluster, root: Path) -> None:
    # In a separate process: this one may have imported another project's `jobs`.
    done(command(root, "run", JOB, "--branch", "here"))
    hold, where = root / "hold", root / "hold.where"
    hold.touch()
    process = command(root, "run", JOB, "--target", "cluster", "--branch", "there")
    end = time.monotonic() + WAITS
    while not where.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no task started"
        time.sleep(0.05)
    pid, imported = where.read_text().split("\n")
    worker_of(running, int(pid)).kill()
    hold.unlink()
    done(process)
    assert here.tables.hashes(JOB, "there") == here.tables.hashes(JOB, "here")
    assert here.tables.state(JOB).branch("there").head is not None
    assert ".zip" in imported, "the workers took the source tree, not the wheel"
