"""Spark's daemons on loopback, from the installed PySpark. Each is a separate process group and is stopped as a group."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from rewindow.engine.spark.class_archive import archive_options
from rewindow.engine.spark.jars import find_jars, find_java

SPARK_HOME = Path(pyspark.__file__).parent
UP_SECONDS = 120
_SHOWN = ("ui.retainedJobs", "ui.retainedStages", "sql.ui.retainedExecutions", "connect.ui.retainedStatements")
"""What a server keeps for its user interface, 1,000 of some, with their plans: too much where nobody looks."""


@dataclass
class Daemon:
    """A Spark process and its log file."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until the log has a line that matches."""
        end = time.monotonic() + UP_SECONDS
        while time.monotonic() < end:
            found = re.search(pattern, self.log.read_text())
            if found:
                return found
            assert self.process.poll() is None, f"the daemon exited:\n{self.log.read_text()[-2000:]}"
            time.sleep(0.1)
        raise AssertionError(f"{pattern} did not appear:\n{self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        """Kill the process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start(arguments: Sequence[str], log: Path, **environment: str) -> Daemon:
    """Start ``bin/<arguments>`` of PySpark on loopback."""
    java = {"JAVA_HOME": str(find_java().home), "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHONPATH"))}
    command = [str(SPARK_HOME / "bin" / arguments[0]), *arguments[1:]]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            env={**kept, **java, "SPARK_LOG_DIR": str(log.parent), **environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Daemon(process, log)


@dataclass
class Cluster:
    """A master and its workers."""

    master: str
    workers: list[Daemon] = field(default_factory=list)


@contextmanager
def cluster(folder: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """Run a master, and workers with one core each."""
    small = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
    folder.mkdir(parents=True)
    with ExitStack() as ends:
        deploy = "org.apache.spark.deploy"
        ports = ["--port", "0", "--webui-port", "0"]
        arguments = ["spark-class", f"{deploy}.master.Master", "--host", "127.0.0.1", *ports]
        master = start(arguments, folder / "master.log", **small)
        ends.callback(master.kill)
        running = Cluster(master.wait_for(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)").group(1))
        for number in range(workers):
            work_folder = folder / f"worker-{number}"
            arguments = ["spark-class", f"{deploy}.worker.Worker", "--host", "127.0.0.1", *ports]
            arguments += ["--cores", "1", "--memory", "1g", "--work-dir", str(work_folder), running.master]
            worker = start(arguments, folder / f"worker-{number}.log", **small)
            ends.callback(worker.kill)
            running.workers.append(worker)
        for worker in running.workers:
            worker.wait_for("Successfully registered with master")
        yield running


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def connect_server(
    folder: Path, python: Path, *, ui: int = 0, imports: Sequence[Path] = (), memory: str = "2g"
) -> Iterator[str]:
    """Run a Spark Connect server with Delta and yield its address.

    ``ui``: the port of its user interface; 0 for none. ``imports``: folders from which its Python workers import.
    """
    port = free_port()
    settings = {
        "spark.master": "local[2]",
        # Not spark.jars, which copies the jars and excludes their classes from the archive.
        "spark.driver.extraClassPath": os.pathsep.join(map(str, find_jars())),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.enabled": str(bool(ui)).lower(),
        "spark.ui.port": str(ui),
        # A server outlives hundreds of killed clients and their tables. What it keeps of them for an hour fills its memory.
        "spark.connect.session.manager.defaultSessionTimeout": "10m",
        "spark.connect.session.planCache.maxSize": "0",
        "spark.databricks.delta.delta.log.cacheSize": "30",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join(
            ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dderby.system.home={folder}", *archive_options())
        ),
    }
    if not ui:
        settings |= {f"spark.{name}": "10" for name in _SHOWN}
    folder.mkdir(parents=True)
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    arguments = ["spark-submit", *given, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    found = {"PYTHONPATH": os.pathsep.join(map(str, imports))} if imports else {}
    server = start(arguments, folder / "server.log", PYSPARK_PYTHON=str(python), **found)
    try:
        server.wait_for("Spark Connect server started at")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()


def python_without_rewindow(folder: Path) -> Path:
    """Create an interpreter with this one's packages, except rewindow, which it must receive as a wheel."""
    venv.create(folder, symlinks=True)
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (own,) = folder.glob("lib/python*/site-packages")
    # Python does not read .pth files in a folder that a .pth names, so the editable install is not found.
    (own / "installed.pth").write_text("\n".join(installed) + "\n")
    return folder / "bin" / "python"


def build_wheel(root: Path, folder: Path) -> Path:
    """Build the wheel from a copy of the sources, which keeps the tree clean, and return its path."""
    copy = folder / "source"
    shutil.copytree(root / "lib", copy / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(root / name, copy / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(command, cwd=copy, check=True)
    (wheel,) = folder.glob("rewindow-*.whl")
    return wheel
