"""The local session: it uses two jars, prints nothing, and its workers run the driver's Python."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rewindow.engine.spark import session
from rewindow.engine.spark.session import local_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_workers_run_the_drivers_python(spark: SparkSession) -> None:
    def interpreter(batches):
        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})

    rows = spark.range(1).mapInArrow(interpreter, "python string").collect()
    assert [row.python for row in rows] == [sys.executable]


def test_a_second_call_returns_the_same_session(spark: SparkSession) -> None:
    assert local_session() is spark


def test_delta_tables_are_written_and_read_with_the_two_jars(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(path)
    assert spark.read.format("delta").load(path).count() == 3


def test_workers_import_from_the_python_path(spark: SparkSession) -> None:
    def import_tests(batches):
        import tests.conftest  # noqa: F401

        yield from batches

    assert spark.range(1).mapInArrow(import_tests, "id long").count() == 1


def test_the_environment_is_restored(spark: SparkSession) -> None:
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ


@pytest.mark.parametrize(("encoding", "shown"), [("ANSI_X3.4-1968", "C.UTF-8"), ("UTF-8", "de_DE.UTF-8")])
def test_the_jvm_takes_paths_for_utf8_as_python_does(
    monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
) -> None:
    monkeypatch.setattr(session, "getencoding", lambda: encoding)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    with session._environment([], sys.executable, on_loopback=True):
        assert os.environ["LC_ALL"] == shown
    assert os.environ["LC_ALL"] == "de_DE.UTF-8"


def test_a_jvm_that_cannot_start_is_reported_in_one_line(tmp_path: Path) -> None:
    code = (
        "from rewindow.errors import ConfigError\n"
        "from rewindow.engine.spark.session import local_session\n"
        "try: local_session(conf={'spark.driver.memory': '1x'})\n"
        "except ConfigError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.startswith("the JVM did not start (")
    assert done.stdout.count("\n") == 1


def test_java_options_and_class_path_are_appended_and_the_rest_is_replaced() -> None:
    from rewindow.engine.spark.session import _merged

    ours = {
        "spark.driver.extraJavaOptions": "-Da=1",
        "spark.driver.extraClassPath": "x.jar",
        "spark.ui.enabled": "false",
    }
    theirs = {
        "spark.driver.extraJavaOptions": "-Da=2",
        "spark.driver.extraClassPath": "y.jar",
        "spark.ui.enabled": True,
        "spark.task.cpus": 2,
    }
    assert _merged(ours, theirs) == {
        "spark.driver.extraJavaOptions": "-Da=1 -Da=2",
        "spark.driver.extraClassPath": f"x.jar{os.pathsep}y.jar",
        "spark.ui.enabled": "true",
        "spark.task.cpus": "2",
    }


TWO_SESSIONS = """
from rewindow.engine.spark.session import end_session, local_session

def chatty(batches):
    print("from a worker")
    yield from batches

first = local_session(cores=1, conf={"spark.driver.memory": "1g"})
first.range(1).mapInArrow(chatty, "id long").collect()
end_session(first)
second = local_session(cores=1)
print(second.range(3).count(), second.sparkContext.defaultParallelism)
second.stop()
"""


def test_a_session_can_follow_another_and_only_the_prints_of_workers_are_seen_on_stderr(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TWO_SESSIONS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 1\n", "from a worker\n")
    assert list(tmp_path.iterdir()) == []
