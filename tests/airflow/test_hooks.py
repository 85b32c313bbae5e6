"""Connections in real Airflow classes: credentials reach the commands and nothing else; Databricks is asked with them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.forked import Airflow
from tests.airflow.home import ROOT, environment, play, said
from tests.airflow.shop import make_shop
from tests.databricks.workspace import workspace
from tests.object_store.server import BUCKET, objects, s3_server

pytestmark = pytest.mark.slow

SECRET = "canary-4f1e-secret"  # noqa: S105 - that of the server
DAGS = """\
from pathlib import Path

from rewindow.airflow.dags import make_dags

project = Path(__file__).parent.parent
globals().update(make_dags(project, jobs=["daily_orders"], conn_id="lake"))
globals().update(make_dags(project, jobs=["daily_orders"], conn_id="lake", lands=False, prefix="later_"))
globals().update(make_dags(project, jobs=["daily_orders"], conn_id="lost", prefix="lost_"))
"""


@pytest.mark.airflow
def test_a_buckets_credentials_come_from_a_connection_and_are_written_nowhere(
    airflow_home: Path, tmp_path: Path
) -> None:
    shop, served = make_shop(tmp_path / "shop", needs_jvm=False), tmp_path / "s3"
    served.mkdir()
    (shop / "dags/shop.py").write_text(DAGS)
    target = f"target: local\nwarehouse: s3://{BUCKET}/warehouse\ninline: 100000\n"
    (shop / "conf/targets/local.yaml").write_text(target + 'storage_options: {AWS_ALLOW_HTTP: "true"}\n')
    with s3_server(served) as settings:
        extra = {"endpoint_url": settings["AWS_ENDPOINT_URL"], "region_name": settings["AWS_REGION"]}
        keys = {"login": settings["AWS_ACCESS_KEY_ID"], "password": settings["AWS_SECRET_ACCESS_KEY"]}
        assert keys["password"] == SECRET
        env = environment(airflow_home, shop / "dags")
        env["AIRFLOW_CONN_LAKE"] = json.dumps({"conn_type": "aws", **keys, "extra": extra})
        env["AWS_SESSION_TOKEN"] = "of the worker itself"  # noqa: S105 - it must not be mixed with the keys
        done, lost = play(env, *({"dag": dag, "date": "2026-01-05"} for dag in ("daily_orders", "lost_daily_orders")))
        del env["AWS_SESSION_TOKEN"]
        (waited,) = play(env, {"dag": "later_daily_orders", "date": "2026-01-05"})
        assert done["state"] == "success", done
        assert waited["state"] == "success", "the sensor opens the bucket, too"
        assert lost["tasks"]["land"] == {"state": "failed", "tries": 1}
        assert [name for name, _ in objects(settings, "warehouse/shop")]
        reports = dict(objects(settings, "warehouse/rewindow/reports"))
    (page,) = reports.values()
    assert page.startswith(b"<!doctype html>")
    assert done["reports"] == {"run": f"s3://{BUCKET}/warehouse/rewindow/reports/daily_orders/main.html"}
    written = [file for folder in (airflow_home, shop) for file in folder.rglob("*") if file.is_file()]
    assert written
    assert [str(file) for file in written if SECRET.encode() in file.read_bytes()] == []


COMMAND = """
import json, os, sys
names = [name for name in os.environ if name.startswith("AWS_") and name != "AWS_CA_BUNDLE"]
print(json.dumps({"env": {name: os.environ[name] for name in names}, "line": sys.argv[1:]}))
"""
PROBE = """
import json, logging, sys
from types import SimpleNamespace
from rewindow.airflow.operators import RewindowOperator
said = []
task = RewindowOperator(
    task_id="run", job="orders", project=FOLDER, conn_id="lake", folder=FOLDER, executable=[sys.executable, "-c", COMMAND],
)
task.log.info = lambda text, *of: said.append(text % of)
context = {"params": {"through": "2026-01-02"}, "dag": SimpleNamespace(params={"through": None})}
result = task.execute(context)
fields = {name: getattr(task, name) for name in task.template_fields}
print(json.dumps({"result": result, "said": said, "fields": fields}))
"""


def test_only_the_environment_of_the_command_contains_the_credentials(tmp_path: Path) -> None:
    env = environment(tmp_path, tmp_path)
    env["AIRFLOW_CONN_LAKE"] = json.dumps({"conn_type": "aws", "login": "AKIA", "password": SECRET})
    env["AWS_SESSION_TOKEN"] = "of the worker"  # noqa: S105 - it is none
    code = PROBE.replace("FOLDER", repr(str(tmp_path))).replace("COMMAND", repr(COMMAND))
    found = json.loads(said(env, sys.executable, "-W", "ignore", "-c", code).splitlines()[-1])
    assert found["result"].pop("env") == {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": SECRET}
    assert found["fields"]["conn_id"] == "lake"
    assert SECRET not in json.dumps(found)
    assert [file for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []


def test_databricks_is_asked_with_the_token_of_the_connection(airflow: Airflow, tmp_path: Path) -> None:
    with workspace() as there:
        env = environment(tmp_path, tmp_path)
        env = {name: value for name, value in env.items() if not name.startswith("DATABRICKS")}
        env["AIRFLOW_CONN_DBX"] = json.dumps({"conn_type": "databricks", "host": there.host, "password": "token"})
        plays: list[dict[str, Any]] = [
            {"through": "2026-01-01T00:00:00Z", "conn_id": "dbx"},
            {"through": "2026-01-02T00:00:00Z", "conn_id": "dbx", "anew": True, "defers": True},
            {"through": "2026-01-03T00:00:00Z", "conn_id": "nowhere", "anew": True},
        ]
        code = (ROOT / "tests/airflow/remote.py").read_text(encoding="utf-8")
        here, deferred, lost = airflow.answers(code, env, json.dumps(plays))
    assert here["result"]["run_id"] == 100, here
    assert deferred["result"]["deferred"], deferred
    assert (lost["error"], lost["message"].splitlines()[0]) == (
        "AirflowFailException",
        "there is no connection nowhere: add it in Airflow, its environment or its secrets backend",
    )
