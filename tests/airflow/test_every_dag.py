"""Every DAG with Airflow's `dag.test`: those of the demo on a sample of its data, and special cases of the shop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from jobs.flights_source import write_sources
from tests.airflow.home import ROOT, environment, play
from tests.airflow.shop import DAGS, make_shop
from tests.airflow.test_dags import rewindow, tables
from tests.conftest import copy_project

pytestmark = pytest.mark.airflow

JOBS = sorted(path.stem for path in (ROOT / "conf/jobs").glob("*.yaml"))
DAYS = 6


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with its DAG file and the first days of January as data."""
    root = copy_project(tmp_path_factory.mktemp("flights"))
    (root / "dags").mkdir()
    (root / "dags/flights.py").write_text((ROOT / "dags/flights.py").read_text())
    raw = root / "warehouse/raw"
    write_sources(raw)
    for name, column in (("departures", "left_at"), ("weather", "reported_at")):
        file = raw / name / "2013.parquet"
        rows = pq.read_table(file)
        at = pc.cast(rows[column], "int64")
        pq.write_table(rows.filter(pc.less(at, pc.min(at).as_py() + DAYS * 86_400_000)), file)
    return root


def test_every_dag_of_the_demo_runs(airflow_home: Path, flights: Path):
    env = environment(airflow_home, flights / "dags")
    for one in play(env, *({"dag": job, "date": "2013-02-01"} for job in JOBS)):
        assert one["state"] == "success", one
        (event,) = one["events"]
        assert event["extra"]["rows"] > 0
        assert event["extra"]["interval"] == ["2013-01-01T00:00:00+00:00", "2013-02-01T00:00:00+00:00"]
    for one in play(env, *({"dag": f"{job}__backfill", "conf": {"from": "1"}} for job in JOBS)):
        states = {name: task["state"] for name, task in one["tasks"].items()}
        assert one["state"] == "success", states
        assert states["verify"] == "success"
        assert states["promote"] == "skipped", "no approval is needed if nothing differs"


def test_intervals_before_the_data_params_and_feeds_without_intervals(airflow_home: Path, tmp_path: Path):
    shop = make_shop(tmp_path)
    before, bounded, whole, backwards = play(
        environment(airflow_home, shop / "dags"),
        {"dag": "daily_orders", "date": "2026-01-01"},  # the interval that ended when the first day began
        {"dag": "daily_orders", "date": "2026-01-02", "conf": {"through": "2026-01-05T00:00:00Z"}},
        {"dag": "any_orders", "date": "2026-02-01"},
        {"dag": "daily_orders__backfill", "conf": {"from": "2026-01-03", "to": "2026-01-02"}},
    )
    assert (before["state"], before["events"]) == ("success", []), "there was nothing to publish"
    assert (bounded["state"], bounded["events"][0]["extra"]["epochs"]) == ("success", [1, 4])
    daily, calls = tables(shop, "shop/daily_orders"), tables(shop, "shop/any_orders")
    assert len(daily) == 12
    assert whole["state"] == "success"
    assert len(calls) == 9
    assert set(calls) < set(daily), "without intervals the last day is still open"
    assert backwards["tasks"]["backfill"] == {"state": "failed", "tries": 1}, "retries cannot fix a reversed range"
    assert rewindow(shop, "branch", "list", "daily_orders")["branches"][0]["branch"] == "main"


def test_a_dag_that_does_not_land_waits_until_the_log_is_complete(airflow_home: Path, tmp_path: Path):
    """If another tool lands, the sensor succeeds at once or waits in the triggerer."""
    shop = make_shop(tmp_path)
    (shop / "dags/shop.py").write_text(
        DAGS.replace("parent.parent", "parent.parent, lands=False, jobs=['daily_orders']")
    )
    env = environment(airflow_home, shop / "dags")
    rewindow(shop, "land", "orders", "--until", "2026-01-03")
    landing = "import sys, time; from rewindow.app.cli import entry; time.sleep(15); entry.leave(entry.run_command(sys.argv[1:]))"
    line = [sys.executable, "-P", "-c", landing, "land", "orders", "--until", "2026-01-04", "--project", str(shop)]
    with subprocess.Popen(line, env=environment(shop, shop), cwd=shop, stdout=subprocess.DEVNULL) as later:
        ready, waited = play(env, *({"dag": "daily_orders", "date": f"2026-01-{day}"} for day in ("03", "04")))
    assert later.returncode == 0
    assert ready["state"] == waited["state"] == "success"
    assert sorted(ready["tasks"]) == ["log_complete", "run"]
    assert [one["events"][0]["extra"]["epochs"] for one in (ready, waited)] == [[1, 2], [3, 3]]
