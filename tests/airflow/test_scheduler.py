"""A real scheduler: triggered runs, a killed command, a killed worker, the backfill of a month, an approval.

No result depends on timing: each wait is for a state, with a deadline in case the state is never reached.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from rewindow.tables.delta.table_rows import content_hash
from tests.airflow.home import AIRFLOW, ROOT, commands, patiently
from tests.airflow.shop import WEEKLY, make_shop
from tests.airflow.test_dags import rewindow, tables

if TYPE_CHECKING:
    from tests.airflow.live import Live

pytestmark = pytest.mark.airflow

RUN_SECONDS = 1500
DAYS = 31
REPORT = "warehouse/rewindow/reports/daily_orders/fixed.html"
JOB, OTHER, OWN = "daily_orders", "weekly_orders", "orders_then_proof"
# The schedules have ended, so only what the tests trigger runs. Two jobs land the same feed, each in its own pool.
DAGS = """\
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rewindow.airflow.dags import make_dags

project = Path(__file__).parent.parent
soon = {"retry_delay": timedelta(seconds=2)}
daily, weekly = datetime(2026, 11, 10, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
globals().update(make_dags(project, jobs=["daily_orders"], end_date=daily, default_args=soon))
globals().update(make_dags(project, jobs=["weekly_orders"], end_date=weekly, default_args=soon, pool="rewindow_{job}"))
"""


def own_dag(root: Path) -> str:
    """Return the DAG file of the page on Airflow, for this project and with an end date."""
    words = (ROOT / "docs/deployment/airflow.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", words, re.DOTALL) if OWN in block)
    assert 'PROJECT = "/opt/shop"' in code
    assert "max_active_runs=1" in code
    ended = "max_active_runs=1, end_date=datetime(2026, 11, 10, tzinfo=UTC)"
    code = code.replace('"/opt/shop"', repr(str(root))).replace("max_active_runs=1", ended)
    return f"from datetime import UTC, datetime\n{code}"


@pytest.fixture(scope="module")
def scheduled(scheduler_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project of one Airflow: each database gets its own."""
    assert scheduler_env
    root = make_shop(tmp_path_factory.mktemp("scheduled"), days=DAYS)
    (root / "conf/jobs/weekly_orders.yaml").write_text(WEEKLY)
    (root / "dags/shop.py").write_text(DAGS)
    (root / "dags/own.py").write_text(own_dag(root))
    return root


@pytest.fixture(scope="module")
def live(scheduler_env: dict[str, str], scheduled: Path) -> Any:
    from tests.airflow.live import Live  # needs Airflow's dependencies

    with Live({**scheduler_env, "AIRFLOW__CORE__DAGS_FOLDER": str(scheduled / "dags")}) as live:
        live.until(lambda: len(live.get("/dags")["dags"]) == 5, RUN_SECONDS, "the five DAGs")
        for dag in (JOB, f"{JOB}__backfill", OTHER, OWN):
            live.patch(f"/dags/{dag}", {"is_paused": False})
        live.post("/pools", {"name": f"rewindow_{OTHER}", "slots": 1})
        yield live


def trigger(live: Live, dag: str, date: str | None = None, **conf: str) -> str:
    """Trigger a run and return its id."""
    made: str = live.post(f"/dags/{dag}/dagRuns", {"logical_date": date, "conf": conf})["dag_run_id"]
    return made


def end_of(live: Live, dag: str, run: str) -> str:
    """Wait until a run has ended and return its state."""

    def ended() -> Any:
        state = live.get(f"/dags/{dag}/dagRuns/{run}")["state"]
        return state if state in ("success", "failed") else None

    found: str = live.until(ended, RUN_SECONDS, f"the end of {dag}'s run")
    return found


def test_invalid_params_are_refused_before_a_run_is_created(live: Live):
    for dag, conf in (
        (JOB, {"through": "soon"}),
        (JOB, {"through": "2026-13-01"}),
        (f"{JOB}__backfill", {}),
        (f"{JOB}__backfill", {"from": "the beginning"}),
        (f"{JOB}__backfill", {"from": "2026-01-01", "branch": "my branch"}),
    ):
        live.refused(f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})
        assert live.get(f"/dags/{dag}/dagRuns")["total_entries"] == 0, (dag, conf)


def test_a_run_whose_command_is_killed_is_retried_and_ends_well(live: Live, scheduled: Path):
    run_id = trigger(live, JOB, through="2026-01-02")
    victim = live.until(lambda: commands(scheduled, "run"), RUN_SECONDS, "the command of `run`")[0]
    os.kill(victim, signal.SIGKILL)
    assert end_of(live, JOB, run_id) == "success"
    assert live.tasks(JOB, run_id)["run"]["try_number"] >= 2
    told = live.get(f"/dags/{JOB}/tasks/run")
    assert (told["retries"], told["retry_delay"]["seconds"]) == (5, 2), "`default_args` override our defaults"
    assert len(tables(scheduled, "shop/daily_orders")) == 3, "one day, three customers"


def test_a_worker_that_is_killed_takes_its_command_along_and_the_retry_takes_over(live: Live, scheduled: Path):
    """Kill the worker and its task process, so that Airflow misses the heartbeat."""
    run_id = trigger(live, JOB, through="2026-01-03")
    command = live.until(lambda: commands(scheduled, "run"), RUN_SECONDS, "the command of `run`")[0]
    executing = workers(live, live.tasks(JOB, run_id)["run"]["id"])
    assert len(executing) >= 2
    for worker in executing:
        os.kill(worker, signal.SIGKILL)
    live.until(lambda: not psutil.pid_exists(command), 60, "the command's end, long before Airflow misses the worker")
    assert end_of(live, JOB, run_id) == "success"
    assert live.tasks(JOB, run_id)["run"]["try_number"] == 2, "the first retry took over at once"
    stored = f"/dags/{JOB}/dagRuns/{run_id}/taskInstances/run/state-store"
    assert live.get(stored)["total_entries"] == 0, "a user could edit it"
    assert len(tables(scheduled, "shop/daily_orders")) == 6
    shown = rewindow(scheduled, "show", JOB)
    assert [one["run"] for one in shown["runs"]] == ["main/1", "main/2"], "each run is committed once"


def test_a_month_backfilled_backwards_with_other_writers_gives_the_tables_of_the_command_line(
    live: Live, scheduled: Path, tmp_path: Path
):
    """One DAG is backfilled and one is triggered, and both land the feed. The DAG of the page on Airflow waits in the triggerer.

    Meanwhile, the scheduler is killed.
    """
    own = trigger(live, OWN, "2026-02-01T00:00:00Z")  # its interval ends at this date
    live.until(lambda: live.tasks(OWN, own)["complete"]["state"] == "deferred", RUN_SECONDS, "the sensor to wait")
    arguments = ["--from-date", "2025-12-28", "--to-date", "2026-01-25", "--max-active-runs", "3", "--run-backwards"]
    patiently(live.env, [AIRFLOW, "backfill", "create", "--dag-id", OTHER, *arguments])
    daily = trigger(live, JOB, through="2026-02-01T00:00:00Z")
    live.until(lambda: commands(scheduled, "land"), RUN_SECONDS, "a command")
    live.scheduler().kill()  # `until` restarts it, and running commands continue

    by_hand = make_shop(tmp_path, days=DAYS)
    (by_hand / "conf/jobs/weekly_orders.yaml").write_text(WEEKLY)
    rewindow(by_hand, "land", "orders", "--until", "2026-02-01")
    for job in (JOB, OTHER):
        rewindow(by_hand, "run", job)

    def all_done() -> Any:
        runs = live.get(f"/dags/{OTHER}/dagRuns", run_type="backfill")["dag_runs"]
        return runs if len(runs) == 5 and all(run["state"] in ("success", "failed") for run in runs) else None

    runs = live.until(all_done, RUN_SECONDS, "five runs of the backfill")
    states = [run["state"] for run in runs] + [end_of(live, dag, run) for dag, run in ((JOB, daily), (OWN, own))]
    assert set(states) == {"success"}, states
    assert len(tables(scheduled, "shop/weekly_orders")) == 3 * DAYS
    for table in ("shop/daily_orders", "shop/weekly_orders", "logs/orders/orders"):
        ours, theirs = (content_hash(str(root / "warehouse" / table)) for root in (scheduled, by_hand))
        assert ours == theirs, table
    events = live.get("/assets/events", limit=100, order_by="-timestamp")["asset_events"]
    told = {event["extra"].get("table") or event["extra"]["feed"] for event in events if event["extra"]}
    assert told == {"shop/daily_orders", "shop/weekly_orders", "orders"}


def test_a_recomputed_past_waits_for_approval_and_is_published(live: Live, scheduled: Path):
    """Fix a bug, replay the past on a branch, reject and then approve it, and check the tables."""
    before = tables(scheduled, "shop/daily_orders")
    code = scheduled / "jobs/daily_orders.py"
    code.write_text(
        code.read_text().replace(
            'builder.stream("orders")', 'builder.stream("orders").filter(lambda key, value: key != "c")'
        )
    )
    dag = f"{JOB}__backfill"
    run_id = trigger(live, dag, **{"from": "2026-01-01", "branch": "fixed"})
    there = f"/dags/{dag}/dagRuns/{run_id}/taskInstances/promote/-1/hitlDetails"

    def waiting(attempt: int) -> Any:
        state = {name: task["state"] for name, task in live.tasks(dag, run_id).items()}
        assert "failed" not in state.values(), state
        # The scheduler must have seen the state too: it treats an earlier answer as a failure.
        seen = rf"executor event with state success .*{dag}.*task_id='promote'.*try_number={attempt}"
        return state.get("promote") == "awaiting_input" and re.search(seen, live.log.read_text(errors="replace"))

    def answered(choice: str) -> str:
        live.patch(there, {"chosen_options": [choice], "params_input": {}})
        return end_of(live, dag, run_id)

    live.until(lambda: waiting(1), RUN_SECONDS, "the question")
    assert tables(scheduled, "shop/daily_orders") == before, "published tables do not change before an approval"
    body = live.get(there)["body"]
    assert f"| daily-orders | {len(before) * 2 // 3} | 0 | {len(before) // 3} | 0 |" in body
    assert f"The report {(scheduled / REPORT).as_uri()} has this comparison" in body
    assert answered("Reject") == "success"
    assert live.tasks(dag, run_id)["promote"]["state"] == "skipped"
    assert tables(scheduled, "shop/daily_orders") == before

    again = {"task_ids": ["promote"], "only_failed": False, "dry_run": False}
    live.post(f"/dags/{dag}/clearTaskInstances", {"dag_run_id": run_id, **again})
    live.until(lambda: waiting(2), RUN_SECONDS, "the question")
    assert answered("Approve") == "success", live.tasks(dag, run_id)
    assert tables(scheduled, "shop/daily_orders") == [row for row in before if row[0] != "c"]


def workers(live: Live, ti_id: str) -> list[int]:
    """Return the pids of the processes that execute a task instance: the LocalExecutor's worker and its children."""
    found = []
    for process in live.processes():
        try:
            if ti_id in " ".join(process.cmdline()):
                found += [process.pid, *(child.pid for child in process.children())]
        except psutil.Error:  # it has ended
            continue
    return found


def test_every_command_of_the_page_on_airflow(live: Live):
    """Run the commands against Airflow, in the page's order."""
    page = (ROOT / "docs/deployment/airflow.md").read_text()
    shown = page[page.index("<!-- airflow:begin") : page.index("<!-- airflow:end")]
    lines = [line.removeprefix("$ ") for line in shown.splitlines() if line.startswith("$ ")]
    assert len(lines) == 9
    for line in lines:
        patiently(live.env, shlex.split(line))

    def ended() -> bool:
        runs = [
            run for dag in (JOB, f"{JOB}__backfill") for run in live.get(f"/dags/{dag}/dagRuns", limit=100)["dag_runs"]
        ]
        return all(run["state"] in ("success", "failed") for run in runs)

    live.until(ended, RUN_SECONDS, "the runs' ends")
