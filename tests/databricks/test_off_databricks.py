"""The shipped target for Databricks, used elsewhere: nothing provides a session, and no Spark is started instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.scene import FEED, JOB, SCORE, Answer, Bench
from tests.conftest import ROOT

COMMANDS = ("plan counts", "ls", "ls --json", "status", "upgrade --dry-run", "land activity", "run counts")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name in ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    bench = Bench(tmp_path)
    bench.write("conf/targets/databricks.yaml", (ROOT / "conf" / "targets" / "databricks.yaml").read_text())
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.code(SCORE)
    return bench


def asked(bench: Bench, command: str) -> Answer:
    return bench.run(*command.split(), "--target", "databricks")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_session_of_a_platform_is_missed_by_name(bench: Bench, command: str) -> None:
    answer = asked(bench, command)
    assert answer.code == 78, answer
    answer.refused("platform-session-missing")
    if "--json" in command:
        shown = json.loads(answer.out)
        assert (shown.keys(), shown["code"]) == ({"error", "exit_code", "code"}, "platform-session-missing")


@pytest.mark.parametrize("runs_on", ["DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE"])
def test_a_session_that_is_provided_is_used(bench: Bench, monkeypatch: pytest.MonkeyPatch, runs_on: str) -> None:
    sent: list[str] = []

    class Session:
        """A session that takes one file at a time, as one that is no remote session does."""

        def __init__(self) -> None:
            self.builder = self.conf = self

        def getOrCreate(self) -> Session:  # noqa: N802
            return self

        def set(self, *_setting: str) -> None:
            """Take a setting."""

        def addArtifacts(self, path: str, *, pyfile: bool) -> None:  # noqa: N802
            assert pyfile
            sent.append(Path(path).name)

    monkeypatch.setenv(runs_on, "16.4")
    monkeypatch.setattr("rewindow.engine.spark.connect.SparkSession", Session())
    from rewindow.app.open_project import OpenProject

    assert isinstance(OpenProject.open(bench.root, "databricks").spark, Session)
    assert sent == ["rewindow.zip", "project-code.zip"]
