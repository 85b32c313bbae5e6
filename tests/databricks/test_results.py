"""Results of a wheel task are found in the task's logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewindow.airflow.task_results import extra_of
from rewindow.app.cli.entry import run_command
from rewindow.databricks import submit
from rewindow.databricks.submit import ended, error_in, result_in
from tests.airflow.shop import make_shop
from tests.conftest import ROOT
from tests.databricks.workspace import Workspace

TABLE = {"table": "main.shop.daily_orders", "version": 7, "run": "main/3", "rows": 9, "digest": "a" * 32}
RESULT = {"run": "main/3", "epochs": [2, 4], "published": [TABLE]}
LINE = json.dumps(RESULT, sort_keys=True)
NOISE = '26/11/21 WARN TaskSetManager: {"a": 1}\n'


def printed(there: Workspace) -> submit.Printed:
    client = submit.workspace()
    run = submit.wait(client, submit.start(client, "hourly_departures", {}, new=True).run_id, poll_s=0)
    assert run.code == 0
    return submit.printed(client, run.run_id)


@pytest.mark.parametrize(
    "logs",
    [
        LINE,
        f"{NOISE}{LINE}\n",
        f'{{"landings": [1]}}\n{LINE}\n{NOISE}{{"published": "a book", "run": 1}}\n',
        f"{json.dumps({**RESULT, 'run': 'main/2'})}\n{LINE}\n",
        f"{NOISE.strip()}{LINE}WARN: and on the same line\n",
        f'ublished": []}}\r\n{LINE}\r\n',
    ],
    ids=["alone", "after others", "before others", "the last of two", "on a line with others", "after half a line"],
)
def test_the_result_is_found_in_the_logs(logs: str) -> None:
    assert result_in(logs) == RESULT


@pytest.mark.parametrize(
    "logs", ["", NOISE, LINE[1:], LINE[:-1], '{"published": []}', '[{"run": 1}]', '{"published' * 5000]
)
def test_incomplete_and_foreign_json_is_not_a_result(logs: str) -> None:
    assert result_in(logs) is None


def test_an_error_is_found_by_its_code() -> None:
    logs = f"{NOISE}{json.dumps({'error': 'the customer is missing', 'exit_code': 65})}\n{NOISE}"
    assert error_in(logs, 65) == "the customer is missing"
    assert error_in(logs, 66) is None


def test_each_tasks_last_attempt_is_read_and_missing_results_have_a_reason(there: Workspace) -> None:
    there.attempts = 2
    there.outputs = {
        "run": {"logs": f"{NOISE}{LINE}\n", "logs_truncated": True},
        "silent": {},
        "long": {"logs": NOISE, "logs_truncated": True},
        "older": {"logs": "Run main/3 of daily_orders: epochs 2 to 4\n", "logs_truncated": False},
        "other": {"error_code": "INVALID_PARAMETER_VALUE", "message": "this kind of task has no output"},
    }
    found = printed(there)
    assert found.results == {"run": RESULT}
    assert {task: why.split(":")[0].split(",")[0] for task, why in found.missing.items()} == {
        "silent": "Databricks has no logs of the task",
        "long": "Databricks keeps the last 5 MB of a task's logs",
        "older": "the task's logs contain no result",
        "other": "Databricks",
    }


def test_a_failed_command_is_reported_with_its_own_message(
    there: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    there.story = [("RUNNING", None), ("TERMINATED", "FAILED")]
    there.error = f"TaskError: {ended(65, '`rewindow run daily_orders`; see its message above')}"
    there.outputs = {"run": {"logs": f"{NOISE}{json.dumps({'error': 'no amount in', 'exit_code': 65})}\n"}}
    assert run_command(["databricks", "submit", "hourly_departures", "--poll", "0", "--json"]) == 65
    said = json.loads(capsys.readouterr().out)
    assert said["message"].splitlines() == ["no amount in", there.error]


def test_an_asset_is_found_by_two_of_three_name_parts_if_unambiguous() -> None:
    extra = {**TABLE, "epochs": [2, 4], "is_new": True}
    for name in ("main.shop.daily_orders", "shop.daily_orders"):
        assert extra_of(name, [{"landings": []}, RESULT]) == extra, name
    for name in ("daily_order", "op.daily_orders", "other.shop.daily_orders"):
        assert extra_of(name, [RESULT]) is None, name
    two = {**RESULT, "published": [TABLE, {**TABLE, "table": "test.shop.daily_orders"}]}
    assert extra_of("shop.daily_orders", [two]) is None, "the name is ambiguous"
    assert extra_of("shop.daily_orders", [{"run": None, "published": [{**TABLE, "table": "shop/daily_orders"}]}]) == {
        **TABLE,
        "table": "shop/daily_orders",
        "epochs": None,
        "is_new": False,
    }


@pytest.mark.slow
def test_the_output_of_the_wheel_task_is_found(there: Workspace, tmp_path: Path) -> None:
    root = make_shop(tmp_path, needs_jvm=False)
    (root / "conf/targets/databricks.yaml").write_text("target: databricks\nwarehouse: warehouse\n")
    task = "from rewindow.app.wheel_task import main; main()"
    given = ["--job=daily_orders", f"--project={root}", "--interval_end=2026-01-05T00:00:00Z"]
    logs = both(sys.executable, "-P", "-c", task, *given, cwd=root)
    there.outputs = {"run": {"logs": f"{NOISE}{logs}{NOISE}", "logs_truncated": False}}
    told = extra_of("shop.daily_orders", printed(there).results.values())
    assert told is not None
    assert (told["table"], told["run"], told["rows"], told["is_new"]) == ("shop/daily_orders", "main/1", 12, True)
    assert told["version"] >= 1
    assert len(told["digest"]) == 32


def both(*command: str, cwd: Path) -> str:
    """Return a command's stdout and stderr as Databricks logs them."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    how = {"cwd": cwd, "env": env, "text": True, "timeout": 300}
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)
    assert done.returncode == 0, done.stdout[-6000:]
    return str(done.stdout)
