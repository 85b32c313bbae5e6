"""A command whose JVM is killed, and one that meets a compressed bomb, say so, and the same command then goes on."""

from __future__ import annotations

import gzip
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from tests.cli_process import command, done
from tests.end_to_end.flights import write_sources

pytestmark = pytest.mark.spark

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
        for _ in range(100):  # one line of 100 MB
            file.write(b"0" * (1 << 20))
    assert bomb.stat().st_size < 1 << 20
    said = done(command(tmp_path, "land", "readings"), code=65)
    assert "second.csv.gz, line 2: " in said["error"]
    assert "Traceback" not in said["error"]
    bomb.unlink()
    assert done(command(tmp_path, "land", "readings"))["rows"] == 1
