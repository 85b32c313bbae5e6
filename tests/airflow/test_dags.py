"""The DAGs in a real Airflow: their structure, parsing, and one run of each kind with real tables."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rewindow.tables.delta.table_rows import read_rows
from tests.airflow.forked import Airflow
from tests.airflow.home import ROOT, environment, play, said
from tests.airflow.shop import FEED, JOB, make_shop

pytestmark = pytest.mark.slow

PARSE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print()
print(json.dumps({
    "errors": {str(file): text for file, text in bag.import_errors.items()},
    "loaded": sorted(name for name in HEAVY if name in sys.modules),
    "dags": {name: {
        "timetable": type(dag.timetable).__name__,
        "zone": str(getattr(dag.timetable, "timezone", None) or getattr(dag.timetable, "_timezone", None)),
        "catchup": dag.catchup,
        "runs": dag.max_active_runs,
        "params": sorted(dag.params),
        "doc": bool(dag.doc_md),
        "tags": sorted(dag.tags),
        "tasks": {task.task_id: {
            "pool": task.pool, "slots": task.pool_slots, "at_once": task.max_active_tis_per_dag, "retries": task.retries,
            "after": sorted(task.upstream_task_ids), "outlets": [asset.name for asset in task.outlets],
            "inlets": [asset.name for asset in task.inlets],
            "kind": task.task_type,
        } for task in dag.tasks},
    } for name, dag in bag.dags.items()},
}))
"""
RUN_PARAMS = ["accept_changes", "replan", "takeover", "through"]
HEAVY = ["pyspark", "py4j", "delta", "deltalake", "pyarrow", "numpy", "pandas"]


def parsed(airflow: Airflow, folder: Path) -> dict[str, Any]:
    env = environment(folder, folder)
    found: dict[str, Any] = airflow.answers(PARSE.replace("HEAVY", repr(HEAVY)), env, str(folder))
    return found


HUNDRED = """
import sys, time
from pathlib import Path
from rewindow.airflow.dags import make_dags
took = []
for _ in range(3):
    begun = time.process_time()
    made = make_dags(sys.argv[1])
    took.append(time.process_time() - begun)
print(len(made), min(took))
"""


def test_a_hundred_jobs_are_parsed_in_less_than_a_second(airflow: Airflow, tmp_path: Path):
    for part, text in (("feeds/orders", FEED), ("targets/local", "target: local\nwarehouse: warehouse\n")):
        file = tmp_path / "conf" / f"{part}.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "conf/jobs").mkdir()
    for number in range(100):
        text = JOB.replace("job: daily_orders", f"job: job_{number}").replace("shop.daily", f"shop.job_{number}")
        (tmp_path / f"conf/jobs/job_{number}.yaml").write_text(text, encoding="utf-8")
    printed = airflow.executes(HUNDRED, environment(tmp_path, tmp_path), str(tmp_path))
    dags, seconds = printed[-1].split()
    print(f"make_dags of 100 jobs: {float(seconds):.2f} s CPU")
    assert int(dags) == 200
    assert float(seconds) < 1.0


def test_the_demos_dags_are_valid_and_parsing_them_does_not_import_spark(airflow: Airflow):
    found = parsed(airflow, ROOT / "dags")
    assert found["errors"] == {}
    assert found["loaded"] == []
    jobs = sorted(path.stem for path in (ROOT / "conf/jobs").glob("*.yaml"))
    assert sorted(found["dags"]) == sorted([*jobs, *(f"{job}__backfill" for job in jobs)])
    for name, dag in found["dags"].items():
        assert dag["doc"], name
        assert "rewindow" in dag["tags"]
        assert (dag["catchup"], dag["runs"]) == (False, 1), name
        writers = [task for task in dag["tasks"].values() if task["kind"] in ("RewindowOperator", "PromoteOperator")]
        assert writers
        for task in writers:
            assert (task["pool"], task["slots"], task["at_once"]) == ("rewindow", 1, 1), name
            assert task["retries"] == 5, name
    for job in jobs:
        dag = found["dags"][job]
        assert (dag["timetable"], dag["zone"], dag["params"]) == ("CronDataIntervalTimetable", "UTC", RUN_PARAMS)
        assert dag["tasks"]["run"]["after"] == ["land"]
        assert dag["tasks"]["run"]["outlets"] == [f"flights.{job} in file://{ROOT}/warehouse"]
        assert dag["tasks"]["run"]["inlets"] == dag["tasks"]["land"]["outlets"], "the feed is upstream of the table"
        again = found["dags"][f"{job}__backfill"]
        assert again["params"] == ["accept_changes", "branch", "from", "to"]
        order = ["backfill", "verify", "promote"]
        assert sorted(again["tasks"]) == sorted(order)
        for before, after in pairwise(order):
            assert before in again["tasks"][after]["after"]


SLIPS = {
    "make_dags(ROOT, target='prod')": "no conf/targets/prod.yaml",
    "make_dags(ROOT, jobs='daily_orders')": 'write jobs=["daily_orders"]',
    "make_dags(ROOT, executable='/opt/bin/rewindow')": 'write executable=["/opt/bin/rewindow"]',
    "make_dags(ROOT, jobs=[])": "add a file conf/jobs/JOB.yaml",
    "make_dags(ROOT, start_date='2026-11-01')": "start_date='2026-11-01' is not a datetime",
    "make_dags(ROOT, catchup=True)": "catchup=True requires start_date=",
    "make_dags(ROOT, pool='one_{fed}')": "only {job} and {feed} can be replaced",
    "make_dags(ROOT, pool='one_{0}')": "only {job} and {feed} can be replaced",
    "make_dags(ROOT, tags='shop')": 'write tags=["shop"]',
    "make_dags(ROOT, dag_run_timeout=1)": "unexpected keyword argument 'dag_run_timeout'",
    "make_dags(ROOT, max_active_runs=2)": "multiple values for keyword argument 'max_active_runs'",
    "make_dags(ROOT, maintenance='daily_orders')": "is the id of a job's DAG: choose another id",
    "make_dags(ROOT, reports='always')": "reports='always': use 'warehouse' or 'none'",
    "make_dags('/nowhere')": "no folder conf/ in /nowhere",
    "{'x': RewindowOperator(task_id='x', arguments='verify daily_orders')}": 'write arguments=["verify daily_orders"]',
}


def test_a_mistake_in_a_dag_file_is_an_import_error_that_names_the_fix(airflow: Airflow, shop: Path, tmp_path: Path):
    for number, call in enumerate(SLIPS):
        lines = [
            "from rewindow.airflow.dags import make_dags",
            "from rewindow.airflow.operators import RewindowOperator",
            f"ROOT = {str(shop)!r}",
            f"globals().update({call})",
        ]
        (tmp_path / f"slip{number}.py").write_text("\n".join(lines))
    found = parsed(airflow, tmp_path)
    assert found["dags"] == {}
    errors = {Path(file).stem: text for file, text in found["errors"].items()}
    for number, (call, fix) in enumerate(SLIPS.items()):
        assert fix in errors[f"slip{number}"].splitlines()[-1], call


def test_templates_that_render_to_nothing_start_no_command(airflow: Airflow, tmp_path: Path):
    code = """
from rewindow.airflow.operators import RewindowOperator
from rewindow.errors import UsageError
try:
    print(RewindowOperator(task_id="x", arguments=["", ""]).command({}))
except UsageError as error:
    print(error.code)
"""
    last = airflow.executes(code, environment(tmp_path, tmp_path))[-1]
    assert last == "operator-arguments-empty"


def test_an_asset_is_one_table_whatever_project_or_target_names_it(airflow: Airflow, tmp_path: Path):
    roots = [tmp_path / name for name in ("one", "other")]
    for root in roots:
        root.mkdir()
        make_shop(root, needs_jvm=False)
    targets = roots[0] / "conf/targets"
    (targets / "cluster.yaml").write_text(
        "target: cluster\nwarehouse: warehouse\nmaster: spark://127.0.0.1:7077\ncores: 2\n"
    )
    (targets / "test.yaml").write_text("target: test\nwarehouse: s3://events/test warehouse\n")
    (targets / "lake.yaml").write_text(
        "target: lake\nwarehouse: /tmp\nconnect: platform\ncores: 2\nsource: shuffle\ncommit: spark\nstaging: rows\n"
        "catalog: main.rewindow\n"
    )
    code = f"""
import json
from rewindow.airflow.assets import catalog_asset, feed_asset, table_asset
places = [({str(roots[0])!r}, name) for name in ("local", "cluster", "test", "lake", "{{{{ var.value.x }}}}")]
assets = [table_asset("shop.daily_orders", *place) for place in [*places, ({str(roots[1])!r}, "local")]]
assets.append(catalog_asset("main.shop.daily_orders"))
assets += [feed_asset("orders", *place) for place in (places[0], places[3])]
print(json.dumps([[asset.name, asset.uri] for asset in assets]))
"""
    found = airflow.answers(code, environment(tmp_path, tmp_path))
    local, cluster, test, lake, templated, other, named, *feeds = found
    warehouse = f"file://{roots[0]}/warehouse"
    assert local == cluster == [f"shop.daily_orders in {warehouse}", f"{warehouse}/shop/daily_orders"]
    assert test[1] == "s3://events/test%20warehouse/shop/daily_orders"
    assert lake == named == ["main.shop.daily_orders", "delta://main/shop/daily_orders"]
    assert feeds == [
        [f"feed orders in {warehouse}", f"{warehouse}/logs/orders"],
        ["feed orders in main.rewindow", "delta://main/rewindow/logs/orders"],
    ]
    for column in (0, 1):
        assert len({one[column] for one in (local, test, lake, templated, other)}) == 5


def test_a_backfill_lands_through_what_the_schedule_has_made_due(airflow: Airflow, shop: Path):
    code = f"""
from types import SimpleNamespace
import pendulum
from rewindow.airflow.dags import make_dags
dag = make_dags({str(shop)!r}, jobs=["daily_orders"])["daily_orders"]
end = pendulum.datetime(2026, 1, 2)
context = {{"data_interval_end": end, "dag": dag, "params": {{}}, "dag_run": SimpleNamespace(run_type="backfill", conf=None)}}
line = dag.get_task("land").command(context)
print(line[line.index("--until") + 1] == pendulum.today("UTC").isoformat())
line = dag.get_task("run").command(context)
print(line[line.index("--through") + 1] == end.isoformat())
"""
    printed = airflow.executes(code, environment(shop, shop))
    assert printed[-2:] == ["True", "True"]


def test_the_provider_is_known_and_fits_airflows_schema(airflow: Airflow, tmp_path: Path):
    env = environment(tmp_path, tmp_path)
    found = "ProvidersManager().providers['rewindow'].data"
    code = f"import json; from airflow.providers_manager import ProvidersManager; print(json.dumps({found}))"
    info = airflow.answers(code, env)
    modules = [module for kind in ("operators", "sensors", "triggers") for module in info[kind][0]["python-modules"]]
    assert modules == [
        f"rewindow.airflow.{name}" for name in ("operators", "job_tasks", "job_runs", "sensors", "triggers", "job_runs")
    ]
    loaded = f"import importlib; [importlib.import_module(name) for name in {modules!r}]"
    airflow.executes(loaded, env)


def tables(root: Path, name: str) -> list[tuple[Any, ...]]:
    rows = read_rows(str(root / "warehouse" / name)).to_pylist()
    return sorted((row["customer"], row["window_start"], row["orders"], row["amount"]) for row in rows)


def rewindow(root: Path, *arguments: str) -> Any:
    line = [sys.executable, "-P", "-m", "rewindow", *arguments, "--project", str(root), "--json"]
    return json.loads(said(environment(root, root), *line, cwd=root))  # not in a folder with another `jobs` package


@pytest.mark.airflow
def test_a_later_run_includes_earlier_days_whose_runs_then_have_nothing_to_do(shop: Path, shop_env: dict[str, str]):
    plays = ({"dag": "daily_orders", "date": f"2026-01-{day}"} for day in ("04", "03"))
    later, earlier = play(shop_env, *plays)
    for one in (later, earlier):
        assert one["state"] == "success", one
        assert {task["tries"] for task in one["tasks"].values()} == {1}
    (told,) = later["events"]
    assert told["asset"] == f"shop.daily_orders in file://{shop}/warehouse"
    extra = told["extra"]
    assert extra["interval"] == ["2026-01-03T00:00:00+00:00", "2026-01-04T00:00:00+00:00"]
    assert (extra["table"], extra["run"], extra["epochs"], extra["rows"]) == ("shop/daily_orders", "main/1", [1, 3], 9)
    assert extra["version"] >= 1
    assert len(extra["digest"]) == 32
    assert extra["is_new"]
    assert earlier["events"] == earlier["feeds"] == [], "nothing was done, so nothing is told"
    (landed,) = later["feeds"]
    assert landed["asset"] == f"feed orders in file://{shop}/warehouse"
    assert (landed["extra"]["landings"], landed["extra"]["rows"]) == ([1, 2, 3], 30)
    report = shop / "warehouse/rewindow/reports/daily_orders/main.html"
    assert later["reports"] == {"run": report.as_uri()}
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert not earlier["reports"].get("run")
    assert len(tables(shop, "shop/daily_orders")) == 9


@pytest.mark.airflow
def test_a_fix_that_changes_the_topology_is_backfilled_with_the_param_accept_changes(
    airflow_home: Path, tmp_path: Path
):
    """The refused attempt leaves no branch, and a repeated one continues on its own."""
    shop = make_shop(tmp_path, needs_jvm=False)
    rewindow(shop, "land", "orders", "--until", "2026-01-04")
    for landing in ("1", "3"):
        rewindow(shop, "run", "daily_orders", "--through", landing)
    code = shop / "jobs/daily_orders.py"
    fixed = 'builder.stream("orders").filter(lambda key, value: key != "c", name="known")'
    code.write_text(code.read_text().replace('builder.stream("orders")', fixed))

    def backfill(**conf: object) -> dict[str, object]:
        skip = "verify|promote"  # `verify` needs a JVM
        return {"dag": "daily_orders__backfill", "conf": {"from": "2", "branch": "fix", **conf}, "skip": skip}

    env = environment(airflow_home, shop / "dags")
    refused, accepted, again = play(env, backfill(), backfill(accept_changes=True), backfill(accept_changes=True))
    assert refused["tasks"]["backfill"] == {"state": "failed", "tries": 1}
    for one in (accepted, again):
        states = {name: task["state"] for name, task in one["tasks"].items()}
        assert states["backfill"] == "success", states
    branches = rewindow(shop, "branch", "list", "daily_orders")["branches"]
    assert [(one["branch"], one["stands_on"], one["last_run"]) for one in branches][1:] == [("fix", "main/1", "fix/2")]
