"""A real scheduler: a DAG run that is triggered, a task that is killed and retried, a real backfill, an approval."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from rewindow.delta.contents import content_hash
from tests.airflow.home import AIRFLOW, ROOT, environment
from tests.airflow.shop import DAGS, make_shop
from tests.airflow.test_dags import rewindow, tables

if TYPE_CHECKING:
    from tests.airflow.live import Live

pytestmark = pytest.mark.airflow

RUN_SECONDS = 600
JOB = "daily_orders"
# The schedule is over: only what the test asks for runs.
LATER = DAGS.replace("parent.parent", "parent.parent, end_date=datetime(2026, 11, 10, tzinfo=UTC)").replace(
    "from pathlib", "from datetime import UTC, datetime\nfrom pathlib"
)


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_shop(tmp_path_factory.mktemp("scheduled"))
    (root / "dags/shop.py").write_text(LATER)
    return root


@pytest.fixture(scope="module")
def live(airflow_home: Path, scheduled: Path) -> Any:
    from tests.airflow.live import Live  # it needs what comes with Airflow

    with Live(environment(airflow_home, scheduled / "dags")) as live:
        live.until(lambda: len(live.get("/dags")["dags"]) == 4, 120, "the four DAGs")
        for dag in (JOB, f"{JOB}__backfill"):
            live.patch(f"/dags/{dag}", {"is_paused": False})
        yield live


def finished(live: Live, dag: str, run: str) -> Any:
    found = live.get(f"/dags/{dag}/dagRuns/{run}")
    return found if found["state"] in ("success", "failed") else None


def test_a_run_whose_command_is_killed_is_retried_and_ends_well(live: Live, scheduled: Path):
    run = live.post(f"/dags/{JOB}/dagRuns", {"logical_date": None, "conf": {"through": "2026-01-02"}})
    run_id = run["dag_run_id"]
    victim = live.until(lambda: commands(scheduled, "run"), RUN_SECONDS, "the command of `run`")[0]
    os.kill(victim, signal.SIGKILL)
    ended = live.until(lambda: finished(live, JOB, run_id), RUN_SECONDS, "the run's end")
    tasks = live.tasks(JOB, run_id)
    assert ended["state"] == "success", tasks
    assert (tasks["land"]["try_number"], tasks["run"]["try_number"]) == (1, 2)
    assert len(tables(scheduled, "shop/daily_orders")) == 3, "one day, three customers"


def test_a_worker_that_is_killed_finds_its_command_again(live: Live, scheduled: Path):
    run = live.post(f"/dags/{JOB}/dagRuns", {"logical_date": None, "conf": {"through": "2026-01-03"}})
    run_id = run["dag_run_id"]
    command = live.until(lambda: commands(scheduled, "run"), RUN_SECONDS, "the command of `run`")[0]
    executing = workers(live, live.tasks(JOB, run_id)["run"]["id"])
    assert executing
    for worker in executing:
        os.kill(worker, signal.SIGKILL)
    live.until(lambda: not psutil.pid_exists(command), RUN_SECONDS, "the command's end, which nobody killed")
    ended = live.until(lambda: finished(live, JOB, run_id), RUN_SECONDS, "the run's end")
    assert ended["state"] == "success"
    assert live.tasks(JOB, run_id)["run"]["try_number"] == 2
    assert len(tables(scheduled, "shop/daily_orders")) == 6
    shown = rewindow(scheduled, "show", JOB)
    assert [one["run"] for one in shown["runs"]] == ["main/1", "main/2"], "the second attempt did not run it again"


def test_a_real_backfill_gives_the_tables_of_the_command_line(live: Live, scheduled: Path, tmp_path: Path):
    arguments = [
        "--dag-id",
        JOB,
        "--from-date",
        "2025-12-31",
        "--to-date",
        "2026-01-04",
        "--max-active-runs",
        "3",
        "--run-backwards",
    ]
    for attempt in range(3):  # SQLite may be locked
        done = subprocess.run(
            [AIRFLOW, "backfill", "create", *arguments], env=live.env, capture_output=True, text=True, check=False
        )
        if done.returncode == 0 or attempt == 2:
            break
    assert done.returncode == 0, done.stdout + done.stderr

    def all_done() -> Any:
        runs = live.get(f"/dags/{JOB}/dagRuns", run_type="backfill")["dag_runs"]
        return runs if len(runs) == 5 and all(run["state"] in ("success", "failed") for run in runs) else None

    runs = live.until(all_done, RUN_SECONDS, "five runs of the backfill")
    assert {run["state"] for run in runs} == {"success"}
    by_hand = make_shop(tmp_path)
    rewindow(by_hand, "land", "orders", "--until", "2026-01-05")
    rewindow(by_hand, "run", JOB)
    for table in ("shop/daily_orders", "logs/orders/orders"):
        ours, theirs = (content_hash(str(root / "warehouse" / table)) for root in (scheduled, by_hand))
        assert ours == theirs, table
    events = live.get("/assets/events", limit=100, order_by="-timestamp")["asset_events"]
    assert {event["extra"]["table"] for event in events if event["extra"]} == {"shop/daily_orders"}


def test_a_recomputed_past_waits_for_approval_and_is_published(live: Live, scheduled: Path):
    """A bug is mended, the past is replayed on a branch, somebody approves, the tables follow."""
    before = tables(scheduled, "shop/daily_orders")
    code = scheduled / "jobs/daily_orders.py"
    code.write_text(
        code.read_text().replace(
            'builder.stream("orders")', 'builder.stream("orders").filter(lambda key, value: key != "c")'
        )
    )
    dag = f"{JOB}__backfill"
    run_id = live.post(
        f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": {"from": "2026-01-01", "branch": "mended"}}
    )["dag_run_id"]

    def waiting() -> Any:
        state = {name: task["state"] for name, task in live.tasks(dag, run_id).items()}
        assert "failed" not in state.values(), state
        return state.get("approve") in ("awaiting_input", "deferred")

    live.until(waiting, RUN_SECONDS, "the question")
    time.sleep(15)  # people take longer than a scheduler's loop; Airflow takes an answer within it for a failure
    assert tables(scheduled, "shop/daily_orders") == before, "nothing published changes before somebody approves"
    asked = live.get(f"/dags/{dag}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails")
    assert "daily-orders" in asked["body"]
    live.patch(
        f"/dags/{dag}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails",
        {"chosen_options": ["Approve"], "params_input": {}},
    )
    ended = live.until(lambda: finished(live, dag, run_id), RUN_SECONDS, "the run's end")
    assert ended["state"] == "success", live.tasks(dag, run_id)
    assert tables(scheduled, "shop/daily_orders") == [row for row in before if row[0] != "c"]


def commands(root: Path, command: str) -> list[int]:
    """Return the pids of rewindow commands on a project (not of those that keep them)."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if str(root) in line and command in line[4:6] and not any("keeper" in part for part in line):
            found.append(process.pid)
    return found


def workers(live: Live, ti_id: str) -> list[int]:
    """Return the pids of the processes that execute a task instance: children of the LocalExecutor's worker that has it."""
    found = []
    for process in psutil.Process(live.process.pid).children(recursive=True):
        try:
            if ti_id in " ".join(process.cmdline()):
                found += [child.pid for child in process.children()]
        except psutil.Error:  # it has ended meanwhile
            continue
    return found


def test_every_command_of_the_readme(live: Live):
    """They are typed as they stand there, in this order, against the running Airflow."""
    readme = (ROOT / "README.md").read_text()
    shown = readme[readme.index("<!-- airflow:begin") : readme.index("<!-- airflow:end")]
    lines = [line.removeprefix("$ ") for line in shown.splitlines() if line.startswith("$ ")]
    assert len(lines) == 9
    for line in lines:
        for _ in range(3):  # SQLite may be locked
            done = subprocess.run(shlex.split(line), env=live.env, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"

    def ended() -> bool:
        runs = [
            run for dag in (JOB, f"{JOB}__backfill") for run in live.get(f"/dags/{dag}/dagRuns", limit=100)["dag_runs"]
        ]
        return all(run["state"] in ("success", "failed") for run in runs)

    live.until(ended, RUN_SECONDS, "the runs' ends")
