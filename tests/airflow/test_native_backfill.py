"""`airflow backfill create` over ten days in a real scheduler: one run lands for all of them, and no JVM starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewindow.tables.delta.table_rows import content_hash
from tests.airflow.home import AIRFLOW, patiently
from tests.airflow.shop import make_shop
from tests.airflow.test_dags import rewindow

pytestmark = pytest.mark.airflow

DAYS = 10
RUN_SECONDS = 2400
JOB = "daily_orders"
DAGS = """\
from datetime import UTC, datetime
from pathlib import Path

from rewindow.airflow.dags import make_dags

project = Path(__file__).parent.parent
globals().update(make_dags(project, jobs=["daily_orders"], end_date=datetime(2026, 1, 20, tzinfo=UTC)))
"""
JAVA = """\
#!/bin/sh
echo "$@" >> {calls}
exit 1
"""


def without_java(env: dict[str, str], folder: Path) -> dict[str, str]:
    """Return an environment whose only `java` notes that it was called, and fails."""
    java = folder / "bin/java"
    java.parent.mkdir()
    java.write_text(JAVA.format(calls=folder / "calls"))
    java.chmod(0o755)
    return {**env, "JAVA_HOME": str(folder), "PATH": f"{java.parent}:{env['PATH']}"}


# On SQLite, Airflow's own `backfill create` and scheduler lock each other out of the database.
@pytest.mark.parametrize("scheduler_env", ["postgresql"], indirect=True)
def test_a_backfill_of_ten_days_lands_once_and_starts_no_jvm(
    scheduler_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from tests.airflow.live import Live  # needs Airflow's dependencies

    root, java = make_shop(tmp_path_factory.mktemp("shop"), days=DAYS, needs_jvm=False), tmp_path_factory.mktemp("java")
    (root / "dags/shop.py").write_text(DAGS)
    env = without_java({**scheduler_env, "AIRFLOW__CORE__DAGS_FOLDER": str(root / "dags")}, java)
    with Live(env) as live:
        live.until(lambda: live.get("/dags")["total_entries"] == 2, RUN_SECONDS, "the DAGs")
        live.patch(f"/dags/{JOB}", {"is_paused": False})
        span = ["--from-date", "2026-01-01", "--to-date", "2026-01-10"]
        patiently(live.env, [AIRFLOW, "backfill", "create", "--dag-id", JOB, *span])

        def ended() -> Any:
            runs = live.get(f"/dags/{JOB}/dagRuns", run_type="backfill", limit=100)["dag_runs"]
            is_over = len(runs) == DAYS and all(run["state"] in ("success", "failed") for run in runs)
            return sorted(runs, key=lambda run: run["logical_date"]) if is_over else None

        runs = live.until(ended, RUN_SECONDS, "the runs of the backfill")
        assert [run["state"] for run in runs] == ["success"] * DAYS
        printed = {
            task: [live.get(f"{tasks_of(run)}/{task}/xcomEntries/return_value")["value"] for run in runs]
            for task in ("land", "run")
        }
    landed = [result["landings"] for result in printed["land"] if result["landings"]]
    assert len(landed) == 1, "one run lands for all"
    assert len(landed[0]) >= DAYS, "each day is a landing of its own"
    reached = [result["epochs"] for result in printed["run"]]
    assert [epochs for epochs in reached if epochs] == [[day, day] for day in range(1, DAYS + 1)], (
        "each run stops at its day"
    )
    assert not (java / "calls").exists(), (java / "calls").read_text()

    by_hand = make_shop(tmp_path_factory.mktemp("by_hand"), days=DAYS, needs_jvm=False)
    rewindow(
        by_hand, "run", JOB, "--land", "--until", "2026-01-11"
    )  # without a time, the last day waits for a later row
    for table in ("shop/daily_orders", "logs/orders/orders"):
        ours, theirs = (content_hash(str(one / "warehouse" / table)) for one in (root, by_hand))
        assert ours == theirs, table


def tasks_of(run: dict[str, Any]) -> str:
    """Return the path of a run's task instances in the REST API."""
    return f"/dags/{JOB}/dagRuns/{run['dag_run_id']}/taskInstances"
