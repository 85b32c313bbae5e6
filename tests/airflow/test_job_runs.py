"""The operator of Databricks job runs, in the real Airflow's classes, against a workspace on loopback."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.home import ROOT, environment, said
from tests.databricks.workspace import Workspace, workspace

pytestmark = pytest.mark.slow


def played(home: Path, there: Workspace, *plays: dict[str, Any]) -> list[dict[str, Any]]:
    env = {**environment(home, home), "DATABRICKS_HOST": there.host, "DATABRICKS_TOKEN": "token"}
    printed = said(env, sys.executable, str(ROOT / "tests/airflow/remote.py"), json.dumps(plays))
    found: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return found


def started(there: Workspace) -> list[dict[str, Any]]:
    return [given for path, given in there.asked if path.endswith("run-now")]


def test_a_job_run_is_started_once_followed_and_found_again(airflow_home: Path):
    with workspace() as there:
        first, again, later, stopped = played(
            airflow_home,
            there,
            {"through": "2026-01-01T00:00:00Z"},
            {"through": "2026-01-01T00:00:00Z"},
            {"through": "2026-01-02T00:00:00Z", "anew": True, "defers": True},
            {"through": "2026-01-03T00:00:00Z", "anew": True, "defers": True, "stops": True},
        )
        assert first["result"] == {"run_id": 100, "url": f"{there.host}/#job/11/run/100", "state": "SUCCESS"}
        assert first["stored"] == {"rewindow_job_run": 100}
        assert again["result"]["run_id"] == 100, "what the task had started is known to its retry"
        assert later["result"]["run_id"] == 101
        assert later["result"]["deferred"]
        assert [given["job_parameters"] for given in started(there)] == [
            {"interval_end": "2026-01-01T00:00:00Z"},
            {"interval_end": "2026-01-02T00:00:00Z"},
            {"interval_end": "2026-01-03T00:00:00Z"},
        ]
        assert "error" not in stopped
        assert [given for path, given in there.asked if path.endswith("cancel")] == [{"run_id": 102}]


@pytest.mark.airflow  # a process each
@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        (65, ["AirflowFailException"]),
        (71, ["AirflowException", "AirflowFailException"]),
        (75, ["AirflowException", "AirflowException"]),
    ],
)
def test_the_code_of_the_command_over_there_decides(airflow_home: Path, code: int, kinds: list[str]):
    with workspace() as there:
        there.story = [("RUNNING", None), ("TERMINATED", "FAILED")]
        there.error = f"rewindow ended with {code}: the customer's name is missing"
        ended = played(airflow_home, there, *({"through": "2026-01-01"} for _ in kinds))
        assert [one["error"] for one in ended] == kinds
        assert all("customer's name" in one["message"] and str(code) in one["message"] for one in ended)
        assert len(started(there)) >= len(kinds), "one that has failed is started anew"


def test_a_job_that_is_not_there_fails_at_once(airflow_home: Path):
    with workspace() as there:
        there.jobs.clear()
        (ended,) = played(airflow_home, there, {"through": "2026-01-01"})
        assert ended["error"] == "AirflowFailException"
        assert "no job called" in ended["message"]
