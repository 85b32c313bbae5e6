"""`RewindowJobRunOperator` with real Airflow classes, against a workspace on loopback."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.forked import Airflow
from tests.airflow.home import ROOT, environment, said
from tests.databricks.workspace import Workspace, workspace

pytestmark = pytest.mark.slow


Played = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def played(airflow: Airflow, tmp_path: Path) -> Played:
    """Return what runs tasks against a workspace, as `tests.airflow.remote` does."""

    def play(there: Workspace, *plays: dict[str, Any]) -> list[dict[str, Any]]:
        env = {**environment(tmp_path, tmp_path), "DATABRICKS_HOST": there.host, "DATABRICKS_TOKEN": "token"}
        code = (ROOT / "tests/airflow/remote.py").read_text(encoding="utf-8")
        found: list[dict[str, Any]] = airflow.answers(code, env, json.dumps(plays))
        return found

    return play


def started(there: Workspace) -> list[dict[str, Any]]:
    """Return the requests that started a run. A repeated token starts none."""
    asked = {given["idempotency_token"]: given for path, given in there.asked if path.endswith("run-now")}
    return list(asked.values())


def test_a_job_run_is_started_once_followed_and_found_again(played: Played):
    with workspace() as there:
        first, again, later, stopped = played(
            there,
            {"through": "2026-01-01T00:00:00Z"},
            {"through": "2026-01-01T00:00:00Z"},
            {"through": "2026-01-02T00:00:00Z", "anew": True, "defers": True},
            {"through": "2026-01-03T00:00:00Z", "anew": True, "defers": True, "stops": True},
        )
        url = f"{there.host}/#job/11/run/100"
        assert first["result"] == {"run_id": 100, "url": url, "state": "SUCCESS", "results": {}}
        assert first["links"] == {"Databricks run": url}
        assert again["result"]["run_id"] == 100, "a retry continues the job run that the task started"
        assert later["result"]["run_id"] == 101
        assert later["result"]["deferred"]
        assert later["links"] == {"Databricks run": f"{there.host}/#job/11/run/101"}, "also after it was deferred"
        assert [given["job_parameters"] for given in started(there)] == [
            {"interval_end": "2026-01-01T00:00:00Z"},
            {"interval_end": "2026-01-02T00:00:00Z"},
            {"interval_end": "2026-01-03T00:00:00Z"},
        ]
        assert "error" not in stopped
        assert [given for path, given in there.asked if path.endswith("cancel")] == [{"run_id": 102}]


def test_each_dag_run_and_each_clear_starts_a_job_run_and_a_retry_does_not(played: Played):
    """Without an interval all parameters are equal."""
    base = {"through": "2026-01-01T00:00:00Z", "no_interval": True}
    with workspace() as there:
        found = played(
            there,
            base,
            {**base, "try": 2},
            {**base, "anew": True},
            {**base, "clears": 1},
            {**base, "clears": 1, "try": 4},
            {**base, "clears": 2},
            {**base, "clears": 2, "started": "2026-02-01"},
        )
    assert [one["result"]["run_id"] for one in found] == [100, 100, 101, 102, 102, 103, 104]
    assert all(given["job_parameters"] == {} for given in started(there))


DAG_FILE = """\
from airflow.sdk import DAG
from rewindow.airflow.job_runs import RewindowJobRunOperator

with DAG("jobs", schedule=None):
    RewindowJobRunOperator(task_id="run", databricks_job="hourly_departures", poll_s=0.01)
"""


def test_airflow_itself_tells_dag_runs_and_clears_apart_and_a_retry_finds_the_run(airflow_home: Path, tmp_path: Path):
    (tmp_path / "jobs.py").write_text(DAG_FILE)
    env = environment(airflow_home, tmp_path)
    with workspace() as there:
        env |= {"DATABRICKS_HOST": there.host, "DATABRICKS_TOKEN": "token", "PYTHONPATH": f"{ROOT / 'lib'}:{ROOT}"}
        printed = said(env, sys.executable, str(ROOT / "tests/airflow/cleared.py"))
        assert len(started(there)) == 3
    first, second, retried, cleared = (one["run_id"] for one in json.loads(printed.splitlines()[-1]))
    assert (first, second, retried, cleared) == (100, 101, 101, 102)


def test_many_failed_runs_fail_the_task_at_once_with_advice_for_airflow(played: Played):
    with workspace() as there:
        there.story = [("TERMINATED", "FAILED")]
        (ended,) = played(there, {"through": "2026-01-01T00:00:00Z"})
        assert len(started(there)) == 20
    assert ended["error"] == "AirflowFailException"
    assert "/run/119. Fix the cause, then clear this task\n" in ended["message"]
    assert "--new" not in ended["message"]


def test_the_events_contain_what_the_remote_command_printed(played: Played):
    table = {"table": "main.shop.orders", "version": 7, "rows": 9, "digest": "d" * 32, "watermark_ms": 1}
    result = {"run": "main/3", "epochs": [2, 4], "published": [{**table, "run": "main/3"}]}
    days = [f"2026-01-0{day}T00:00:00+00:00" for day in range(1, 5)]
    plays = [{"through": day, "anew": True, "tables": ["shop.orders", "shop.else"]} for day in days]
    plays[1]["defers"] = True
    with workspace() as there:
        there.outputs = {"run": {"logs": f"WARN: so it goes\n{json.dumps(result)}\n", "logs_truncated": True}}
        there.outputs_of[102] = {"run": {}}
        there.outputs_of[103] = {"run": {"error_code": "INTERNAL_ERROR", "message": "the logs are lost"}}
        told = played(there, *plays)
    extra = {**table, "run": "main/3", "epochs": [2, 4], "is_new": True}
    whys = ["the job run did not write this table"] * 2 + ["Databricks has no logs of the task", "the logs are lost"]
    for number, (one, day, why) in enumerate(zip(told, days, whys, strict=True)):
        url = f"{there.host}/#job/11/run/{100 + number}"
        run = {"run_id": 100 + number, "url": url, "state": "SUCCESS", "interval": [day, day]}
        is_known = number < 2
        assert one["events"] == {"shop.orders": {**run, **(extra if is_known else {})}, "shop.else": run}
        assert one["result"]["results"] == ({"run": result} if is_known else {})
        assert len(one["warned"]) == (1 if is_known else 2)
        assert one["warned"][-1].startswith("The event of shop.else has no version and digest: ")
        assert why in one["warned"][-1]


@pytest.mark.airflow  # each case is a process
@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        (65, ["AirflowFailException"]),
        (71, ["AirflowException", "AirflowFailException"]),
        (75, ["AirflowException", "AirflowException"]),
    ],
)
def test_the_exit_code_of_the_remote_command_decides(played: Played, code: int, kinds: list[str]):
    with workspace() as there:
        there.story = [("RUNNING", None), ("TERMINATED", "FAILED")]
        there.error = f"rewindow ended with {code}: the customer's name is missing"
        there.outputs["run"] = {"logs": json.dumps({"error": "its own words", "exit_code": code})}
        ended = played(there, *({"through": "2026-01-01", "try": number + 1} for number in range(len(kinds))))
        assert [one["error"] for one in ended] == kinds
        assert all("customer's name" in one["message"] and str(code) in one["message"] for one in ended)
        assert all(one["message"].splitlines()[1] == "its own words" for one in ended)
        assert len(started(there)) >= len(kinds), "a failed job run is started again"


def test_an_unknown_job_fails_at_once(played: Played):
    with workspace() as there:
        there.jobs.clear()
        (ended,) = played(there, {"through": "2026-01-01"})
        assert ended["error"] == "AirflowFailException"
        assert "no job called" in ended["message"]
