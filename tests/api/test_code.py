"""The project's code in a process that outlives a command: imported anew here, and known in Spark's workers."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

import rewindow
from rewindow.app.api.calls import RemoteCode, own_code, with_new_workers
from rewindow.config.target import TargetConfig
from tests.api.conftest import copy_of
from tests.refusals import containing, refused

CLUSTER = TargetConfig(target="cluster", warehouse="warehouse", master="spark://host:7077", cores=2)
LOCAL = TargetConfig(target="local", warehouse="warehouse")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, in a process that has sent no code yet."""
    monkeypatch.setattr(RemoteCode, "_sent", None)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/__init__.py").write_text("")
    (tmp_path / "jobs/orders.py").write_text("NUMBER = 1\n")
    return tmp_path


def test_remote_workers_must_not_execute_older_code(project: Path) -> None:
    code = RemoteCode(project, CLUSTER)
    code.was_sent(code.check())
    code.check()
    (project / "jobs/orders.py").write_text("NUMBER = 2\n")
    with refused("worker-code-outdated", reason="the project's code has changed"):
        code.check()


def test_remote_workers_must_not_execute_the_code_of_another_project(project: Path, tmp_path: Path) -> None:
    first = RemoteCode(project, CLUSTER)
    first.was_sent(first.check())
    with refused("worker-code-outdated", reason=containing("it was started for ")):
        RemoteCode(tmp_path / "other", CLUSTER).check()


def test_code_may_change_until_spark_has_started_and_always_where_workers_are_local(project: Path) -> None:
    remote, local = RemoteCode(project, CLUSTER), RemoteCode(project, LOCAL)
    local.was_sent(local.check())
    remote.check()
    (project / "jobs/orders.py").write_text("NUMBER = 2\n")
    remote.check()
    local.check()


def test_only_local_workers_are_new_for_each_task_and_a_setting_of_the_target_wins() -> None:
    assert with_new_workers(LOCAL).spark == {"spark.python.worker.reuse": "false"}
    assert with_new_workers(CLUSTER) is CLUSTER
    kept = LOCAL.model_copy(update={"spark": {"spark.python.worker.reuse": "true"}})
    assert with_new_workers(kept).spark == kept.spark


def test_the_process_knows_afterwards_what_it_had_imported_before(project: Path, monkeypatch) -> None:
    import jobs

    path, theirs = list(sys.path), jobs
    with own_code(project):
        from jobs import orders

        assert (orders.NUMBER, orders.__file__) == (1, str(project / "jobs/orders.py"))
    assert sys.modules["jobs"] is theirs
    assert "jobs.orders" not in sys.modules
    assert sys.path == path
    assert not list(project.rglob("*.pyc"))


def test_a_file_named_like_a_library_hides_no_library(project: Path) -> None:
    import html

    import yaml

    for name in ("html.py", "yaml.py"):
        (project / name).write_text("raise SystemExit\n")
    with own_code(project):
        assert sys.modules["html"] is html
        assert sys.modules["yaml"] is yaml


def test_two_threads_take_turns(landed_once: Path, tmp_path: Path) -> None:
    projects = [copy_of(landed_once, tmp_path / name) for name in ("one", "other")]
    found: dict[Path, rewindow.Run] = {}

    def run(project: rewindow.Project) -> None:
        found[project.root] = project.run("daily_orders")

    threads = [threading.Thread(target=run, args=(project,)) for project in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[project.root].rows for project in projects] == [{"daily-orders": 5}] * 2
