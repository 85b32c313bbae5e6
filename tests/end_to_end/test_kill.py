"""After SIGKILL during a run, the same command gives the tables of a clean run, on real Spark and Delta."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from tests.cli_process import command, done
from tests.end_to_end.flights import write_sources

pytestmark = pytest.mark.spark

KILLED = """
import os, signal, sys
from rewindow.control.plan.spec import RunRequest
from rewindow.app.open_project import OpenProject

def on_step(step):
    if step.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

OpenProject.open(sys.argv[1]).run("quiet_carriers", RunRequest(), on_step)
"""


BOMBED = """\
feed: readings
partitions: 1
landing: {max_ahead: none}
logs:
  readings:
    source: {path: raw, format: csv, schema: "sensor STRING, t BIGINT, celsius DOUBLE", options: {header: "true"}}
    key: sensor
    value: [celsius]
    timestamp: t
"""


@pytest.fixture
def landed(spark: SparkSession, project: Path) -> OpenProject:
    write_sources(project, flights=600)
    loaded = OpenProject.open(project)
    loaded.land("flights")
    loaded.run("quiet_carriers", RunRequest(branch="clean"))
    loaded.run("quiet_carriers", RunRequest(through_landing=1))
    return loaded


def test_a_run_killed_at_any_step_is_taken_over_by_the_next_call(landed: OpenProject) -> None:
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


def killed_jvm(root: Path, *words: str) -> subprocess.Popen[str]:
    """Start a command that needs Spark, and kill its JVM as soon as a Python worker runs in it."""
    process = command(root, *words)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        jvms = [child for child in psutil.Process(process.pid).children() if "java" in child.name()]
        if any(_runs_python(child) for jvm in jvms for child in jvm.children()):
            jvms[0].kill()
            return process
        time.sleep(0.02)
    message = f"no worker of Spark was seen: {process.communicate()}"
    raise AssertionError(message)


def _runs_python(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False


def test_a_jvm_killed_during_a_landing_or_a_run_is_told_and_the_same_command_goes_on(project: Path) -> None:
    write_sources(project, flights=600)
    target = project / "conf/targets/local.yaml"
    here = target.read_text()
    for words in (("land", "flights"), ("run", "quiet_carriers")):
        target.write_text(f"{here}inline: 0\n")
        process = killed_jvm(project, *words)
        target.write_text(here)
        said = done(process, code=71)
        assert "JVM has ended" in said["error"]
        assert "Traceback" not in str(said)
        done(command(project, *words))
    loaded = OpenProject.open(project)
    loaded.run("quiet_carriers", RunRequest(branch="clean"))
    assert loaded.tables.hashes("quiet_carriers", "main") == loaded.tables.hashes("quiet_carriers", "clean")


def test_a_compressed_bomb_is_named_and_the_fixed_source_is_landed(tmp_path: Path) -> None:
    (tmp_path / "conf/feeds").mkdir(parents=True)
    (tmp_path / "conf/targets").mkdir()
    (tmp_path / "raw").mkdir()
    (tmp_path / "conf/feeds/readings.yaml").write_text(BOMBED)
    (tmp_path / "conf/targets/local.yaml").write_text(
        'target: local\nwarehouse: warehouse\nspark: {spark.driver.memory: "512m"}\n'
    )
    (tmp_path / "raw/first.csv").write_text("sensor,t,celsius\nboiler,1700000000000,81.5\n")
    bomb = tmp_path / "raw/second.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(b"sensor,t,celsius\n")
        for _ in range(400):  # one line of 400 MB
            file.write(b"0" * (1 << 20))
    assert bomb.stat().st_size < 4 << 20
    said = done(command(tmp_path, "land", "readings"), code=65)
    assert "second.csv.gz, line 2: " in said["error"]
    assert "Traceback" not in said["error"]
    bomb.unlink()
    assert done(command(tmp_path, "land", "readings"))["rows"] == 1
